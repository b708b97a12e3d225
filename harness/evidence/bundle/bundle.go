// Package bundle keeps a trial's evidence on disk. A Writer redacts and stores everything. Checks read through a View,
// during the trial and after it. A bundle also has a timeline and a manifest.
//
// # Layout
//
//	trials/001/
//	  manifest.json     every other file below with its kind, arm, node, component, phase, time, size and SHA-256
//	  timeline.jsonl    one event a line, wall and monotonic time
//	  plan.json         the trial's part of the plan
//	  world.json        what was resolved at run time: digests, constants, versions, computed fault parameters
//	  artifacts/        snapshots and streams, found by the manifest's description, never by their path
//
// The folder that contains trials/ also holds the run's plan.json, the run's index.json (which lists the bundles) and
// the reports. None of these are part of a bundle.
package bundle

import (
	"io"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
)

// Kind names what an artifact holds. Collectors say which kinds they make, checks which they read.
type Kind string

// The kinds that the harness itself and its collectors make.
const (
	Goroutines1   Kind = "goroutines.debug1" // text, pprof debug=1
	Goroutines2   Kind = "goroutines.debug2" // text, pprof debug=2
	Metrics       Kind = "metrics"           // text, a complete Prometheus exposition
	MetricSamples Kind = "metrics.samples"   // stream of MetricSample
	Journal       Kind = "journal"           // stream of `journalctl -o json` lines
	Configz       Kind = "configz"           // JSON
	Nodes         Kind = "nodes.conditions"  // stream of NodeStatus
	Events        Kind = "events"            // stream of core/v1 Event as JSON
	Identity      Kind = "identity"          // stream of IdentitySample
	Interposer    Kind = "interposer.counts" // stream of control.Counts, each wrapped in Stamped
	Probe         Kind = "interposer.probe"  // stream of control.Probe, each wrapped in Stamped
	EndedProcess  Kind = "process.ended"     // JSON, a process that a fault ended: EndedByFault
	Restart       Kind = "restart"           // JSON, the restart that ends the incident: RestartProof
	Containers    Kind = "containers"        // JSON, which containers ran and which were only reported: ContainerCensus
	Heap          Kind = "heap"              // pprof protocol buffer, gzipped, after a garbage collection
	CPU           Kind = "cpu"               // pprof protocol buffer, gzipped
	Logs          Kind = "logs"              // stream of LogLine, of the component in Meta
	Statuses      Kind = "containers.status" // stream of ContainerStatus
	Health        Kind = "health"            // stream of HealthSample
	Audit         Kind = "audit"             // stream of AuditEvent
	Reviews       Kind = "webhook.reviews"   // stream of Review
	EtcdProbe     Kind = "etcdproxy.probe"   // stream of control.ConnectionProbe, each wrapped in Stamped
	Calls         Kind = "load.calls"        // stream of Call
	LoadSummary   Kind = "load.summary"      // JSON: Load
	EtcdAnswers   Kind = "etcd.answers"      // stream of EtcdAnswer
	WorkProbe     Kind = "load.probe"        // JSON: ProbeRecord
	Leases        Kind = "leases"            // stream of LeaseSample, of all nodes
	Objects       Kind = "objects"           // stream of churn.Version, zstd: every version of chosen objects
	ObjectList    Kind = "objects.list"      // YAML: chosen objects as a user sees them at one moment
	Host          Kind = "host"              // stream of HostSample, of the machine that runs the nodes
	SourceDiff    Kind = "source.diff"       // text: how an arm's source differs from what was published
	SourceLocal   Kind = "source.local"      // text: what was not committed of a candidate's source tree
)

// Meta describes an artifact, so that a Query can find it. Time is when the capture began, in UTC.
type Meta struct {
	Kind      Kind      `json:"kind"`
	Arm       string    `json:"arm,omitempty"` // "" or Shared for evidence that belongs to no arm
	Node      string    `json:"node,omitempty"`
	Component string    `json:"component,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Mark      string    `json:"mark,omitempty"` // why a snapshot was taken: "schedule", "phase", "onset"
	Time      time.Time `json:"time"`
}

// Shared is the arm of evidence that belongs to no arm. It can be context or exposure, never the signature of an arm.
const Shared = "shared"

// Artifact is one recorded piece of evidence. A capture that failed has Error set and no Path. A stream has Coverage.
type Artifact struct {
	Meta
	Path     string    `json:"path,omitempty"` // relative to the bundle, slash-separated
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256,omitempty"`
	Error    string    `json:"error,omitempty"`
	Coverage *Coverage `json:"coverage,omitempty"`
	Missing  bool      `json:"-"` // listed in the manifest and not on disk: checks that need it can't answer
	Skipped  int       `json:"-"` // log lines that were read and left out, because no check asks for them
}

// Coverage is the time that a stream covers: First to Last, without the gaps.
type Coverage struct {
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	Gaps       []Gap     `json:"gaps,omitempty"`
	Suppressed int       `json:"suppressed,omitempty"` // lines the source itself dropped
}

// Gap is a time for which a stream has no evidence, and the reason.
type Gap struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Reason string    `json:"reason"`
}

// Covers reports whether the stream covers all of from..to, with a tolerance of slack at both ends: the stream may
// begin up to slack after from and end up to slack before to, and a gap may take up to slack from either end. Any other
// gap within from..to makes the answer false.
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

// From returns the first moment from at on that the stream covers; zero if there is none.
func (c *Coverage) From(at time.Time) time.Time {
	if c == nil || c.First.IsZero() {
		return time.Time{}
	}
	if at.Before(c.First) {
		at = c.First
	}
	for !at.After(c.Last) {
		i := slices.IndexFunc(c.Gaps, func(g Gap) bool { return g.From.Before(at) && g.To.After(at) })
		if i < 0 {
			return at
		}
		at = c.Gaps[i].To
	}
	return time.Time{}
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

// Window is a span of wall-clock time. End is zero while the window lasts.
type Window struct{ Start, End time.Time }

// View is read access to a bundle, live or sealed. Results are in order of Meta.Time.
type View interface {
	// Artifacts returns the artifacts that match, including failed captures (Error) and missing files (Missing).
	Artifacts(Query) []Artifact
	// Open opens an artifact for reading. A failed or missing artifact is an error.
	Open(Artifact) (io.ReadCloser, error)
	// Remember returns what grow computes from an artifact, and keeps the result under the name as. At the next call,
	// grow gets the kept result (nil at first) and the part of the artifact that is new since, for a stream in whole
	// lines. Nobody may change a result. Errors are not kept.
	Remember(a Artifact, as string, grow func(before any, r io.Reader) (any, error)) (any, error)
	// Phase returns when an arm's phase was seen to begin and end; false if the phase never began. Events without an
	// arm count for all arms.
	Phase(arm, phase string) (Window, bool)
	// Timeline returns the events so far.
	Timeline() []event.Event
	// Constant returns a number that was read from the source of the arm's subject: an integer, or a duration in
	// nanoseconds. It returns false if the number isn't known.
	Constant(arm, name string) (int64, bool)
	// World returns the facts that were resolved at run time.
	World() World
}
