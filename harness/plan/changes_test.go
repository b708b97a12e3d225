package plan_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A plan that was edited says how it differs from its scenario's, wherever that is.
func TestNoteChanges(t *testing.T) {
	s := load(t)
	for _, c := range []struct {
		name    string
		options plan.Options
		edit    func(*plan.Plan, *plan.Trial)
		want    []string
	}{
		{"nothing was edited", plan.Options{}, func(*plan.Plan, *plan.Trial) {}, nil},
		{"a check is cut out", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Healed = t.Healed[1:] },
			[]string{"its plan lacks the scenario's healed.advancing"}},
		{"a check asks later", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Signature[0].After.Duration = time.Second },
			[]string{"signature.stuck.after is 1s, and the scenario has 1m0s"}},
		{"a check is moved", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) {
			t.Exposure, t.Steady = t.Exposure[1:], append(t.Steady, t.Exposure[0])
		}, []string{"its plan lacks the scenario's exposure.reached", "steady.reached is none of the scenario's"}},
		{"an arm is of another version", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Arms[1].Source.Version = "v1.34.1" },
			[]string{"arms.fixed.source.version is v1.34.1, and the scenario has v1.34.4"}},
		{"an arm is to come out differently", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Arms[1].Expected = plan.Reproduced },
			[]string{"arms.fixed.expected is Reproduced, and the scenario has NotReproduced"}},
		{"a fault is cut out", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Faults = t.Faults[:1] },
			[]string{"fault flood is left out", "modelled is none of the scenario's"}},
		{"that a fault is left out is not said", plan.Options{Without: []string{"flood"}}, func(_ *plan.Plan, t *plan.Trial) { t.Deviates = nil },
			[]string{"fault flood is left out"}},
		{"that there is no fault is not said", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.NoFaults = true },
			[]string{"no fault is injected: this is the null control", "modelled is none of the scenario's"}},
		{"a fault is weaker", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) {
			t.Faults[1].Spec = &flood{Pods: 3}
		}, []string{"faults.flood.spec.pods is 3, and the scenario has 400"}},
		{"a fault comes elsewhere", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Faults[1].Target.Arm = "fixed" },
			[]string{"faults.flood.target.arm is fixed, and the scenario has nothing"}},
		{"faults change places", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { slices.Reverse(t.Faults) },
			[]string{"faults are in another order than the scenario's"}},
		{"faults change places, and one is weaker", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) {
			t.Faults[1].Spec = &flood{Pods: 3}
			slices.Reverse(t.Faults)
		}, []string{"faults.flood.spec.pods is 3, and the scenario has 400", "faults are in another order than the scenario's"}},
		{"a phase ends sooner", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Phases.Recovery.Deadline.Duration = 5 * time.Second },
			[]string{"phases.recovery.deadline is 5s, and the scenario has 3m0s"}},
		{"a collector looks less often", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Collectors[0].Every.Duration = time.Hour },
			[]string{"collectors.counters.every is 1h0m0s, and the scenario has 15s"}},
		{"a flag is added", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) {
			t.Clusters[0].Topology.Nodes[1].Args = map[string]map[string]string{"kubelet": {"v": "4"}}
		}, []string{"clusters.0.topology.nodes.worker.args is none of the scenario's"}},
		{"the clusters are of another version", plan.Options{}, func(p *plan.Plan, _ *plan.Trial) { p.Version = "v1.33.1" },
			[]string{"version is v1.33.1, and the scenario has v1.34.4"}},
		{"a setting is undone", plan.Options{Params: map[string]string{"faults.flood.spec.pods": "12"}}, func(_ *plan.Plan, t *plan.Trial) {
			t.Faults[1].Spec, t.Deviates = &flood{Pods: 400}, nil
		}, []string{"faults.flood.spec.pods is set to 12", "faults.flood.spec.pods is 400, and the scenario has 12"}},
		{"the pair is unknown", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Pair = "mine" },
			[]string{`its plan can't be compared with the scenario pleg: scenario pleg has no pair "mine": want one of`}},
		{"the scenario's file is another", plan.Options{}, func(p *plan.Plan, _ *plan.Trial) { p.Digest = "0123456789abcdef" },
			[]string{"it was planned from another file than testdata/pleg/scenario.yaml is now (SHA-256 0123456789ab, not"}},
		{"much is edited", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) {
			for i := range t.Collectors {
				t.Collectors[i].Every.Duration, t.Collectors[i].During = time.Hour, "steady"
			}
			for i := range t.Faults {
				t.Faults[i].Target.Arm, t.Faults[i].At.Duration = "fixed", time.Hour
			}
		}, []string{
			"collectors.built-in/heap.during is steady, and the scenario has recovery",
			"collectors.built-in/heap.every is 1h0m0s, and the scenario has 10s",
			"collectors.built-in/stuck.during is steady, and the scenario has recovery",
			"collectors.built-in/stuck.every is 1h0m0s, and the scenario has 10s",
			"collectors.counters.during is steady, and the scenario has nothing",
			"collectors.counters.every is 1h0m0s, and the scenario has 15s",
			"faults.flood.at is 1h0m0s, and the scenario has 0s",
			"faults.flood.target.arm is fixed, and the scenario has nothing",
			"2 more fields of its plan are not as the scenario has them",
		}},
		{"an arm has another name", plan.Options{}, func(_ *plan.Plan, t *plan.Trial) { t.Arms[0].Name = "mine" }, []string{
			"arms.fixed.node is worker2, and the scenario has worker", "arms.mine is none of the scenario's",
			"clusters.0.topology.nodes.worker.arm is vulnerable, and the scenario has fixed",
			"clusters.0.topology.nodes.worker.labels.relapse.dev/arm is vulnerable, and the scenario has fixed",
			"clusters.0.topology.nodes.worker2 is none of the scenario's",
		}},
		{"with a candidate", plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Version: "v1.34.8"}}},
			Swap: map[string]string{"vulnerable": "fixed"}}, func(*plan.Plan, *plan.Trial) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Seed = 7
			p := edited(t, s, c.options)
			before := len(p.Trials[0].Deviates)
			c.edit(p, &p.Trials[0])
			if p.Trials[0].Deviates == nil {
				before = 0
			}
			for range 2 { // said once, however often it is asked
				if err := p.NoteChanges(s, nil); err != nil {
					t.Fatal(err)
				}
			}
			got := p.Trials[0].Deviates[before:].Texts()
			if len(got) != len(c.want) {
				t.Fatalf("it says %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("it says %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

// A plan that was not edited is its scenario's, whatever was chosen: for each scenario, pair and provider, and for a
// known candidate.
func TestNoteChangesOfPlansAsTheyAre(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no scenario: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			known, err := s.Candidates()
			if err != nil {
				t.Fatal(err)
			}
			var all []plan.Options
			for _, provider := range s.Spec.RunsOn() {
				all = append(all, plan.Options{Pair: plan.AllPairs, Provider: provider}, plan.Options{Provider: provider, NoFaults: true})
			}
			if len(known) > 0 { // one stands for all, which would take a minute
				o := plan.Options{Oracle: true, Candidates: []plan.Candidate{{Known: &known[0]}}}
				if s.Spec.Oracle != nil {
					o.Pair = s.Spec.Oracle.Pair
				}
				if len(known[0].Spec.Pairs) > 0 {
					o.Pair = known[0].Spec.Pairs[0]
				}
				all = append(all, o)
			}
			for _, o := range all {
				p := edited(t, s, o)
				before := slices.Clone(p.Trials[0].Deviates)
				if err := p.NoteChanges(s, nil); err != nil {
					t.Fatal(err)
				}
				for i := range p.Trials {
					if got := p.Trials[i].Deviates; i == 0 && !slices.Equal(got, before) || i > 0 && len(got) > len(before) {
						t.Errorf("pair %s: it says %q, want %q", p.Trials[i].Pair, got, before)
					}
				}
			}
		})
	}
}

