package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// AllPairs is the value of Options.Pair that plans every pair.
const AllPairs = "all"

// ArmLabel is the node label that says which arm a node belongs to.
const ArmLabel = "relapse.dev/arm"

// Options are the choices of a run that its scenario leaves open. The zero value plans one trial of the default pair.
type Options struct {
	Pair       string            // "" is the default pair, AllPairs all pairs
	Repeat     int               // trials of each pair; 0 is 1
	Until      *Until            // makes the run open-ended; Repeat is 0 or 1 then
	Seed       int64             // recorded; every random choice depends on it alone
	Sequential bool              // one arm after the other
	NoFaults   bool              // the null control: everything but the faults
	Without    []string          // names of faults to leave out
	Arms       []string          // only these; none is all
	Candidates []Candidate       // further arms of the same trial, which are judged
	Swap       map[string]string // arm -> the arm whose build it runs: a test of the harness itself
	Provider   string            // "" is the first of the scenario's
	NodeImage  string            // "" is auto
	Base       []byte            // the provider's own config
	Params     map[string]string // settings that the user makes; see Settings
	Oracle     bool              // the settings that the scenario has for running candidates count, too
	FreeMemory int64             // bytes that clusters may use; 0 is unknown
	// Capabilities are the provider's, if they are already known. They are compared with what the faults need.
	Capabilities *cluster.Capabilities
}

// Candidate is a further arm of a trial. Exactly one of Source and Known is set.
type Candidate struct {
	Source *scenario.Source        // the user's, as the arm "candidate"; the fixed arm fills in missing fields
	Of     string                  // sets candidates with a Source apart that share a trial: the arm is "candidate-" and this
	Known  *scenario.CandidateFile // one of the scenario's, as the arm of its name
}

// New plans a run of s with the choices o. The error lists everything that keeps the plan from being run. The plan
// shares data with s, which must not change as long as the plan is used.
//
// Mistakes in the scenario are Violations with their places in its file.
func New(s *scenario.Scenario, o Options) (*Plan, error) {
	layers := o.layers(s)
	o.Params = merged(layers...)
	base, err := override(s, layers...)
	if err != nil {
		return nil, err
	}
	pairs, err := selectPairs(base, o.Pair)
	if err != nil {
		return nil, err
	}
	if err := o.complete(base); err != nil {
		return nil, fmt.Errorf("planning %s: %w", s.Metadata.Name, err)
	}
	p := &Plan{
		Schema:    Schema,
		Scenario:  base.Metadata.Name,
		Title:     base.Spec.Title,
		Links:     base.Spec.References,
		Version:   base.Spec.Version,
		NodeImage: o.NodeImage,
		Seed:      o.Seed,
		Until:     o.Until,
		Budget:    base.Spec.Budget,
		Params:    o.Params,
		Values:    base.Values,
	}
	if o.Provider != providers.Kind {
		p.Provider = o.Provider
	}
	if base.Origin != nil {
		p.Source, p.Digest = filepath.ToSlash(base.Origin.File), base.Origin.Digest
	}
	var each []paired
	for _, pair := range pairs {
		own, err := forPair(s, base, pair, o, layers)
		if err != nil {
			return nil, base.Locate(err)
		}
		each = append(each, own)
	}
	// Pairs take turns, so that changes on the machine affect all of them alike.
	for range max(o.Repeat, 1) {
		for _, own := range each {
			t, err := newTrial(own, o)
			if err != nil {
				return nil, base.Locate(scenario.Within(err, "planning %s, pair %s", p.Scenario, own.pair.Name))
			}
			t.ID = trialID(len(p.Trials) + 1)
			p.Trials = append(p.Trials, t)
		}
	}
	if err := p.validate(o.Capabilities); err != nil {
		return nil, base.Locate(err)
	}
	return p, nil
}

// complete fills in the choices that were left open, and refuses those that s or other choices exclude.
func (o *Options) complete(s *scenario.Scenario) error {
	if o.Repeat < 0 {
		return fmt.Errorf("repeat is %d: want at least 1", o.Repeat)
	}
	if o.Until != nil && o.Repeat > 1 {
		return fmt.Errorf("--repeat %d and --until-confident are mutually exclusive", o.Repeat)
	}
	known := s.Spec.RunsOn()
	o.NodeImage, o.Provider = cmp.Or(o.NodeImage, "auto"), cmp.Or(o.Provider, known[0])
	if !slices.Contains(known, o.Provider) {
		return fmt.Errorf(
			"it can't run on the provider %s, only on %s (spec.providers)",
			o.Provider,
			strings.Join(known, ", "),
		)
	}
	return nil
}

