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

// IdentitySample says which process a component was at Time. SHA256 is set at phase marks only.
type IdentitySample struct {
	Time       time.Time `json:"time"`
	PID        int       `json:"pid"`
	StartTicks int64     `json:"startTicks"`
	Restarts   int       `json:"restarts"`
	SHA256     string    `json:"sha256,omitempty"`
	Expected   bool      `json:"expected,omitempty"`   // a restart that the harness itself made
	CPUSeconds float64   `json:"cpuSeconds,omitempty"` // that the process has used, as its node's kernel counts it; 0 is not known
	// that its children had used, and theirs, of those that have ended and that it has waited for
	ChildSeconds float64 `json:"childSeconds,omitempty"`
	// where its arguments lie, which execve changes; nil in bundles of versions that didn't look
	Arguments *Arguments `json:"arguments,omitempty"`
	// what the kernel lets it have; nil in bundles of versions that did not record it, and where there is no process
	Limits *CPULimits `json:"limits,omitempty"`
}

// Arguments says where a process's arguments lie in its memory: whoever replaces itself by execve gets others, at an
// address that a host with randomisation chooses anew.
type Arguments struct {
	Address   uint64 `json:"address"`   // arg_start of /proc/PID/stat; 0 is not known
	Randomize int    `json:"randomize"` // kernel.randomize_va_space; 0 is nothing, or not known
}

// Known reports whether an equal address means the same arguments.
func (a *Arguments) Known() bool { return a != nil && a.Address != 0 && a.Randomize != 0 }

// SameProcess reports whether two samples are of one process, as far as both tell: an address that only one of them
// knows tells nothing. A supervisor's count of restarts doesn't tell it either.
func (s IdentitySample) SameProcess(o IdentitySample) bool {
	return s.PID == o.PID && s.StartTicks == o.StartTicks &&
		(!s.Arguments.Known() || !o.Arguments.Known() || s.Arguments.Address == o.Arguments.Address)
}

// CPULimits says what the kernel lets a process have of the CPUs, by its control group and all that are above it.
// Periods and Throttled count from when the groups were made.
type CPULimits struct {
	Known     bool    `json:"known"`           // its control group could be read
	Cores     int     `json:"cores"`           // how many it may run on; 0 is not known
	Quota     float64 `json:"quota,omitempty"` // the lowest of the quotas, in CPUs; 0 is none
	Periods   int64   `json:"periods"`         // how many periods of a quota began
	Throttled int64   `json:"throttled"`       // in how many of them the quota was used up
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

// AuditEvent is a line of an API server's audit log. Annotations is how many the event has. Of a line that is no event
// only Error says what is wrong with it, and Time is when it was read. Who asked, and what for, is missing in records of
// earlier versions.
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
	Name        string    `json:"name,omitempty"` // none for a collection, and until the API server has read what is created
	Code        int       `json:"code,omitempty"`
	Annotations int       `json:"annotations"`
	Bytes       int       `json:"bytes"`
	Error       string    `json:"error,omitempty"`
}

// Object is the event's object, as NAMESPACE/NAME; "" if it names none.
func (e AuditEvent) Object() string {
	if e.Name == "" {
		return ""
	}
	return e.Namespace + "/" + e.Name
}

// Review is a request that an API server asked a webhook about, as the webhook saw it: as it was answered, or came where
// it is never answered.
type Review struct {
	Time        time.Time `json:"time"`
	Mutating    bool      `json:"mutating,omitempty"` // else it is a validating one
	Object      string    `json:"object"`             // namespace/name
	Annotations int       `json:"annotations"`        // audit annotations in the answer
}
