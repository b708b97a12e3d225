// Package plan turns a scenario, its arms and a seed into a Plan: decoded, validated and serialisable. The plan
// contains everything that a run does. What a scenario's file and a plan have in common is declared in package
// scenario; in a plan, the times and phases that a file may leave out are filled in. Facts that are only known at run
// time (digests, constants, computed parameters) go into the bundle's world.json.
package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Schema is the only value of Plan.Schema that this package reads and writes.
const Schema = "relapse.dev/plan/v1alpha2"

// Plan is a run: one or more trials of one scenario.
type Plan struct {
	Schema    string            `json:"schema"`
	Scenario  string            `json:"scenario"`
	Title     string            `json:"title"`
	Links     []string          `json:"links,omitempty"`    // to the bug and its fix, as the scenario refers to them
	Others    []string          `json:"others,omitempty"`   // scenarios with the same subject where the run was planned
	Version   string            `json:"version"`            // the clusters' Kubernetes version
	NodeImage string            `json:"nodeImage"`          // auto, official, assembled or a reference
	Provider  string            `json:"provider,omitempty"` // of the clusters; "" is kind
	Seed      int64             `json:"seed"`
	Until     *Until            `json:"until,omitempty"`      // makes the run open-ended; nil runs the listed trials
	Programs  *Programs         `json:"programs,omitempty"`   // nil: the run decides
	Budget    *metav1.Duration  `json:"budget,omitempty"`     // time that a nightly has for the scenario
	Source    string            `json:"source,omitempty"`     // the scenario file, relative
	Digest    string            `json:"digest"`               // SHA-256 of the scenario file's bytes
	Params    map[string]string `json:"params,omitempty"`     // settings of this run
	Values    map[string]string `json:"parameters,omitempty"` // values of all parameters that the scenario declares
	Trials    []Trial           `json:"trials"`
}

// Trial is one execution of one pair, in its own clusters.
type Trial struct {
	ID         string                 `json:"id"` // "001"
	Pair       string                 `json:"pair"`
	About      string                 `json:"about,omitempty"` // what the pair's arms are, in the scenario's words
	Subject    string                 `json:"subject"`
	Placement  string                 `json:"placement"`
	Seams      []string               `json:"seams"`
	Clusters   []Cluster              `json:"clusters"`
	Arms       []Arm                  `json:"arms"`
	Manifests  []Manifest             `json:"manifests,omitempty"`
	Sequential bool                   `json:"sequential"`    // one arm after the other
	Why        string                 `json:"why,omitempty"` // the reason for Sequential, if the plan chose it
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
	Info       []Check                `json:"information,omitempty"` // checks that are shown and decide nothing
	Restart    *scenario.RestartProof `json:"restart,omitempty"`
	Modelled   []string               `json:"modelled,omitempty"`
	Tried      *scenario.Tried        `json:"tried,omitempty"`    // ways to the bug that are tried; nil if not listed
	Deviates   Deviations             `json:"deviates,omitempty"` // what weakens the trial, named in the verdict
	Set        map[string]string      `json:"set,omitempty"`      // settings of the pair, in place of Plan.Values
}

// Cluster is one cluster of a trial. With the placements node and workload all arms share one cluster, whose Name is
// "". With placement cluster each arm has its own, of the arm's version. Name is then the arm's name, and is appended
// to the run's name.
type Cluster struct {
	Name     string            `json:"name"`
	Topology cluster.Topology  `json:"topology"`
	Memory   map[string]string `json:"memory,omitempty"` // component -> memory limit of its static pod
}

// Manifest is a file of Kubernetes objects that is applied before the steady state. Arm is the arm that it belongs to,
// "" for all. All references are replaced but $(image), because an arm's image is only known once it is built.
type Manifest struct {
	File    string `json:"file"`
	Arm     string `json:"arm,omitempty"`
	Content string `json:"content"`
}

// Arm is an arm of the pair, with its place in a cluster. Expected is the outcome that its role calls for: Reproduced
// for vulnerable, NotReproduced for fixed and candidate.
type Arm struct {
	scenario.Arm
	Node     string `json:"node"` // name relative to the arm's cluster
	Expected string `json:"expected"`
	BuildOf  string `json:"buildOf,omitempty"` // the other arm whose build it runs, to test relapse itself
	// Namespace is the arm's own namespace with placement workload. The arm runs there as the container of a pod, on
	// Node.
	Namespace string `json:"namespace,omitempty"`
}

// Load is a load of the scenario. Its spec has the type of its kind, with all defaults filled in, as all specs of a
// plan do. All arms share the spec, so they must not change it.
type Load struct {
	scenario.ItemHeader
	Spec load.Load `json:"spec"`
}

// Fault is a fault of the scenario. It comes again with each round of the load that it comes after.
type Fault struct {
	scenario.ItemHeader
	Spec fault.Fault `json:"spec"`
}

// Collector is a collector of the scenario, or one of relapse's own. During limits its schedule to one phase, because
// recording takes CPU time from the subject, which other collectors measure.
type Collector struct {
	scenario.CollectorHeader
	During string            `json:"during,omitempty"` // "" for all phases
	Spec   capture.Collector `json:"spec"`
}

// Check is a check with its phase resolved, or a group of alternatives.
type Check struct {
	scenario.CheckHeader
	Spec  check.Check `json:"spec,omitempty"`
	AnyOf []Check     `json:"anyOf,omitempty"`
}

// checkList is one of a trial's lists of checks.
type checkList struct {
	name   string // as in a scenario
	checks *[]Check
}

// deciding returns the lists of checks that decide an outcome.
func (t *Trial) deciding() []checkList {
	return []checkList{{scenario.SteadyList, &t.Steady}, {scenario.ExposureList, &t.Exposure},
		{scenario.SignatureList, &t.Signature}, {scenario.HealedList, &t.Healed}}
}

// checkLists returns all lists of checks.
func (t *Trial) checkLists() []checkList {
	return append(t.deciding(), checkList{scenario.InformationList, &t.Info})
}

// list returns the list of checks that has the name of one of a scenario's.
func (t *Trial) list(name string) *[]Check {
	all := t.checkLists()
	return all[slices.IndexFunc(all, func(l checkList) bool { return l.name == name })].checks
}

// The outcomes that a role calls for.
const (
	Reproduced    = "Reproduced"
	NotReproduced = "NotReproduced"
)
