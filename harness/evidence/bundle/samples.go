package bundle

import "time"

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

// IdentitySample says which process a component was at Time. Only the samples for which the executable was hashed have
// SHA256.
type IdentitySample struct {
	Time       time.Time `json:"time"`
	PID        int       `json:"pid"`
	StartTicks int64     `json:"startTicks"`
	Restarts   int       `json:"restarts"`
	SHA256     string    `json:"sha256,omitempty"`
	Expected   bool      `json:"expected,omitempty"`   // a restart that the harness itself made
	CPUSeconds float64   `json:"cpuSeconds,omitempty"` // CPU time, as the node's kernel counts it; 0 if not known
	// ChildSeconds is the CPU time of children that have ended and that the process has waited for, with their own
	// children.
	ChildSeconds float64 `json:"childSeconds,omitempty"`
	// Arguments says where the process's arguments lie, which execve changes. It is nil in bundles of versions that did
	// not look.
	Arguments *Arguments `json:"arguments,omitempty"`
	// Limits is the CPU that the kernel lets the process have. It is nil where there is no process, and in bundles of
	// versions that did not record it.
	Limits *CPULimits `json:"limits,omitempty"`
}

// EndedByFault records a process that a fault ended. It is written at Time, when the process was last seen, before the
// fault does anything to it. Counted says that the supervisor counts the next process as a restart. The component may
// take ReadySeconds to be ready again. Withdrawn takes the earlier records of the process back: it had ended of itself
// before the fault came. Build is set if the fault puts another build in its place: the number of that among the arm's
// builds, from 1.
type EndedByFault struct {
	Time         time.Time `json:"time"`
	Fault        string    `json:"fault"`
	PID          int       `json:"pid"`
	StartTicks   int64     `json:"startTicks"`
	Restarts     int       `json:"restarts"` // the supervisor's count, before
	Counted      bool      `json:"counted"`
	ReadySeconds float64   `json:"readySeconds"`
	Withdrawn    bool      `json:"withdrawn,omitempty"`
	Build        int       `json:"build,omitempty"`
}

// Arguments says where a process's arguments lie in its memory. A process that replaces itself by execve gets other
// arguments, and a host with address randomization chooses a new address for them.
type Arguments struct {
	Address   uint64 `json:"address"`   // arg_start of /proc/PID/stat; 0 if not known
	Randomize int    `json:"randomize"` // kernel.randomize_va_space; 0 if addresses aren't randomized, or if not known
}

// Known reports whether an equal address means the same arguments.
func (a *Arguments) Known() bool { return a != nil && a.Address != 0 && a.Randomize != 0 }

// SameProcess reports whether two samples are of one process, as far as both tell. An address that only one of them
// knows is not compared. A supervisor's count of restarts isn't compared either, because it doesn't tell.
func (s IdentitySample) SameProcess(o IdentitySample) bool {
	return s.PID == o.PID && s.StartTicks == o.StartTicks &&
		(!s.Arguments.Known() || !o.Arguments.Known() || s.Arguments.Address == o.Arguments.Address)
}

// CPULimits says how much CPU the kernel lets a process have, by its control group and all groups above. Periods and
// Throttled count from the creation of the groups.
type CPULimits struct {
	Known     bool    `json:"known"`           // the process's control group could be read
	Cores     int     `json:"cores"`           // how many the process may run on; 0 if not known
	Quota     float64 `json:"quota,omitempty"` // the lowest of the quotas, in CPUs; 0 if there is none
	Periods   int64   `json:"periods"`         // how many periods of a quota began
	Throttled int64   `json:"throttled"`       // in how many of these periods the quota was used up
}

// HostSample is the load of the machine that runs the nodes, at Time. BusySeconds, StealSeconds and AllSeconds count
// from boot, over all cores: the difference of two samples was spent between them. Pressure is the share of the last
// ten seconds, in percent, in which some tasks, or all ("full"), waited: "cpu.some", "memory.some", "memory.full",
// "io.some", "io.full". It is nil if the kernel doesn't tell.
type HostSample struct {
	Time         time.Time          `json:"time"`
	Cores        int                `json:"cores"`
	Running      int                `json:"running"` // tasks that run or are ready to run
	Load1        float64            `json:"load1"`
	BusySeconds  float64            `json:"busySeconds"`
	StealSeconds float64            `json:"stealSeconds"` // taken by the hypervisor for others
	AllSeconds   float64            `json:"allSeconds"`
	Pressure     map[string]float64 `json:"pressure,omitempty"`
}

// RestartProof records the restart of a deadlocked subject, after the data for the verdict was safe. A restart that
// ends the incident proves the diagnosis.
type RestartProof struct {
	Time         time.Time `json:"time"`
	ReadySeconds float64   `json:"readySeconds"` // from the restart to Ready=True; -1 if the node was never Ready
	LimitSeconds float64   `json:"limitSeconds"`
}

// ContainerCensus lists the containers that ran on a node at Time, and counts those that were only reported.
type ContainerCensus struct {
	Time               time.Time `json:"time"`
	Ran                []string  `json:"ran"` // namespace/pod/container, as kubelet itself lists them
	ReportedPods       int       `json:"reportedPods"`
	ReportedContainers int       `json:"reportedContainers"`
	ReportedAs         string    `json:"reportedAs"` // how to tell reported ones: by namespace and prefix of the id
}

