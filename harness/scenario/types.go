// Package scenario reads scenario files (v1alpha1). It rejects unknown fields, remembers the position of every field,
// and leaves the spec of each kind as raw JSON, which the plan decodes into the kind's own type.
package scenario

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// The only group, version and kind of a scenario file.
const (
	APIVersion = "relapse.dev/v1alpha1"
	KindName   = "Scenario"
)

// Scenario declares one incident.
type Scenario struct {
	APIVersion string           `json:"apiVersion" jsonschema:"relapse.dev/v1alpha1"`
	Kind       string           `json:"kind" jsonschema:"Scenario"`
	Metadata   ScenarioMetadata `json:"metadata"`
	Spec       Spec             `json:"spec"`

	Origin *Origin           `json:"-"` // nil for a scenario made in memory
	Values map[string]string `json:"-"` // text of every parameter: set, implied or default; "" is not set
}

// Metadata names a scenario or a candidate. A scenario's name equals that of the file's folder.
type Metadata struct {
	Name string `json:"name"`
}

// ScenarioMetadata says which scenario it is, and under which kind of failure a catalogue lists it. Nothing of it changes
// a run, so --set doesn't reach it.
type ScenarioMetadata struct {
	Metadata
	Failure string `json:"failure" jsonschema:"how the subject fails: crash (its process ends), leak (it keeps what it no longer needs), loop (it does the same again and again, for nothing), wrong-answer (it answers, wrongly), lost-work (it never does what it was given to do, and goes on) or stuck (it waits for what doesn't come)"`
}

// Failures are the kinds of failure that a scenario can be listed under.
var Failures = []string{"crash", "leak", "loop", "wrong-answer", "lost-work", "stuck"}

// Spec describes the incident: its subject and arms, the loads and faults they get, and the checks of the evidence.
type Spec struct {
	Title       string   `json:"title" jsonschema:"one line"`
	Description string   `json:"description" jsonschema:"what happens in the incident"`
	Tried       *Tried   `json:"tried,omitempty" jsonschema:"which of the ways to the bug a run takes; the verdict names them if an arm survives"`
	References  []string `json:"references,omitempty" jsonschema:"pull requests, issues, post-mortems"`
	Relapse     string   `json:"relapse,omitempty" jsonschema:"the oldest version of relapse that can read the scenario, vX.Y.Z; an older one refuses it"`
	Subject     string   `json:"subject" jsonschema:"the component under test: kubelet"`
	Placement   string   `json:"placement" jsonschema:"what each arm has for itself: node (a worker node of a shared cluster), cluster (a cluster of the arm's version) or workload (a workload in a shared cluster); the default is node for a component that workers run, cluster for another component, and workload for what is none and has manifests"`
	Version     string   `json:"version" jsonschema:"the Kubernetes version of the clusters, vX.Y.Z; the default is the newest that relapse has clusters of; with placement cluster, the version of an arm that is a Kubernetes component takes precedence in the arm's cluster"`
	Seams       []string `json:"seams,omitempty" jsonschema:"proxies that sit in every arm from the start; relapse list seams has them"`
	Providers   []string `json:"providers,omitempty" jsonschema:"the providers that can make the scenario's clusters, the preferred one first: kind, processes; the default is kind"`

	Budget *metav1.Duration `json:"budget,omitempty" jsonschema:"the time that a nightly run has for all pairs and repeats of the scenario, builds included: 1h30m"`

	Nodes      *Nodes                       `json:"nodes,omitempty" jsonschema:"with placement workload, how many nodes the cluster has, by default one worker; with placement cluster, how many nodes are simulated"`
	Manifests  []Manifest                   `json:"manifests,omitempty" jsonschema:"files of objects that are applied before the steady state, in this order"`
	Parameters []Parameter                  `json:"parameters,omitempty" jsonschema:"values that --set changes by name; $(name) in spec stands for the value of the parameter"`
	Args       map[string]map[string]string `json:"args,omitempty" jsonschema:"flags of components, the same in every arm: component -> flag -> value; for kube-proxy, fields of its configuration instead, with dotted names and YAML values: conntrack.maxPerCore: 0"`
	Files      map[string]map[string]string `json:"files,omitempty" jsonschema:"files of components, the same in every arm: component -> file name -> text; the text is empty if the component writes the file; a flag whose value is the file name gets the path of the file; $(kubeconfig) in a text stands for the path of the component's kubeconfig"`
	Memory     map[string]string            `json:"memory,omitempty" jsonschema:"memory limits of components' static pods: component -> quantity such as 512Mi"`

	Constants  []Constant  `json:"constants,omitempty" jsonschema:"numbers of the subject, read from each arm's own source"`
	Pairs      []Pair      `json:"pairs" jsonschema:"pairs of a vulnerable and a fixed arm; one pair is the default"`
	Collectors []Collector `json:"collectors" jsonschema:"the collectors, which record the evidence"`
	Loads      []Item      `json:"loads,omitempty" jsonschema:"the loads, which give the cluster work through its API"`
	Faults     []Item      `json:"faults,omitempty" jsonschema:"the faults, which are injected in the fault phase and lifted before the recovery; none only if a load brings the incident about (trigger)"`
	Phases     Phases      `json:"phases" jsonschema:"how long steady, baseline, fault and recovery last; the defaults are {deadline: 3m}, {atLeast: 20s}, {deadline: 6m} and {atLeast: 20s, deadline: 5m}"`

	Steady    []Check `json:"steady" jsonschema:"checks that must be met before any fault is injected"`
	Exposure  []Check `json:"exposure" jsonschema:"checks that the fault took effect and that the subject reached the code in question"`
	Signature []Check `json:"signature" jsonschema:"checks that are the incident's fingerprint"`
	Healed    []Check `json:"healed" jsonschema:"checks that give positive proof that an arm is well"`
	Health    Health  `json:"health,omitzero" jsonschema:"which parts of the common health this scenario leaves out; every arm of every scenario is checked for the common health"`

	Information []Check       `json:"information,omitempty" jsonschema:"checks that reports show and that decide nothing"`
	Restart     *RestartProof `json:"restart,omitempty" jsonschema:"restarts each subject that shows the signature, once the evidence for judging is recorded"`
	Survey      *Survey       `json:"survey,omitempty" jsonschema:"which releases relapse survey asks about, and which packages make two of them alike"`
	Match       *Match        `json:"match,omitempty" jsonschema:"how relapse match recognises the incident in evidence from elsewhere"`
	Oracle      *Oracle       `json:"oracle,omitempty" jsonschema:"how relapse oracle runs the candidates in the folder candidates, next to the scenario's file"`
}

