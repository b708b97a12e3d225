// Package bundle is a trial's evidence on disk: a writer through which everything enters (it redacts), a View from
// which checks read, live and afterwards, a timeline and a manifest.
//
// # Layout
//
//	trials/001/
//	  manifest.json     every file below with its kind, arm, node, component, phase, time, size and SHA-256; itself left out
//	  timeline.jsonl    one event a line, wall and monotonic time
//	  plan.json         the trial's part of the plan
//	  world.json        what was resolved at run time: digests, constants, versions, computed fault parameters
//	  artifacts/        snapshots and streams; found by what they are, never by their path
//
// The run's plan.json and index.json, which lists the bundles, lie above trials/, and so do the reports. They are no
// part of a bundle.
package bundle

import (
	"io"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
)

// Kind names what an artifact holds. Collectors say which kinds they make, checks which they read.
type Kind string

// The kinds that the harness itself and its collectors make.
const (
	Goroutines1   Kind = "goroutines.debug1" // text, pprof debug=1
	Goroutines2   Kind = "goroutines.debug2" // text, pprof debug=2
	Metrics       Kind = "metrics"           // text, Prometheus exposition, whole
	MetricSamples Kind = "metrics.samples"   // stream of MetricSample
	Journal       Kind = "journal"           // stream of `journalctl -o json` lines
	Configz       Kind = "configz"           // JSON
	Nodes         Kind = "nodes.conditions"  // stream of NodeStatus
	Events        Kind = "events"            // stream of core/v1 Event as JSON
	Identity      Kind = "identity"          // stream of IdentitySample
	Interposer    Kind = "interposer.counts" // stream of control.Counts, each wrapped in Stamped
	Probe         Kind = "interposer.probe"  // stream of control.Probe, each wrapped in Stamped
	Restart       Kind = "restart"           // JSON, the restart that ends the incident: RestartProof
	Containers    Kind = "containers"        // JSON, which containers ran and which were only reported: ContainerCensus
	Heap          Kind = "heap"              // pprof protocol buffer, gzipped, after a garbage collection
	CPU           Kind = "cpu"               // pprof protocol buffer, gzipped
	Logs          Kind = "logs"              // stream of LogLine, of the component in Meta
	Statuses      Kind = "containers.status" // stream of ContainerStatus
	Health        Kind = "health"            // stream of HealthSample
	Audit         Kind = "audit"             // stream of AuditEvent
	Reviews       Kind = "webhook.reviews"   // stream of Review
	EtcdProbe     Kind = "etcdproxy.probe"   // stream of control.EtcdProbe, each wrapped in Stamped
	Calls         Kind = "load.calls"        // stream of Call
	LoadSummary   Kind = "load.summary"      // JSON: Load
	WorkProbe     Kind = "load.probe"        // JSON: ProbeRecord
	Leases        Kind = "leases"            // stream of LeaseSample, of all nodes
	Objects       Kind = "objects"           // stream of churn.Version, zstd: every version of chosen objects
	ObjectList    Kind = "objects.list"      // YAML: chosen objects as a user sees them at a moment
	Host          Kind = "host"              // stream of HostSample, of the machine that runs the nodes
	SourceDiff    Kind = "source.diff"       // text: how a tree that an arm was built from differs from its commit, as git prints it
)

// Meta is how an artifact is found. Time is when the capture began, in UTC.
type Meta struct {
	Kind      Kind      `json:"kind"`
	Arm       string    `json:"arm,omitempty"` // "" or Shared for what belongs to no arm
	Node      string    `json:"node,omitempty"`
	Component string    `json:"component,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Mark      string    `json:"mark,omitempty"` // why it was taken: "schedule", "phase", "onset"
	Time      time.Time `json:"time"`
}

// Shared is the arm of evidence that belongs to no arm: it is context or exposure, never one arm's signature.
const Shared = "shared"

// Artifact is one recorded piece of evidence. A capture that failed has Error set and no Path. A stream has Coverage.
type Artifact struct {
	Meta
	Path     string    `json:"path,omitempty"` // relative to the bundle, slash-separated
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256,omitempty"`
	Error    string    `json:"error,omitempty"`
	Coverage *Coverage `json:"coverage,omitempty"`
	Missing  bool      `json:"-"` // listed in the manifest and not on disk: whatever needs it is unknown
	Skipped  int       `json:"-"` // lines of a log that were looked at and aren't in it, because no check asks for them
}

// Coverage is the time that a stream covers: First to Last, without the gaps.
type Coverage struct {
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	Gaps       []Gap     `json:"gaps,omitempty"`
	Suppressed int       `json:"suppressed,omitempty"` // lines the source itself dropped
}

// Gap is a time for which a stream has nothing, and why.
type Gap struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Reason string    `json:"reason"`
}

// Covers reports whether the stream covers all of from..to, except for slack at both ends: it may begin that much too
// late or end that much too early, and a gap may reach in that far from outside. A gap inside always counts.
func (c *Coverage) Covers(from, to time.Time, slack time.Duration) bool {
	if c == nil || c.First.IsZero() || c.First.After(from.Add(slack)) || c.Last.Before(to.Add(-slack)) {
		return false
	}
	for _, g := range c.Gaps {
		before := !g.From.After(from) && !g.To.After(from.Add(slack))
		after := !g.To.Before(to) && !g.From.Before(to.Add(-slack))
		if g.From.Before(to) && g.To.After(from) && !before && !after {
			return false
		}
	}
	return true
}

// Query selects artifacts; a zero field matches all. From and To bound Meta.Time, both inclusive.
type Query struct {
	Kind      Kind
	Arm       string
	Node      string
	Component string
	Phase     string
	From, To  time.Time
}

// Window is a stretch of time in wall clock. End is zero while it lasts.
type Window struct{ Start, End time.Time }

// View is read access to a bundle, live or sealed. Results are in order of Meta.Time.
type View interface {
	// Artifacts lists what matches, failed captures (Error) and missing files (Missing) included.
	Artifacts(Query) []Artifact
	// Open reads an artifact. A failed or missing one is an error.
	Open(Artifact) (io.ReadCloser, error)
	// Remember returns what a reader makes of an artifact, and keeps it under the name as. When it is asked again,
	// grow gets the earlier result (nil at first) and what was added to the artifact since, in whole lines of a
	// stream. Nobody may change a result. Errors are not kept.
	Remember(a Artifact, as string, grow func(before any, r io.Reader) (any, error)) (any, error)
	// Phase is when an arm's phase was seen to begin and end; false if it never began. Events without an arm count
	// for all arms.
	Phase(arm, phase string) (Window, bool)
	// Timeline lists the events so far.
	Timeline() []event.Event
	// Constant is a number of the arm's subject, read from its source: an integer, or a duration's nanoseconds.
	Constant(arm, name string) (int64, bool)
	// World is what was resolved at run time.
	World() World
}
