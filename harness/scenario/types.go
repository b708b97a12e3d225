// Package scenario reads scenario files (v1alpha1). It rejects unknown fields, remembers the position of every field,
// and leaves the spec of each kind as raw JSON, which the plan decodes into the kind's own type.
package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The only group, version and kind of a scenario file.
const (
	APIVersion = "relapse.dev/v1alpha1"
	KindName   = "Scenario"
)

// Scenario declares one incident.
type Scenario struct {
	APIVersion string   `json:"apiVersion" jsonschema:"relapse.dev/v1alpha1"`
	Kind       string   `json:"kind" jsonschema:"Scenario"`
	Metadata   Metadata `json:"metadata"`
	Spec       Spec     `json:"spec"`

	Origin *Origin           `json:"-"` // nil for a scenario made in memory
	Values map[string]string `json:"-"` // text of every parameter: set, implied or default; "" is not set
}

// Metadata names the scenario. Name equals the name of the file's folder.
type Metadata struct {
	Name string `json:"name"`
}

// Spec describes the incident: its subject and arms, the loads and faults they get, and the checks of the evidence.
type Spec struct {
	Title       string   `json:"title" jsonschema:"one line"`
	Description string   `json:"description" jsonschema:"what happens, for people"`
	Tried       *Tried   `json:"tried,omitempty" jsonschema:"which of the ways to the bug a run takes; named in the verdict over an arm that survives it"`
	References  []string `json:"references,omitempty" jsonschema:"pull requests, issues, post-mortems"`
	Subject     string   `json:"subject" jsonschema:"the component under test: kubelet"`
	Placement   string   `json:"placement" jsonschema:"what an arm gets to itself: a node, a cluster of its arm's version, or a workload"`
	Version     string   `json:"version" jsonschema:"the cluster's Kubernetes version, vX.Y.Z; with placement cluster an arm's own goes first"`
	Seams       []string `json:"seams,omitempty" jsonschema:"proxies that sit in every arm from the start: cri, etcd"`
	Providers   []string `json:"providers,omitempty" jsonschema:"what can make its clusters, the one to take first in front: kind, processes; none is kind"`

	Budget *metav1.Duration `json:"budget,omitempty" jsonschema:"the time that a nightly run has for all its pairs and repeats, builds included: 1h30m"`

	Nodes      *Nodes                       `json:"nodes,omitempty" jsonschema:"how many nodes the cluster of placement workload has, and how many are simulated with placement cluster"`
	Manifests  []Manifest                   `json:"manifests,omitempty" jsonschema:"objects that are applied before the steady state, in this order"`
	Parameters []Parameter                  `json:"parameters,omitempty" jsonschema:"what --set changes by name; $(name) in spec stands for the value"`
	Args       map[string]map[string]string `json:"args,omitempty" jsonschema:"flags of components, the same in every arm: component -> flag -> value; of kube-proxy the fields of its configuration, by dotted names and with YAML for values: conntrack.maxPerCore: 0"`
	Files      map[string]map[string]string `json:"files,omitempty" jsonschema:"files of components, the same in every arm: component -> name -> text, empty for one that the component writes; a flag whose value is the name gets the path"`
	Memory     map[string]string            `json:"memory,omitempty" jsonschema:"memory limits of components' static pods: component -> quantity"`

	Constants  []Constant  `json:"constants,omitempty" jsonschema:"numbers of the subject, read from each arm's own source"`
	Pairs      []Pair      `json:"pairs" jsonschema:"the couples of arms, one of them the default"`
	Collectors []Collector `json:"collectors" jsonschema:"what records the evidence"`
	Loads      []Item      `json:"loads,omitempty" jsonschema:"what is asked of the cluster through its API"`
	Faults     []Item      `json:"faults" jsonschema:"what is injected and later recovered"`
	Phases     Phases      `json:"phases" jsonschema:"how long steady, baseline, fault and recovery last"`

	Steady    []Check `json:"steady" jsonschema:"checks that hold before any fault"`
	Exposure  []Check `json:"exposure" jsonschema:"checks that the fault took effect and that the subject reached the code in question"`
	Signature []Check `json:"signature" jsonschema:"checks that are the incident's fingerprint"`
	Healed    []Check `json:"healed" jsonschema:"checks that an arm is well, by positive proof"`
	Health    Health  `json:"health,omitzero" jsonschema:"what is left out of the health that is asked of every arm of every scenario"`

	Information []Check       `json:"information,omitempty" jsonschema:"checks that are shown and decide nothing"`
	Restart     *RestartProof `json:"restart,omitempty" jsonschema:"restarts a subject once the data for judging is safe"`
	Match       *Match        `json:"match,omitempty" jsonschema:"how relapse match knows the incident in somebody else's evidence"`
	Oracle      *Oracle       `json:"oracle,omitempty" jsonschema:"how relapse oracle runs the candidates that lie beside the file"`
}