// Survey says which releases of the subject may have the bug. Packages are those that decide it: releases in a row in which
// their syntax is the same are expected to answer alike.
type Survey struct {
	Versions string   `json:"versions" jsonschema:"semver range of releases, which reaches beyond what is thought affected on both sides: >=1.32 <1.37"`
	Packages []string `json:"packages,omitempty" jsonschema:"import paths of the packages that have the bug, and of those that lead to it; the default is those that mutations change, and those of the functions that exposure and signature name"`
}

// Tried says which ways to the bug the faults and loads take. A run only shows that an arm survives those. Ways and Not
// are parts of a sentence, without a full stop.
type Tried struct {
	Ways string `json:"ways" jsonschema:"the ways to the bug that a run takes"`
	Not  string `json:"not" jsonschema:"known or conceivable ways to the bug that a run doesn't take"`
}

// String returns the text that a verdict shows.
func (t Tried) String() string {
	return fmt.Sprintf(
		"the way to the bug that was tried: %s; ways that were not tried: %s",
		t.Ways,
		t.Not,
	)
}

// Nodes says how many nodes a cluster has that all arms share. With the placements node and cluster the arms determine
// the number, except that of simulated nodes.
type Nodes struct {
	ControlPlanes int `json:"controlPlanes,omitempty" jsonschema:"control planes of the cluster; the default is 1"`
	Workers       int `json:"workers,omitempty" jsonschema:"worker nodes that run what the scenario deploys; placement workload needs at least 1"`
	Idle          int `json:"idle,omitempty" jsonschema:"additional worker nodes that run nothing of the scenario, for faults that must have no effect; the default is 0"`
	Simulated     int `json:"simulated,omitempty" jsonschema:"nodes that kwok simulates in each arm's cluster, with placement cluster and the provider processes, which has no kubelets; kind ignores the field"`
}

// Manifest is a file of Kubernetes objects in or below the scenario's folder. In the file, $(name) stands for one of
// Values. If the file is applied for each arm, $(arm), $(namespace) and $(image) stand for that arm's. $$(name) is the
// literal text $(name).
type Manifest struct {
	File   string            `json:"file" jsonschema:"the path of the file, relative to the scenario's folder"`
	Each   string            `json:"each,omitempty" jsonschema:"arm: the file is applied once for each arm, with that arm's namespace and image; the default is arm if the file asks for one of these or the arm's name, and else once for all arms"`
	Values map[string]Scalar `json:"values,omitempty" jsonschema:"values that $(name) in the file stands for: name -> value; the default is the parameters that the file names"`
}

