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
	Params     map[string]string // scenario.Override's settings
	FreeMemory int64             // bytes that clusters may use; 0 is unknown
	// Capabilities are the provider's, if they are already known. They are compared with what the faults need.
	Capabilities *cluster.Capabilities
}

// Candidate is a further arm of a trial. Exactly one of Source and Known is set.
type Candidate struct {
	Source *scenario.Source        // the user's, as the arm "candidate"; the fixed arm fills in missing fields
	Known  *scenario.CandidateFile // one of the scenario's, as the arm of its name
}

// New plans a run of s with the choices o. The error lists everything that keeps the plan from being run.
func New(s *scenario.Scenario, o Options) (*Plan, error) {
	if len(o.Params) > 0 {
		changed, err := scenario.Override(s, o.Params)
		if err != nil {
			return nil, fmt.Errorf("applying settings to scenario %s: %w", s.Metadata.Name, err)
		}
		s = changed
	}
	pairs, err := selectPairs(s, o.Pair)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Schema: Schema, Scenario: s.Metadata.Name, Title: s.Spec.Title, Version: s.Spec.Version,
		NodeImage: o.NodeImage, Seed: o.Seed, Until: o.Until, Budget: s.Spec.Budget,
		Params: o.Params, Values: maps.Clone(s.Values),
	}
	if p.NodeImage == "" {
		p.NodeImage = "auto"
	}
	if s.Origin != nil {
		p.Source, p.Digest = filepath.ToSlash(s.Origin.File), s.Origin.Digest
	}
	if o.Repeat < 0 {
		return nil, fmt.Errorf("planning %s: repeat is %d: want at least 1", s.Metadata.Name, o.Repeat)
	}
	if o.Until != nil && o.Repeat > 1 {
		return nil, fmt.Errorf("planning %s: --repeat %d and --until-confident are mutually exclusive", s.Metadata.Name, o.Repeat)
	}
	var round []Trial
	for _, pair := range pairs {
		own, set, err := withPairOverrides(s, pair, o.Params)
		if err == nil {
			own, err = onProvider(own, &o)
		}
		if err != nil {
			return nil, err
		}
		trial, err := newTrial(own, pair, o)
		if err != nil {
			return nil, fmt.Errorf("planning %s, pair %s: %w", s.Metadata.Name, pair.Name, err)
		}
		trial.Set = set
		round = append(round, trial)
	}
	if o.Provider != providers.Kind {
		p.Provider = o.Provider
	}
	// Pairs take turns, so that changes on the machine affect all of them alike.
	for range max(o.Repeat, 1) {
		for _, t := range round {
			t.ID = trialID(len(p.Trials) + 1)
			p.Trials = append(p.Trials, t)
		}
	}
	// Decoding gives each trial its own copy of everything, so that changing one trial changes no other.
	b, err := Encode(p)
	if err != nil {
		return nil, err
	}
	if p, err = Read(b); err != nil {
		return nil, err
	}
	if err := p.validate(o.Capabilities); err != nil {
		return nil, err
	}
	return p, nil
}

func selectPairs(s *scenario.Scenario, name string) ([]scenario.Pair, error) {
	pairs := s.Spec.Pairs
	if name == AllPairs && len(pairs) > 0 {
		return pairs, nil
	}
	var known []string
	for _, p := range pairs {
		known = append(known, p.Name)
		if p.Name == name || (name == "" && (p.Default || len(pairs) == 1)) {
			return []scenario.Pair{p}, nil
		}
	}
	return nil, fmt.Errorf("scenario %s has no pair %q: want one of %s, or %s", s.Metadata.Name, name,
		strings.Join(known, ", "), AllPairs)
}