// Tried says which ways to the bug the faults and loads take. A run only shows that an arm survives those. Ways and Not
// are parts of a sentence, without a full stop.
type Tried struct {
	Ways string `json:"ways" jsonschema:"the ways to the bug that a run takes"`
	Not  string `json:"not" jsonschema:"ways to the bug that are known, or can be thought of, and that a run doesn't take"`
}

// String returns the text that a verdict shows.
func (t Tried) String() string {
	return fmt.Sprintf("the way to the bug that was tried: %s; ways that were not tried: %s", t.Ways, t.Not)
}

// Nodes says how many nodes a cluster has that all arms share. With the placements node and cluster the arms determine
// the number, except that of simulated nodes.
type Nodes struct {
	ControlPlanes int `json:"controlPlanes,omitempty" jsonschema:"1 unless given"`
	Workers       int `json:"workers,omitempty" jsonschema:"nodes that run what the scenario deploys"`
	Idle          int `json:"idle,omitempty" jsonschema:"further workers, which run none of it, for faults that must not matter"`
	Simulated     int `json:"simulated,omitempty" jsonschema:"nodes that kwok simulates in the cluster of each arm, with placement cluster and where the provider has no kubelets (processes)"`
}

// Manifest is a file of Kubernetes objects in or below the scenario's folder. In the file, $(name) stands for one of
// Values. If the file is applied for each arm, $(arm), $(namespace) and $(image) stand for that arm's. $$(name) is the
// literal text $(name).
type Manifest struct {
	File   string            `json:"file" jsonschema:"relative to the scenario's folder"`
	Each   string            `json:"each,omitempty" jsonschema:"arm: applied once for each arm, with its namespace and image"`
	Values map[string]Scalar `json:"values,omitempty" jsonschema:"what $(name) in the file stands for"`
}

// Parameter is a value of the scenario that a run may choose. $(name) stands for it, as a whole scalar of spec or
// within one; $$(name) is the literal text $(name). If the parameter has no value, a member of a mapping or list that
// is just $(name) is left out. So is a mapping or list that becomes empty by that.
type Parameter struct {
	Name    string            `json:"name" jsonschema:"what --set calls it; may contain dots: apiserver.memory"`
	Type    string            `json:"type" jsonschema:"of its values"`
	Default Scalar            `json:"default,omitempty" jsonschema:"its value unless it is set; a string, quantity or duration may go without"`
	Doc     string            `json:"doc" jsonschema:"what it changes, in one sentence"`
	OneOf   []Scalar          `json:"oneOf,omitempty" jsonschema:"the only values it may have"`
	Min     *Scalar           `json:"min,omitempty" jsonschema:"the least value it may have"`
	Max     *Scalar           `json:"max,omitempty" jsonschema:"the greatest value it may have"`
	Implies map[string]Scalar `json:"implies,omitempty" jsonschema:"values of other parameters while this one is set, unless they are set themselves"`
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
type Scalar string

// UnmarshalJSON reads a string unchanged, and a number or boolean as the text of its JSON.
func (s *Scalar) UnmarshalJSON(b []byte) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*s = Scalar(v)
	case json.Number, bool:
		*s = Scalar(fmt.Sprint(v))
	default:
		return fmt.Errorf("%s is no scalar", b)
	}
	return nil
}

// Constant is a number of the subject, read from each arm's own source when the arm is built.
type Constant struct {
	Name    string `json:"name"`
	Package string `json:"package" jsonschema:"import path"`
	Ident   string `json:"ident" jsonschema:"the Go constant's name"`
}

