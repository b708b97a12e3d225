package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// AllPairs as Options.Pair plans every pair.
const AllPairs = "all"

// CellLabel is the node label that says which cell a node belongs to.
const CellLabel = "relapse.dev/cell"

// Options is what a run is asked for beside its scenario. The zero value plans one trial of the default pair.
type Options struct {
	Pair       string            // "" is the default pair, AllPairs every one
	Repeat     int               // trials of each pair; 0 is 1
	Until      *Until            // trials go on until a rule is satisfied; Repeat is 0 or 1 then
	Seed       int64             // recorded; whatever draws lots depends on it alone
	Sequential bool              // one cell after the other
	NoFaults   bool              // the null control: everything but the faults
	Without    []string          // names of faults to leave out
	Arms       []string          // only the cells of these arms; none is all
	Candidates []Candidate       // further arms, those that are judged, beside each other
	Swap       map[string]string // arm -> the arm whose build it runs: a test of the harness itself
	NodeImage  string            // "" is auto
	Base       []byte            // the provider's own config
	Params     map[string]string // scenario.Override's settings
	FreeMemory int64             // bytes that clusters may use; 0 is unknown
	// Capabilities of the provider, if known already: what the faults need is compared with them.
	Capabilities *cluster.Capabilities
}

// Candidate is a further arm of a trial. Exactly one of Source and Known is set.
type Candidate struct {
	Source *scenario.Source // the user's, as the arm candidate; what it leaves open is taken from the fixed arm
	Known  *scenario.Known  // one of the scenario's own, as the arm of its name
}

// New resolves s and o into a plan. The error lists everything that stands against running it.
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
		NodeImage: o.NodeImage, Seed: o.Seed, Until: o.Until, Budget: Duration(scenario.Length(s.Spec.Budget)),
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
		return nil, fmt.Errorf("planning %s: repeat is %d, and trials go on until a rule is satisfied: want one of the two", s.Metadata.Name, o.Repeat)
	}
	var round []Trial
	for _, pair := range pairs {
		trial, err := newTrial(s, pair, o)
		if err != nil {
			return nil, fmt.Errorf("planning %s, pair %s: %w", s.Metadata.Name, pair.Name, err)
		}
		round = append(round, trial)
	}
	// Pairs take turns, so that whatever changes on the machine meanwhile is no difference between them.
	for range max(o.Repeat, 1) {
		for _, t := range round {
			t.ID = trialID(len(p.Trials) + 1)
			p.Trials = append(p.Trials, t)
		}
	}
	if err := p.validate(o.Capabilities); err != nil {
		return nil, err
	}
	// Trials of one pair share nothing, so that changing one changes no other.
	b, err := Encode(p)
	if err != nil {
		return nil, err
	}
	return Decode(b)
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
	return nil, fmt.Errorf("scenario %s has no pair %q: want one of %s, or %s", s.Metadata.Name, name, strings.Join(known, ", "), AllPairs)
}