// Parameter is a value of the scenario that a run may choose. $(name) stands for it, as a whole scalar of spec or
// within one; $$(name) is the literal text $(name). If the parameter has no value, a member of a mapping or list that
// is just $(name) is left out. So is a mapping or list that becomes empty by that. Fields with placeholders of their own,
// such as $(n), keep these (kinds.Entry.Placeholders).
type Parameter struct {
	Name    string            `json:"name" jsonschema:"what --set calls it; may contain dots: apiserver.memory"`
	Type    string            `json:"type" jsonschema:"the type of the parameter's values: integer, number, duration, quantity, boolean or string; without one, that of the default"`
	Default Scalar            `json:"default,omitempty" jsonschema:"its value unless it is set; a string, quantity or duration may go without"`
	Doc     string            `json:"doc" jsonschema:"what the parameter changes, in one sentence"`
	OneOf   []Scalar          `json:"oneOf,omitempty" jsonschema:"the only allowed values; the default is any value of the type"`
	Min     *Scalar           `json:"min,omitempty" jsonschema:"the smallest allowed value"`
	Max     *Scalar           `json:"max,omitempty" jsonschema:"the largest allowed value"`
	Implies map[string]Scalar `json:"implies,omitempty" jsonschema:"values that other parameters get while this parameter is set to anything but false: name -> value; a parameter that is set itself keeps its value"`
}

// The types of parameters. A number may have a fraction. A duration is in Go's form (1m30s), a quantity in Kubernetes'
// (512Mi).
const (
	TypeInteger  = "integer"
	TypeNumber   = "number"
	TypeDuration = "duration"
	TypeQuantity = "quantity"
	TypeBoolean  = "boolean"
	TypeString   = "string"
)

// Scalar is the text of a YAML scalar: 400, "400", true and 20s are all fine.
type Scalar = kinds.Scalar

// Constant is a number of the subject, read from each arm's own source when the arm is built.
type Constant struct {
	Name    string `json:"name"`
	Package string `json:"package" jsonschema:"the import path of the package that declares the constant"`
	Ident   string `json:"ident" jsonschema:"the Go constant's name"`
}

// Target selects where an item acts. The fields are Chaos Mesh's plus arm. An empty selector is refused.
type Target struct {
	Mode     string   `json:"mode" jsonschema:"how many of the targets that match the selector: one, all, fixed, fixed-percent or random-max-percent"`
	Value    string   `json:"value,omitempty" jsonschema:"the number of targets with mode fixed, at least 1; the percentage with modes fixed-percent and random-max-percent, 1 to 100; no other mode takes a value"`
	Arm      string   `json:"arm,omitempty" jsonschema:"the name of the only arm to act on; the default is every arm"`
	Selector Selector `json:"selector"`
}

// Selector says which nodes, pods or component are meant. The node "arm" stands for the nodes of the arm itself.
type Selector struct {
	Nodes          []string          `json:"nodes,omitempty" jsonschema:"names of nodes without the cluster's name; arm stands for the nodes of the arm itself"`
	NodeSelectors  map[string]string `json:"nodeSelectors,omitempty"`
	Namespaces     []string          `json:"namespaces,omitempty"`
	LabelSelectors map[string]string `json:"labelSelectors,omitempty"`
	Component      string            `json:"component,omitempty" jsonschema:"a component of the arm: kubelet"`
}

// Item is the envelope of loads and faults.
type Item struct {
	ItemHeader
	Spec json.RawMessage `json:"spec,omitempty"`
}

// ItemHeader says when and where a load or fault acts. Files and plans have it; they differ in the form of the spec.
type ItemHeader struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Target Target `json:"target"`
	// Phase is for loads only, because faults belong to the fault phase.
	Phase string           `json:"phase,omitempty" jsonschema:"for loads only, the phase in which the load runs: baseline (what the same work is like without the fault), fault (the default) or recovery (whether the subject works again)"`
	At    *metav1.Duration `json:"at,omitempty" jsonschema:"how long after the start of its phase the load or fault starts; the default is 0"`
	After *After           `json:"after,omitempty" jsonschema:"the load or fault that must take effect first, in the same phase and the same arms; a probe never takes effect; after replaces at"`
	// Trigger is for loads only. A scenario without faults has such a load.
	Trigger bool `json:"trigger,omitempty" jsonschema:"for loads only: the load brings the incident about by itself, as a fault does, so that the null control goes without it; the default is false"`
	// Duration is for faults only, because a load ends when its work is done.
	Duration *metav1.Duration `json:"duration,omitempty" jsonschema:"for faults only, how long the fault stays in force; the default is until the end of the fault phase; with a duration, a fault that comes after a load is injected again in each round of the load"`
}