// newTrial plans a trial of a pair, which has no id yet. It shares no spec with other trials.
func newTrial(own paired, o Options) (Trial, error) {
	s, pair := own.Scenario, own.pair
	t := Trial{
		Pair: pair.Name, About: strings.TrimSpace(pair.Doc), Subject: s.Spec.Subject,
		Placement: s.Spec.Placement,
		Seams:     orEmpty(s.Spec.Seams), Constants: orEmpty(s.Spec.Constants),
		Sequential: o.Sequential, NoFaults: o.NoFaults,
		Phases: s.Spec.Phases, Restart: s.Spec.Restart, Modelled: slices.Clone(pair.Modelled),
		Tried: s.Spec.Tried, Set: own.set,
	}
	t.Modelled = append(t.Modelled, modelledBy(o.Provider, t.Placement, simulated(s, o.Provider))...)
	var err error
	if pair.Arms, err = withFixtureFolders(pair.Arms, s); err != nil {
		return t, err
	}
	if t.Arms, t.Deviates, err = selectArms(pair, o); err != nil {
		return t, err
	}
	if err := t.Place().arrange(&t, s, o); err != nil {
		return t, err
	}
	if err := t.fill(s, o); err != nil {
		return t, err
	}
	if err := t.readable(); err != nil {
		return t, err
	}
	if o.NoFaults {
		t.Deviates.add(CodeOption, "no fault is injected: this is the null control")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		t.Deviates = append(t.Deviates, setTo(name, o.Params[name]))
	}
	return t, nil
}

// fill decodes collectors, loads, faults and checks over their defaults.
func (t *Trial) fill(s *scenario.Scenario, o Options) error {
	t.Collectors, t.Loads, t.Faults = []Collector{}, []Load{}, []Fault{}
	var errs []error
	for _, c := range s.Spec.Collectors {
		spec, err := decode[capture.Collector](kinds.Collector, c.Kind, c.Name, c.Spec)
		errs = append(errs, err)
		c.Every = orZero(c.Every)
		t.Collectors = append(
			t.Collectors,
			Collector{CollectorHeader: c.CollectorHeader, Spec: spec},
		)
	}
	for _, it := range s.Spec.Loads {
		spec, err := decode[load.Load](kinds.Load, it.Kind, it.Name, it.Spec)
		errs = append(errs, err)
		it.Phase = cmp.Or(it.Phase, check.Fault)
		t.Loads = append(t.Loads, Load{ItemHeader: withTimes(it.ItemHeader), Spec: spec})
	}
	for _, it := range s.Spec.Faults {
		spec, err := decode[fault.Fault](kinds.Fault, it.Kind, it.Name, it.Spec)
		errs = append(errs, err)
		t.Faults = append(t.Faults, Fault{ItemHeader: withTimes(it.ItemHeader), Spec: spec})
	}
	for _, l := range s.Spec.CheckLists() {
		var err error
		*t.list(l.Name), err = checks(*l.Checks, l.Phase)
		errs = append(errs, err, t.validateFaults(*t.list(l.Name), l.Name))
	}
	errs = append(errs, t.leaveOut(o.Without))
	if err := errors.Join(append(errs, t.addHealth(s), t.addProofs())...); err != nil {
		return err
	}
	if o.NoFaults {
		return nil
	}
	for _, f := range t.Faults {
		if m, ok := f.Spec.(fault.Modeller); ok {
			t.Modelled = append(t.Modelled, m.Modelled()...)
		}
	}
	return nil
}

// LoadsOf returns the loads of a phase: baseline, fault or recovery.
func (t *Trial) LoadsOf(phase string) []Load {
	return slices.DeleteFunc(
		slices.Clone(t.Loads),
		func(l Load) bool { return cmp.Or(l.Phase, check.Fault) != phase },
	)
}

func orEmpty[T any](in []T) []T { return append([]T{}, in...) }

// decode reads a spec of the scenario over the defaults of its kind.
func decode[T any](category, kind, name string, spec json.RawMessage) (T, error) {
	v, err := kinds.Decode[T](category, kind, spec)
	if err != nil {
		return v, fmt.Errorf("%s %q: %w", category, name, err)
	}
	return v, nil
}

// orZero returns d, or a duration of 0 if it is left out.
func orZero(d *metav1.Duration) *metav1.Duration { return cmp.Or(d, &metav1.Duration{}) }

// withTimes returns it with all times that a plan states. A fault that isn't lifted early has no duration.
func withTimes(it scenario.ItemHeader) scenario.ItemHeader {
	it.At = orZero(it.At)
	if it.After != nil {
		it.After = &scenario.After{Name: it.After.Name, Plus: orZero(it.After.Plus)}
	}
	if scenario.Length(it.Duration) == 0 {
		it.Duration = nil
	}
	return it
}

// checks decodes a list of checks, of which those that name no phase are of the given one.
func checks(in []scenario.Check, phase string) ([]Check, error) {
	var out []Check
	var errs []error
	for _, c := range in {
		c.Phase, c.After = cmp.Or(c.Phase, phase), orZero(c.After)
		pc := Check{CheckHeader: c.CheckHeader}
		var err error
		if len(c.AnyOf) > 0 {
			pc.AnyOf, err = checks(c.AnyOf, c.Phase)
		} else {
			pc.Spec, err = decode[check.Check](kinds.Check, c.Kind, c.Name, c.Spec)
		}
		errs = append(errs, err)
		out = append(out, pc)
	}
	return out, errors.Join(errs...)
}