func newTrial(s *scenario.Scenario, pair scenario.Pair, o Options) (Trial, error) {
	s = withArgs(s, pair)
	t := Trial{
		Pair: pair.Name, Subject: s.Spec.Subject, Placement: s.Spec.Placement,
		Seams: orEmpty(s.Spec.Seams), Constants: orEmpty(s.Spec.Constants),
		Sequential: o.Sequential, NoFaults: o.NoFaults,
		Phases: s.Spec.Phases, Restart: s.Spec.Restart, Modelled: slices.Clone(pair.Modelled),
		Tried: s.Spec.Tried,
	}
	t.Modelled = append(t.Modelled, modelledBy(o.Provider, t.Placement, simulated(s, o.Provider))...)
	var err error
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
		t.Deviates = append(t.Deviates, "no fault is injected: this is the null control")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Params)) {
		t.Deviates = append(t.Deviates, fmt.Sprintf("%s is set to %s", name, o.Params[name]))
	}
	return t, nil
}

// withPairOverrides returns s with the settings of pair applied, and those settings. Settings in given, which the user
// made, win.
func withPairOverrides(s *scenario.Scenario, pair scenario.Pair, given map[string]string) (*scenario.Scenario, map[string]string, error) {
	set := map[string]string{}
	for name, v := range pair.Set {
		if _, ok := given[name]; !ok {
			set[name] = string(v)
		}
	}
	if len(set) == 0 {
		return s, nil, nil
	}
	own, err := scenario.Override(s, set)
	if err != nil {
		return nil, nil, fmt.Errorf("applying what pair %s of scenario %s sets: %w", pair.Name, s.Metadata.Name, err)
	}
	return own, set, nil
}

// withArgs returns s with the flags of pair added to its own.
func withArgs(s *scenario.Scenario, pair scenario.Pair) *scenario.Scenario {
	if len(pair.Args) == 0 {
		return s
	}
	out := *s
	out.Spec.Args = map[string]map[string]string{}
	for _, args := range []map[string]map[string]string{s.Spec.Args, pair.Args} {
		for component, flags := range args {
			if out.Spec.Args[component] == nil {
				out.Spec.Args[component] = map[string]string{}
			}
			maps.Copy(out.Spec.Args[component], flags)
		}
	}
	return &out
}

// fill decodes collectors, loads, faults and checks over their defaults.
func (t *Trial) fill(s *scenario.Scenario, o Options) error {
	t.Collectors, t.Loads, t.Faults = []Collector{}, []Load{}, []Fault{}
	var errs []error
	for _, c := range s.Spec.Collectors {
		spec, err := decode[capture.Collector](kinds.Collector, c.Kind, c.Name, c.Spec)
		errs = append(errs, err)
		c.Every = orZero(c.Every)
		t.Collectors = append(t.Collectors, Collector{CollectorHeader: c.CollectorHeader, Spec: spec})
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
	errs = append(errs, t.leaveOut(o.Without))
	for _, l := range []struct {
		to    *[]Check
		from  []scenario.Check
		phase string
	}{
		{&t.Steady, s.Spec.Steady, check.Steady}, {&t.Exposure, s.Spec.Exposure, check.Fault},
		{&t.Signature, s.Spec.Signature, check.Recovery}, {&t.Healed, s.Spec.Healed, check.Recovery},
		{&t.Info, s.Spec.Information, check.Recovery},
	} {
		var err error
		*l.to, err = checks(ofPair(l.from, t.Pair), l.phase)
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, t.addHealth(s))...); err != nil {
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
	return slices.DeleteFunc(slices.Clone(t.Loads), func(l Load) bool { return cmp.Or(l.Phase, check.Fault) != phase })
}

// ofPair returns the checks of in that are made in pair.
func ofPair(in []scenario.Check, pair string) []scenario.Check {
	return slices.DeleteFunc(slices.Clone(in),
		func(c scenario.Check) bool { return len(c.Pairs) > 0 && !slices.Contains(c.Pairs, pair) })
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

func checks(in []scenario.Check, phase string) ([]Check, error) {
	out := []Check{}
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
