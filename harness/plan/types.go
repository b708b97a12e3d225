// Package plan turns a scenario, its arms and a seed into a Plan: decoded, validated and serialisable. It has
// everything that a run does. What is only known at run time (digests, constants, computed parameters) goes into the
// bundle's world.json.
package plan

import (
	"encoding/json"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Schema is the value of Plan.Schema that this package reads and writes.
const Schema = "relapse.dev/plan/v1alpha2"

// Plan is a run: one or more trials of one scenario.
type Plan struct {
	Schema    string            `json:"schema"`
	Scenario  string            `json:"scenario"`
	Title     string            `json:"title"`
	Version   string            `json:"version"`            // the clusters' Kubernetes version
	NodeImage string            `json:"nodeImage"`          // auto, official, assembled or a reference
	Provider  string            `json:"provider,omitempty"` // of the clusters; "" is kind
	Seed      int64             `json:"seed"`
	Until     *Until            `json:"until,omitempty"`      // trials go on; nil runs those that are listed
	Budget    Duration          `json:"budget,omitempty"`     // time that a nightly has for the scenario; 0 is the scenario's saying nothing
	Source    string            `json:"source,omitempty"`     // the scenario file, relative
	Digest    string            `json:"digest"`               // SHA-256 of the scenario file's bytes
	Params    map[string]string `json:"params,omitempty"`     // what was set for this run
	Values    map[string]string `json:"parameters,omitempty"` // the scenario's declared parameters, all of them
	Trials    []Trial           `json:"trials"`
}

// Trial is one execution of one pair, with clusters of its own.
type Trial struct {
	ID         string                 `json:"id"` // "001"
	Pair       string                 `json:"pair"`
	Subject    string                 `json:"subject"`
	Placement  string                 `json:"placement"`
	Seams      []string               `json:"seams"`
	Clusters   []Cluster              `json:"clusters"`
	Arms       []Arm                  `json:"arms"`
	Manifests  []Manifest             `json:"manifests,omitempty"`
	Sequential bool                   `json:"sequential"`    // one arm after the other
	Why        string                 `json:"why,omitempty"` // why so, or why all at once, where that was decided here
	NoFaults   bool                   `json:"noFaults"`      // the null control
	Constants  []scenario.Constant    `json:"constants"`
	Collectors []Collector            `json:"collectors"`
	Loads      []Load                 `json:"loads"`
	Faults     []Fault                `json:"faults"`
	Phases     scenario.Phases        `json:"phases"`
	Steady     []Check                `json:"steady"`
	Exposure   []Check                `json:"exposure"`
	Signature  []Check                `json:"signature"`
	Healed     []Check                `json:"healed"`
	Info       []Check                `json:"information,omitempty"` // asked and shown; decides nothing
	Restart    *scenario.RestartProof `json:"restart,omitempty"`
	Modelled   []string               `json:"modelled,omitempty"`
	Tried      *scenario.Tried        `json:"tried,omitempty"`    // which of the ways to the bug it takes; nil if nobody says
	Deviates   []string               `json:"deviates,omitempty"` // options that weaken the trial, named in the verdict
	Set        map[string]string      `json:"set,omitempty"`      // what the pair itself sets, in place of Plan.Values
}

// Cluster is one cluster of a trial. With the placements node and workload all arms share one, whose Name is "".
// With placement cluster each arm has its own, of its version; Name is the arm's and is appended to the run's
// name.
type Cluster struct {
	Name     string            `json:"name"`
	Topology cluster.Topology  `json:"topology"`
	Memory   map[string]string `json:"memory,omitempty"` // component -> memory limit of its static pod
}

// Manifest is a file of Kubernetes objects that is applied before the steady state. Arm is whose it is, "" for all.
// Only $(image) is still to be replaced in it, because an arm's image is not known before it is built.
type Manifest struct {
	File    string `json:"file"`
	Arm     string `json:"arm,omitempty"`
	Content string `json:"content"`
}

// Arm is an arm of the pair, and its place in the world. Expected is the outcome that its role calls for: Reproduced
// for vulnerable, NotReproduced for fixed and candidate.
type Arm struct {
	scenario.Arm
	Node     string `json:"node"` // name relative to the arm's cluster
	Expected string `json:"expected"`
	BuildOf  string `json:"buildOf,omitempty"` // the arm whose build it was given instead of its own, a test of relapse itself
	// Namespace is the arm's own with placement workload: it runs there as the container of a pod, on Node.
	Namespace string `json:"namespace,omitempty"`
}

// Item is what a load and a fault have in common.
type Item struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Target scenario.Target `json:"target"`
	Phase  string          `json:"phase,omitempty"` // of a load: fault or recovery
	At     Duration        `json:"at"`              // from the start of its phase
	After  *After          `json:"after,omitempty"`
	// Duration lifts a fault that long after it took effect. The fault comes again with each round of the load that
	// it comes after. 0 means until the end of the fault phase.
	Duration Duration `json:"duration,omitempty"`
}

// Load is a load. Like all specs of a plan, its spec has the type of its kind, with all defaults filled in. All arms
// share it and must not change it.
type Load struct {
	Item
	Spec load.Load `json:"spec"`
}

// Fault is a fault.
type Fault struct {
	Item
	Spec fault.Fault `json:"spec"`
}

// After places an item behind another one.
type After struct {
	Name string   `json:"name"`
	Plus Duration `json:"plus"`
}

// Collector is a collector with its schedule; Every 0 means phase marks and onset only. During limits the schedule to a
// phase: looking costs the subject time, which others measure.
type Collector struct {
	Name      string            `json:"name"`
	Kind      string            `json:"kind"`
	Every     Duration          `json:"every"`
	During    string            `json:"during,omitempty"`    // "" is all of them
	Component string            `json:"component,omitempty"` // looked at instead of the subject
	Spec      capture.Collector `json:"spec"`
}

// Check is a check with its phase resolved, or a group of alternatives.
type Check struct {
	Name  string      `json:"name"`
	Kind  string      `json:"kind,omitempty"`
	Phase string      `json:"phase,omitempty"`
	After Duration    `json:"after"`
	Spec  check.Check `json:"spec,omitempty"`
	AnyOf []Check     `json:"anyOf,omitempty"`
}

// The outcomes that a role calls for.
const (
	Reproduced    = "Reproduced"
	NotReproduced = "NotReproduced"
)

// Duration is a time.Duration that JSON shows as "1m30s".
type Duration time.Duration

// MarshalJSON writes the duration in Go's notation.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads Go's notation.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}