// Pair is a vulnerable and a fixed arm. A run uses the default pair unless it names another.
type Pair struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc,omitempty"`
	Default  bool     `json:"default,omitempty"`
	Modelled []string `json:"modelled,omitempty" jsonschema:"what this pair imitates, one sentence each; named in the verdict"`
	// Args are for versions that need a flag which others refuse. Such a pair takes no candidates, which may be of
	// other versions.
	Args map[string]map[string]string `json:"args,omitempty" jsonschema:"flags as in spec.args, beside those and in both arms of this pair only; such a pair takes no candidates"`
	// Set is, for example, for arms that are slower than those of other pairs.
	Set  map[string]Scalar `json:"set,omitempty" jsonschema:"settings that this pair's trials have unless --set says otherwise"`
	Arms []Arm             `json:"arms"`
}

// The roles of arms.
const (
	Vulnerable = "vulnerable"
	Fixed      = "fixed"
	Candidate  = "candidate"
)

// Arm is one build of the subject.
type Arm struct {
	Name   string `json:"name"`
	Role   string `json:"role" jsonschema:"vulnerable or fixed; candidate is the user's"`
	Source Source `json:"source"`
}

// Source says what an arm is built from. Binary is the user's executable and is used unchanged.
type Source struct {
	// Fixture is the source of a subject that is part of this repository.
	Fixture   string     `json:"fixture,omitempty" jsonschema:"a folder of fixtures/ with a go.mod of its own"`
	Module    string     `json:"module,omitempty"`
	Version   string     `json:"version,omitempty"`
	Package   string     `json:"package,omitempty"`
	Mutations []Mutation `json:"mutations,omitempty"`
	// Replace is for pairs whose arms differ in the version of a module that the program requires.
	Replace map[string]string `json:"replace,omitempty" jsonschema:"module -> the version that is built instead of the one that its go.mod requires"`
	// Unoptimized is for incidents that depend on memory staying reachable which a current compiler would free.
	Unoptimized []string `json:"unoptimized,omitempty" jsonschema:"import paths of packages that are compiled without optimization"`
	// Race is for arms whose race detector is to name both sides of a race. Such arms are several times slower.
	Race   bool   `json:"race,omitempty" jsonschema:"built with Go's race detector, which needs a C compiler"`
	Dir    string `json:"dir,omitempty" jsonschema:"the module's source on this machine instead of Module@Version"`
	Binary string `json:"binary,omitempty" jsonschema:"an executable on this machine"`
	// The remaining fields are for candidates only. With Binary, Image and NodeImage, Version is the version that the
	// executable reports, "" if it reports none.
	Fork      string `json:"fork,omitempty" jsonschema:"PATH@VERSION of a published fork that replaces the module"`
	Image     string `json:"image,omitempty" jsonschema:"an image that holds the executable: a reference that the engine knows, or an archive"`
	NodeImage string `json:"nodeImage,omitempty" jsonschema:"a node image whose kubelet is taken: a reference or an archive"`
}

// Given reports whether the source is an existing executable, in whatever way it was built.
func (s Source) Given() bool { return s.Binary != "" || s.Image != "" || s.NodeImage != "" }

// Published reports whether the source is Module as it was published at Version.
func (s Source) Published() bool {
	return s.Module != "" && s.Version != "" && s.Dir == "" && s.Fork == "" && s.Fixture == "" && !s.Given()
}

// Mutation is a semantic rewrite of the source. It must change exactly Sites places, or the build fails.
type Mutation struct {
	Kind     string          `json:"kind"`
	Sites    int             `json:"sites" jsonschema:"how many places it must change; any other number fails the build"`
	Versions string          `json:"versions,omitempty" jsonschema:"semver range in which it applies"`
	Spec     json.RawMessage `json:"spec"`
}

// Target selects where an item acts. The fields are Chaos Mesh's plus arm. An empty selector is refused.
type Target struct {
	Mode     string   `json:"mode" jsonschema:"how many of what the selector matches: one, all, fixed, fixed-percent, random-max-percent"`
	Value    string   `json:"value,omitempty" jsonschema:"how many, with mode fixed; how many percent, with the modes of percent"`
	Arm      string   `json:"arm,omitempty" jsonschema:"one arm's name; '' is every arm"`
	Selector Selector `json:"selector"`
}

// Selector says which nodes, pods or component are meant. The node "arm" stands for the nodes of the arm itself.
type Selector struct {
	Nodes          []string          `json:"nodes,omitempty" jsonschema:"node names relative to the cluster"`
	NodeSelectors  map[string]string `json:"nodeSelectors,omitempty"`
	Namespaces     []string          `json:"namespaces,omitempty"`
	LabelSelectors map[string]string `json:"labelSelectors,omitempty"`
	Component      string            `json:"component,omitempty" jsonschema:"a component of the arm: kubelet"`
}