func newTrial(s *scenario.Scenario, pair scenario.Pair, o Options) (Trial, error) {
	t := Trial{
		Pair: pair.Name, Subject: s.Spec.Subject, Placement: s.Spec.Placement,
		Seams: orEmpty(s.Spec.Seams), Constants: orEmpty(s.Spec.Constants),
		Sequential: o.Sequential, NoFaults: o.NoFaults,
		Phases: s.Spec.Phases, Restart: s.Spec.Restart, Modelled: slices.Clone(pair.Modelled),
	}
	var err error
	if t.Cells, t.Deviates, err = cells(pair, o); err != nil {
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

// fill decodes collectors, items and checks over their defaults.
func (t *Trial) fill(s *scenario.Scenario, o Options) error {
	var errs []error
	t.Collectors = []Collector{}
	for _, c := range s.Spec.Collectors {
		spec, err := whole(kinds.Collector, c.Kind, c.Name, c.Spec)
		errs = append(errs, err)
		t.Collectors = append(t.Collectors, Collector{Name: c.Name, Kind: c.Kind, Every: Duration(scenario.Length(c.Every)), Component: c.Component, Spec: spec})
	}
	var err error
	t.Loads, err = items(kinds.Load, s.Spec.Loads)
	errs = append(errs, err)
	t.Faults, err = items(kinds.Fault, s.Spec.Faults)
	errs = append(errs, err, t.leaveOut(o.Without))
	for _, l := range []struct {
		to    *[]Check
		from  []scenario.Check
		phase string
	}{
		{&t.Steady, s.Spec.Steady, check.Steady}, {&t.Exposure, s.Spec.Exposure, check.Fault},
		{&t.Signature, s.Spec.Signature, check.Recovery}, {&t.Healed, s.Spec.Healed, check.Recovery},
		{&t.Info, s.Spec.Information, check.Recovery},
	} {
		*l.to, err = checks(ofPair(l.from, t.Pair), l.phase)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.NoFaults {
		return nil
	}
	for _, f := range t.Faults {
		v, err := fault.New(f.Kind, f.Spec)
		if err != nil {
			return err
		}
		if m, ok := v.(fault.Modeller); ok {
			t.Modelled = append(t.Modelled, m.Modelled()...)
		}
	}
	return nil
}

// LoadsOf are the loads of a phase, fault or recovery.
func (t *Trial) LoadsOf(phase string) []Item {
	return slices.DeleteFunc(slices.Clone(t.Loads), func(l Item) bool { return cmp.Or(l.Phase, check.Fault) != phase })
}

// ofPair leaves out the checks that are meant for other pairs.
func ofPair(in []scenario.Check, pair string) []scenario.Check {
	return slices.DeleteFunc(slices.Clone(in), func(c scenario.Check) bool { return len(c.Pairs) > 0 && !slices.Contains(c.Pairs, pair) })
}

func orEmpty[T any](in []T) []T { return append([]T{}, in...) }

// decodeOver decodes a spec over its kind's defaults. Unknown fields and what the kind itself objects to are errors.
func decodeOver(category, kind string, spec json.RawMessage) (any, error) {
	v, err := kinds.Make[any](category, kind)
	if err != nil {
		return nil, err
	}
	if len(spec) > 0 {
		if err := kinds.DecodeStrictly(spec, v); err != nil {
			return nil, fmt.Errorf("decoding the spec of kind %s: %w", kind, err)
		}
	}
	if c, ok := v.(interface{ Validate() error }); ok {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// whole decodes a spec over its kind's defaults and encodes all of it again.
func whole(category, kind, name string, spec json.RawMessage) (json.RawMessage, error) {
	v, err := decodeOver(category, kind, spec)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", category, name, err)
	}
	// Patterns are full of angle brackets, which Marshal would make unreadable.
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the spec of %s %q: %w", category, name, err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func items(category string, in []scenario.Item) ([]Item, error) {
	out := []Item{}
	var errs []error
	for _, it := range in {
		spec, err := whole(category, it.Kind, it.Name, it.Spec)
		errs = append(errs, err)
		item := Item{
			Name: it.Name, Kind: it.Kind, Target: it.Target, At: Duration(scenario.Length(it.At)),
			Duration: Duration(scenario.Length(it.Duration)), Spec: spec,
		}
		if category == kinds.Load {
			item.Phase = cmp.Or(it.Phase, check.Fault)
		}
		if it.After != nil {
			item.After = &After{Name: it.After.Name, Plus: Duration(scenario.Length(it.After.Plus))}
		}
		out = append(out, item)
	}
	return out, errors.Join(errs...)
}

func checks(in []scenario.Check, phase string) ([]Check, error) {
	out := []Check{}
	var errs []error
	for _, c := range in {
		at := phase
		if c.Phase != "" {
			at = c.Phase
		}
		pc := Check{Name: c.Name, Kind: c.Kind, Phase: at, After: Duration(scenario.Length(c.After))}
		var err error
		if len(c.AnyOf) > 0 {
			pc.AnyOf, err = checks(c.AnyOf, at)
		} else {
			pc.Spec, err = whole(kinds.Check, c.Kind, c.Name, c.Spec)
		}
		errs = append(errs, err)
		out = append(out, pc)
	}
	return out, errors.Join(errs...)
}
