// Package bundle is a trial's evidence on disk: a writer through which everything enters (it redacts), a View from
// which checks read, live and afterwards, a timeline and a manifest.
//
// # Layout
//
//	trials/001/
//	  manifest.json     every file below with its kind, cell, node, component, phase, time, size and SHA-256; itself left out
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
	Cell      string    `json:"cell,omitempty"` // "" or Shared for what belongs to no arm
	Node      string    `json:"node,omitempty"`
	Component string    `json:"component,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	Mark      string    `json:"mark,omitempty"` // why it was taken: "schedule", "phase", "onset"
	Time      time.Time `json:"time"`
}

// Shared is the cell of evidence that belongs to no arm: it is context or exposure, never one arm's signature.
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
	Cell      string
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
	// Phase is when a cell's phase was seen to begin and end; false if it never began. Events without a cell count
	// for all cells.
	Phase(cell, phase string) (Window, bool)
	// Timeline lists the events so far.
	Timeline() []event.Event
	// Constant is a number of the cell's subject, read from its source: an integer, or a duration's nanoseconds.
	Constant(cell, name string) (int64, bool)
	// World is what was resolved at run time.
	World() World
}

// World is what was resolved at run time and can't be known from the plan: what the verdict names as versions and
// digests.
type World struct {
	StartedAt time.Time         `json:"startedAt"`
	Run       string            `json:"run"`
	Plan      string            `json:"plan"`     // SHA-256 of the run's plan.json
	Scenario  string            `json:"scenario"` // SHA-256 of the scenario file that was planned
	Versions  map[string]string `json:"versions"` // relapse, go, kind, kubernetes, engine, nodeImage, kernel
	Cells     []CellWorld       `json:"cells"`
	Modelled  []string          `json:"modelled"` // what was only imitated, one sentence each
	Computed  map[string]string `json:"computed"` // fault parameter -> value and how it follows from the constants
	Deviates  []string          `json:"deviates"` // options that weaken the trial: --no-faults, swapped arms, …
}

// CellWorld is what was resolved for one cell.
type CellWorld struct {
	Cell      string           `json:"cell"`
	Arm       string           `json:"arm"`
	Node      string           `json:"node,omitempty"`
	Namespace string           `json:"namespace,omitempty"` // the cell's own, where it has one
	Digest    string           `json:"digest"`              // SHA-256 of the binary that was built for the arm, hex
	Graph     string           `json:"graph"`               // hash of the module graph it was built from
	Flags     []string         `json:"flags"`
	GoVersion string           `json:"goVersion"`
	Changes   []string         `json:"changes"` // everything that was changed to build it: mutations, replaced modules
	Constants map[string]int64 `json:"constants"`
	// Assumed are the values that faults and checks use for constants of the subject that are unknown.
	Assumed map[string]int64 `json:"assumed,omitempty"`
}

// Stamped wraps a JSON value of a stream with the time it was taken at.
type Stamped[T any] struct {
	Time  time.Time `json:"time"`
	Value T         `json:"value"`
}

// MetricSample is one sample of one metric: asked for at Time, answered by Done. Value has the metric's own unit. A
// check uses the less favourable of the two times.
type MetricSample struct {
	Time   time.Time         `json:"time"`
	Done   time.Time         `json:"done"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Value  float64           `json:"value"`
}

// NodeStatus is a node's Ready condition as the API server showed it at Time.
type NodeStatus struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Status  string    `json:"status"` // True, False, Unknown
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Beat    time.Time `json:"lastHeartbeatTime"`
	Changed time.Time `json:"lastTransitionTime"`
}

// LeaseSample is a node's Lease as the API server showed it at Time. Seconds is how long a renewal lasts.
type LeaseSample struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Renewed time.Time `json:"renewTime"`
	Seconds int32     `json:"leaseDurationSeconds"`
}

// IdentitySample says which process a component was at Time. SHA256 is set at phase marks only.
type IdentitySample struct {
	Time       time.Time `json:"time"`
	PID        int       `json:"pid"`
	StartTicks int64     `json:"startTicks"`
	Restarts   int       `json:"restarts"`
	SHA256     string    `json:"sha256,omitempty"`
	Expected   bool      `json:"expected,omitempty"`   // a restart that the harness itself made
	CPUSeconds float64   `json:"cpuSeconds,omitempty"` // that the process has used, as its node's kernel counts it; 0 is not known
}

// HostSample is the load of the machine that runs the nodes, at Time. The three times count from boot, over all
// cores: what was spent between two samples is their difference. Pressure is the share of the last ten seconds, in
// percent, in which some tasks, or all ("full"), waited: "cpu.some", "memory.some", "memory.full", "io.some",
// "io.full"; nil if the kernel doesn't say.
type HostSample struct {
	Time         time.Time          `json:"time"`
	Cores        int                `json:"cores"`
	Running      int                `json:"running"` // tasks that run or could
	Load1        float64            `json:"load1"`
	BusySeconds  float64            `json:"busySeconds"`
	StealSeconds float64            `json:"stealSeconds"` // taken by the hypervisor for others
	AllSeconds   float64            `json:"allSeconds"`
	Pressure     map[string]float64 `json:"pressure,omitempty"`
}

// RestartProof records the restart of a deadlocked subject after the data for judging was safe: the incident's own
// proof of the diagnosis.
type RestartProof struct {
	Time         time.Time `json:"time"`
	ReadySeconds float64   `json:"readySeconds"` // from the restart to Ready=True; -1 if it never came
	LimitSeconds float64   `json:"limitSeconds"`
}