// Item is the envelope of loads and faults.
type Item struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Target Target `json:"target"`
	// Phase is for loads only, because faults belong to the fault phase.
	Phase string           `json:"phase,omitempty" jsonschema:"when a load runs: baseline, to see what the same work is like without the fault; fault, which is the default; or recovery, to see whether the subject works again"`
	At    *metav1.Duration `json:"at,omitempty" jsonschema:"from the start of its phase"`
	After *After           `json:"after,omitempty" jsonschema:"or from when another item took effect"`
	// Duration is for faults only, because a load ends when its work is done.
	Duration *metav1.Duration `json:"duration,omitempty" jsonschema:"it lifts itself after this, and comes again with each round of the load it comes after"`
	Spec     json.RawMessage  `json:"spec,omitempty"`
}

// After makes an item start once another one took effect.
type After struct {
	Name string           `json:"name"`
	Plus *metav1.Duration `json:"plus,omitempty"`
}

// Health describes the common health that an arm must show in every scenario, in addition to healed: no more
// goroutines, memory and CPU use than in its own baseline.
type Health struct {
	Without []Omission `json:"without,omitempty" jsonschema:"parts that are not asked"`
}

// Omission leaves out one part of the common health. Its reason is for readers of the verdict, who have to do without
// that part.
type Omission struct {
	Part string `json:"part" jsonschema:"stuck (goroutines), heap or cpu"`
	Why  string `json:"why" jsonschema:"why it can't be asked here"`
}

// Collector is the envelope of collectors. A collector takes snapshots when a phase begins, at onset, and at the
// interval Every.
type Collector struct {
	Name  string           `json:"name"`
	Kind  string           `json:"kind"`
	Every *metav1.Duration `json:"every,omitempty" jsonschema:"how often a snapshot is taken beside phase marks and onset"`
	// Component makes the evidence mere context: a component that all arms share proves nothing about one arm.
	Component string          `json:"component,omitempty" jsonschema:"a component of the cluster to look at instead of the subject: kube-apiserver"`
	Providers []string        `json:"providers,omitempty" jsonschema:"only on these providers; none is all of the scenario's"`
	Spec      json.RawMessage `json:"spec,omitempty"`
}

// Phases says how long each phase lasts.
type Phases struct {
	Steady   DurationRange `json:"steady"`
	Baseline DurationRange `json:"baseline"`
	Fault    DurationRange `json:"fault"`
	Recovery DurationRange `json:"recovery"`
}

// DurationRange is the length of a phase. Between AtLeast and Deadline, steady waits for the steady checks, fault waits
// until each arm's exposure is met, and recovery ends once each arm's signature or healed checks are met.
type DurationRange struct {
	AtLeast  metav1.Duration `json:"atLeast,omitzero" jsonschema:"the shortest it lasts"`
	Deadline metav1.Duration `json:"deadline,omitzero" jsonschema:"the longest it lasts"`
}

// Check is the envelope of checks: either a kind with its spec, or a group of alternatives.
type Check struct {
	Name  string           `json:"name"`
	Kind  string           `json:"kind,omitempty"`
	Phase string           `json:"phase,omitempty" jsonschema:"steady, baseline, fault, recovery; the list it stands in has a default"`
	After *metav1.Duration `json:"after,omitempty" jsonschema:"from where the phase was seen to begin"`
	Spec  json.RawMessage  `json:"spec,omitempty"`
	Pairs []string         `json:"pairs,omitempty" jsonschema:"only in these pairs; none is all"`
	// Providers may also stand on alternatives: if one provider can't see something, the group can ask for it in
	// another way.
	Providers []string `json:"providers,omitempty" jsonschema:"only on these providers; none is all of the scenario's"`
	AnyOf     []Check  `json:"anyOf,omitempty" jsonschema:"alternatives, of which one has to be met"`
}

// RestartProof restarts a subject once the data for judging is safe. If the restart cures the subject, that confirms
// the incident's diagnosis.
type RestartProof struct {
	Roles       []string        `json:"roles" jsonschema:"which arms: vulnerable"`
	ReadyWithin metav1.Duration `json:"readyWithin" jsonschema:"how soon the subject must be ready again"`
}