// After makes an item start once another one took effect.
type After struct {
	Name string           `json:"name"`
	Plus *metav1.Duration `json:"plus,omitempty"`
}

// Health describes the common health that an arm must show in every scenario, in addition to healed: no more
// goroutines, memory and CPU use than in its own baseline.
type Health struct {
	Without []Omission `json:"without,omitempty" jsonschema:"the parts to leave out"`
}

// Omission leaves out one part of the common health. Its reason is for readers of the verdict, who have to do without
// that part.
type Omission struct {
	Part string `json:"part" jsonschema:"the part to leave out: stuck (goroutines), heap or cpu"`
	Why  string `json:"why" jsonschema:"why the part can't be checked in this scenario"`
}

// Collector is the envelope of collectors.
type Collector struct {
	CollectorHeader
	Providers []string        `json:"providers,omitempty" jsonschema:"the providers on which the collector runs; the default is all providers of the scenario"`
	Spec      json.RawMessage `json:"spec,omitempty"`
}

// CollectorHeader says when and what a collector records. It takes snapshots when a phase begins, at onset, and at the
// interval Every. Files and plans have it; they differ in the form of the spec.
type CollectorHeader struct {
	Name  string           `json:"name"`
	Kind  string           `json:"kind"`
	Every *metav1.Duration `json:"every,omitempty" jsonschema:"the interval between snapshots, in addition to the snapshots at phase marks and at onset"`
	// Component makes the evidence mere context: a component that all arms share proves nothing about one arm.
	Component string `json:"component,omitempty" jsonschema:"a component of the cluster to look at instead of the subject: kube-apiserver"`
}

// Phases says how long each phase lasts.
type Phases struct {
	Steady   DurationRange `json:"steady"`
	Baseline DurationRange `json:"baseline"`
	Fault    DurationRange `json:"fault"`
	Recovery DurationRange `json:"recovery"`
}

// DurationRange is the length of a phase. Between AtLeast and Deadline, steady waits for the steady checks, fault waits
// until each arm's exposure is met, and recovery ends once each arm's signature or healed checks are met. Fault gives up
// on an arm earlier once its loads and faults have been over for a while.
type DurationRange struct {
	AtLeast  metav1.Duration `json:"atLeast,omitzero" jsonschema:"the shortest time that the phase lasts; baseline needs it"`
	Deadline metav1.Duration `json:"deadline,omitzero" jsonschema:"the longest time that the phase lasts; steady, fault and recovery need it"`
}

// Check is the envelope of checks: either a kind with its spec, or a group of alternatives.
type Check struct {
	CheckHeader
	Spec  json.RawMessage `json:"spec,omitempty"`
	Pairs []string        `json:"pairs,omitempty" jsonschema:"the pairs in which the check is made; the default is all pairs"`
	// Providers may also stand on alternatives: if one provider can't see something, the group can ask for it in
	// another way.
	Providers []string `json:"providers,omitempty" jsonschema:"the providers on which the check is made; the default is all providers of the scenario"`
	AnyOf     []Check  `json:"anyOf,omitempty" jsonschema:"alternative checks, of which at least one must be met"`
}

// CheckHeader says which evidence a check reads. Files and plans have it; they differ in the form of the spec.
type CheckHeader struct {
	Name  string           `json:"name"`
	Kind  string           `json:"kind,omitempty"`
	Phase string           `json:"phase,omitempty" jsonschema:"the phase whose evidence is checked: steady, baseline, fault or recovery; the default is the probe's phase for a check of a probe, and else steady in the list steady, fault in exposure, and recovery in signature, healed and information"`
	After *metav1.Duration `json:"after,omitempty" jsonschema:"how long after the beginning of the phase the checked evidence starts; the default is 0"`
	Await string           `json:"await,omitempty" jsonschema:"what a run says that it waits for until the check is met, such as the kubelet to call its PLEG unhealthy; the default is the check's name; it decides nothing"`
}

// RestartProof restarts a subject once the data for judging is safe. If the restart cures the subject, that confirms
// the incident's diagnosis.
type RestartProof struct {
	Roles       []string        `json:"roles" jsonschema:"the roles of the arms to restart: vulnerable, fixed or candidate"`
	ReadyWithin metav1.Duration `json:"readyWithin" jsonschema:"the time within which the subject must be ready again"`
}