// ContainerCensus says which containers of a node ran and which were only reported, as of Time.
type ContainerCensus struct {
	Time               time.Time `json:"time"`
	Ran                []string  `json:"ran"` // namespace/pod/container, as kubelet itself lists them
	ReportedPods       int       `json:"reportedPods"`
	ReportedContainers int       `json:"reportedContainers"`
	ReportedAs         string    `json:"reportedAs"` // how reported ones can be told: their namespace and the prefix of their ids
}

// LogLine is a line of a component's log file on its node. Time is when the container runtime wrote it.
type LogLine struct {
	Time time.Time `json:"time"`
	File string    `json:"file"` // below /var/log/pods: it names the pod, the container and its restart
	Text string    `json:"text"` // without the runtime's prefix
}

// ContainerStatus is what the kubelet reports of a container, whenever it changed. The time is when it was seen.
type ContainerStatus struct {
	Time         time.Time `json:"time"`
	Pod          string    `json:"pod"`
	Container    string    `json:"container"`
	ID           string    `json:"id"`    // of the container that runs or ran last
	State        string    `json:"state"` // running, waiting or terminated
	Reason       string    `json:"reason,omitempty"`
	ExitCode     int32     `json:"exitCode,omitempty"`
	Ready        bool      `json:"ready"`
	RestartCount int32     `json:"restartCount"`
	LastID       string    `json:"lastID,omitempty"` // lastState.terminated
	LastReason   string    `json:"lastReason,omitempty"`
	LastExitCode int32     `json:"lastExitCode,omitempty"`
	LastFinished time.Time `json:"lastFinished,omitzero"`
}

// HealthSample is one answer of a health endpoint, asked for at Time and answered by Done. Code 0 is no answer, and
// Text says why.
type HealthSample struct {
	Time time.Time `json:"time"`
	Done time.Time `json:"done"`
	Path string    `json:"path"` // "/readyz"
	Code int       `json:"code"`
	Text string    `json:"text,omitempty"` // unless it was 200
}

// Call is one request of a load. Code 0 is no answer, and Error says why.
type Call struct {
	Load  string    `json:"load"`  // the item's name
	Round int       `json:"round"` // from 1
	Time  time.Time `json:"time"`
	Done  time.Time `json:"done"`
	Verb  string    `json:"verb"`
	Path  string    `json:"path"`
	Code  int       `json:"code"`
	Error string    `json:"error,omitempty"`
	// GaveUp is a call that the load ended itself: its time was up, or the load's was.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// Load sums up what a load did. Objects are what it created beforehand; their names end in their number in the order
// of a list, from 0.
type Load struct {
	Name    string         `json:"name"`
	Way     string         `json:"way"`     // how the deletions were brought about
	Objects int            `json:"objects"` // in each namespace
	Bytes   int64          `json:"bytes"`   // of each object's data
	Rounds  []LoadRound    `json:"rounds"`
	Codes   map[string]int `json:"codes"` // response code -> calls, "none" for no answer
}

// LoadRound is one round of a load: from its first request to its last answer.
type LoadRound struct {
	Round  int       `json:"round"` // from 1
	Start  time.Time `json:"start"`
	Sent   time.Time `json:"sent"`  // when the last request was on its way
	Began  time.Time `json:"began"` // when the load was seen to take effect; zero if never
	End    time.Time `json:"end"`
	Calls  int       `json:"calls"`
	Rate   float64   `json:"rate"`   // requests a second while they were sent
	Wanted float64   `json:"wanted"` // requests a second asked for; 0 is all at once

	// Cut is what became of the calls that were in flight when the round began; nil if nobody could tell.
	Cut *CutCalls `json:"cut,omitempty"`
}

// CutCalls are the calls that were in flight when a round began, as the load saw them.
type CutCalls struct {
	Open     int  `json:"open"`           // calls without an answer then
	Deleting int  `json:"deleting"`       // those of them with a worker in a delete, by the API server's goroutines
	Failed   int  `json:"failed"`         // those of them that the API server ended later on with a failure, or without an answer
	Left     *int `json:"left,omitempty"` // objects that were still there afterwards, and stood still; nil if that isn't known
}

// AtLeast is how many of the calls that deleted when the round began must have failed later.
func (c CutCalls) AtLeast() int { return max(0, c.Deleting+c.Failed-c.Open) }

// The ways in which a probe ends. Only the first two say anything about the subject.
const (
	ProbeDone    = "done"     // every step was seen
	ProbeFailed  = "failed"   // the subject was asked, and didn't do a step in its time
	ProbeCut     = "cut off"  // the phase ended before it did
	ProbeUnasked = "no probe" // the harness couldn't ask, or couldn't look
)

// ProbeRecord is work that a load asked of the subject, to see whether it does it. It is written at the end, however
// the probe ends.
type ProbeRecord struct {
	Name  string      `json:"name"` // the load's name
	Work  string      `json:"work"` // what was asked, in words
	Start time.Time   `json:"start"`
	End   time.Time   `json:"end"`
	Steps []ProbeStep `json:"steps"` // in their order; the last is the one that it ended with
	Ended string      `json:"ended"`
	Why   string      `json:"why,omitempty"` // unless it is done
}

// ProbeStep is one step of a probe.
type ProbeStep struct {
	Try   int       `json:"try"` // from 1
	Step  string    `json:"step"`
	Asked time.Time `json:"asked"`
	Seen  time.Time `json:"seen,omitzero"` // zero if it never was
	What  string    `json:"what,omitempty"`
}