// LogLine is a line of a component's log file on its node. Time is when the container runtime
// wrote it. A line of somebody else's log may not tell its time: then it is Untimed, and Time is
// that of a line near it.
type LogLine struct {
	Time    time.Time `json:"time"`
	File    string    `json:"file"` // below /var/log/pods; has the pod, the container, the restart
	Text    string    `json:"text"` // without the runtime's prefix
	Untimed bool      `json:"untimed,omitempty"`
}

// ContainerStatus is a container's status as the kubelet reports it, recorded at each change. Time is when the change
// was seen.
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
	Started      time.Time `json:"started,omitzero"` // of a container that runs, in whole seconds; zero if nobody says so
	LastID       string    `json:"lastID,omitempty"` // the Last fields come from lastState.terminated
	LastReason   string    `json:"lastReason,omitempty"`
	LastExitCode int32     `json:"lastExitCode,omitempty"`
	LastFinished time.Time `json:"lastFinished,omitzero"`
}

// HealthSample is one answer of a health endpoint, asked for at Time and answered by Done. Code 0 means that there was
// no answer, and Text says why.
type HealthSample struct {
	Time time.Time `json:"time"`
	Done time.Time `json:"done"`
	Path string    `json:"path"` // "/readyz"
	Code int       `json:"code"`
	Text string    `json:"text,omitempty"` // "" if the code is 200
}

// AuditEvent is a line of an API server's audit log. Annotations is the number of the event's annotations. If the line
// is no event, Error says what is wrong with it and Time is when the line was read. Records of earlier versions don't
// tell who asked, and for which object.
type AuditEvent struct {
	Time        time.Time `json:"time"` // when the event was written
	ID          string    `json:"id,omitempty"`
	Stage       string    `json:"stage,omitempty"`
	Verb        string    `json:"verb,omitempty"`
	Path        string    `json:"path,omitempty"`
	User        string    `json:"user,omitempty"`     // "system:serviceaccount:NAMESPACE:NAME"
	Resource    string    `json:"resource,omitempty"` // "bundledeployments.fleet.cattle.io", "secrets"
	Subresource string    `json:"subresource,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Name        string    `json:"name,omitempty"` // "" for a collection, and before a created object is read
	Code        int       `json:"code,omitempty"`
	Annotations int       `json:"annotations"`
	Bytes       int       `json:"bytes"`
	Error       string    `json:"error,omitempty"`
}

// Object returns the event's object as NAMESPACE/NAME; "" if the event names none.
func (e AuditEvent) Object() string {
	if e.Name == "" {
		return ""
	}
	return e.Namespace + "/" + e.Name
}

// Review is a request that an API server asked a webhook about, as the webhook saw it. Time is when it was known what
// became of the request; a webhook without rules that never answered recorded the request's arrival.
type Review struct {
	Time        time.Time `json:"time"`
	Mutating    bool      `json:"mutating,omitempty"` // the webhook is a mutating one, else a validating one
	Object      string    `json:"object"`             // namespace/name
	Annotations int       `json:"annotations"`        // audit annotations in the answer

	// What follows is empty in the records of webhooks without rules, which earlier versions wrote.
	Webhook   string    `json:"webhook,omitempty"`   // the fault's name in the scenario, and /NAME where it has several
	Asked     time.Time `json:"asked,omitzero"`      // when the request arrived
	UID       string    `json:"uid,omitempty"`       // of the review
	Operation string    `json:"operation,omitempty"` // the admission's, or one of the words below
	Resource  string    `json:"resource,omitempty"`  // plural.group, or the plural name alone in the core group
	Rule      int       `json:"rule,omitempty"`      // which rule applied, from 1; 0 if none did
	Outcome   string    `json:"outcome,omitempty"`   // one of the words below
	Code      int       `json:"code,omitempty"`      // of the HTTP answer, as far as there was one
	Allowed   bool      `json:"allowed,omitempty"`   // what the answer says; of a conversion, whether it succeeded
	Error     string    `json:"error,omitempty"`     // why the webhook could not answer by its rules

	// What follows is a conversion's. Its Object is "" if there isn't exactly one.
	Version string `json:"version,omitempty"` // the desired apiVersion
	Objects int    `json:"objects,omitempty"` // how many were to be converted; of an extender's request, the nodes
}

// Operations of requests that are no admission: a conversion, and what kube-scheduler asks an extender.
const (
	ReviewConvert    = "CONVERT"
	ReviewFilter     = "filter"
	ReviewPrioritize = "prioritize"
)

// Admission reports whether the request was an admission webhook's.
func (r Review) Admission() bool {
	return r.Operation != ReviewConvert && r.Operation != ReviewFilter &&
		r.Operation != ReviewPrioritize
}

// The outcomes of a review by a webhook with rules.
const (
	ReviewAnswered = "answered" // the whole answer was written
	ReviewNever    = "never"    // the rule is to never answer
	ReviewClosed   = "closed"   // the connection was closed without an answer
	ReviewLeft     = "left"     // the API server left, or the webhook ended, before the answer was written
)