// Releases that share a trial are candidates as one that runs alone is.
func TestNoteChangesOfReleasesThatShareATrial(t *testing.T) {
	s, err := scenario.Load("../../scenarios/watch-loses-delete/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o plan.Options
	for _, version := range []string{"v3.5.13", "v3.5.14"} {
		o.Candidates = append(o.Candidates, plan.Candidate{Source: &scenario.Source{Version: version}, Of: version})
	}
	p := edited(t, s, o)
	var arms []string
	for _, a := range p.Trials[0].Arms {
		arms = append(arms, a.Name)
	}
	if want := []string{"vulnerable", "fixed", "candidate-v3-5-13", "candidate-v3-5-14"}; !slices.Equal(arms, want) {
		t.Errorf("its arms are %q, want %q", arms, want)
	}
	before := slices.Clone(p.Trials[0].Deviates)
	if err := p.NoteChanges(s, nil); err != nil {
		t.Fatal(err)
	}
	if got := p.Trials[0].Deviates; !slices.Equal(got, before) {
		t.Errorf("it says %q, want %q", got, before)
	}
}

// A plan whose scenario isn't there says that nobody compared it.
func TestNoteUncompared(t *testing.T) {
	p := edited(t, load(t), plan.Options{Repeat: 2})
	p.NoteUncompared(errors.New("there is none of that name here"))
	for _, one := range p.Trials {
		want := "its plan can't be compared with the scenario pleg: there is none of that name here"
		if !slices.Equal(one.Deviates.Texts(), []string{want}) {
			t.Errorf("trial %s says %q, want %q", one.ID, one.Deviates, want)
		}
	}
}

// edited returns a plan of s as run -f reads it, to be edited.
func edited(t *testing.T, s *scenario.Scenario, o plan.Options) *plan.Plan {
	t.Helper()
	p, err := plan.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	if p, err = plan.Decode(raw); err != nil {
		t.Fatal(err)
	}
	return p
}

// A trial is apart from its scenario's if it was weakened or changed. Declared parameters and a candidate don't make it so.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		name    string
		options plan.Options
		want    []string
	}{
		{"as it is", plan.Options{}, nil},
		{"one arm", plan.Options{Arms: []string{"fixed"}}, nil},
		{"the null control", plan.Options{NoFaults: true}, []string{"no fault is injected: this is the null control"}},
		{"swapped", plan.Options{Swap: map[string]string{"vulnerable": "fixed"}}, []string{"arm vulnerable runs the build of arm fixed"}},
		{"a field is set", plan.Options{Params: map[string]string{"pairs.modern.arms.fixed.source.version": "v1.34.1"}},
			[]string{"pairs.modern.arms.fixed.source.version is set to v1.34.1"}},
		{"a candidate without a version", plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Binary: "/kubelet"}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(load(t), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Apart(&p.Trials[0]); !slices.Equal(got, c.want) {
				t.Errorf("it is apart by %q, want %q", got, c.want)
			}
		})
	}
	p := &plan.Plan{Values: map[string]string{"pods": "7"}}
	for _, stored := range []string{
		`[{"code": "setting", "name": "pods", "text": "pods is set to 7"}, {"code": "setting", "name": "version", "text": "version is set to v1.34.4"},
			{"code": "doubt", "text": "who knows"}, {"code": "option", "text": "fault flood is left out"}]`,
		`["pods is set to 7", "version is set to v1.34.4", "the candidate doesn't say its version, so whether it fits its cluster's is unknown",
			"the version of the candidate can't be told: it is stamped v1 as the fixed arm is", "fault flood is left out"]`, // of an earlier version
	} {
		one := plan.Trial{}
		if err := json.Unmarshal([]byte(stored), &one.Deviates); err != nil {
			t.Fatal(err)
		}
		if got := p.Apart(&one); !slices.Equal(got, []string{"version is set to v1.34.4", "fault flood is left out"}) {
			t.Errorf("with a declared parameter and a field: %q", got)
		}
	}
}
