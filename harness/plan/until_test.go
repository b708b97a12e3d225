package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// twoPairs is the fixture with a second pair like its first.
func twoPairs(t *testing.T) *scenario.Scenario {
	t.Helper()
	s := load(t)
	second := s.Spec.Pairs[0]
	second.Name, second.Default = "second", false
	s.Spec.Pairs = []scenario.Pair{s.Spec.Pairs[0], second}
	return s
}

func TestPairsTakeTurns(t *testing.T) {
	p, err := plan.New(twoPairs(t), plan.Options{Pair: plan.AllPairs, Repeat: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tr := range p.Trials {
		got = append(got, tr.ID+" "+tr.Pair)
	}
	if want := []string{"001 modern", "002 second", "003 modern", "004 second", "005 modern", "006 second"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a pair sets counts in its own trials only, is no deviation, and gives way to --set.
func TestAPairSets(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	pair, rest, _ := strings.Cut(string(text)[strings.Index(string(text), "    - name: modern"):], "  collectors:")
	slow := strings.Replace(pair, "name: modern", "name: slow\n      set: {latency: 4s, phases.fault.deadline: 9m}", 1)
	text = []byte(strings.Replace(string(text), pair+"  collectors:"+rest, strings.Replace(pair, "modern", "modern\n      default: true", 1)+slow+
		"  parameters:\n    - {name: latency, type: duration, default: 40ms, doc: of a call}\n  collectors:"+
		strings.Replace(rest, "latency: 40ms", "latency: $(latency)", 1), 1))
	s, err := scenario.Parse("x.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		params   map[string]string
		want     []string
		deviates int
	}{
		{nil, []string{`modern {"latency":"40ms","calls":["List"]} {8m0s} map[]`, `slow {"latency":"4s","calls":["List"]} {9m0s} map[latency:4s phases.fault.deadline:9m]`}, 0},
		{map[string]string{"latency": "2s"}, []string{`modern {"latency":"2s","calls":["List"]} {8m0s} map[]`, `slow {"latency":"2s","calls":["List"]} {9m0s} map[phases.fault.deadline:9m]`}, 1},
	} {
		p, err := plan.New(s, plan.Options{Pair: plan.AllPairs, Params: tc.params})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tr := range p.Trials {
			spec, err := json.Marshal(tr.Faults[0].Spec)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %s %s %v", tr.Pair, spec, tr.Phases.Fault.Deadline, tr.Set))
			if len(tr.Deviates) != tc.deviates {
				t.Errorf("%v: pair %s deviates in %q", tc.params, tr.Pair, tr.Deviates)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: %q\nwant %q", tc.params, got, tc.want)
		}
		var b strings.Builder
		if err := p.Text(&b); err != nil || !strings.Contains(b.String(), "the pair sets phases.fault.deadline to 9m") {
			t.Errorf("the text doesn't say what the pair sets: %v\n%s", err, b.String())
		}
	}
}

func TestSameSeedSamePlan(t *testing.T) {
	encoded := func(seed int64) []byte {
		p, err := plan.New(twoPairs(t), plan.Options{Pair: plan.AllPairs, Repeat: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		b, err := plan.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(encoded(8), encoded(8)) {
		t.Error("one seed gives two plans")
	}
	if bytes.Equal(encoded(8), encoded(9)) {
		t.Error("the plan doesn't say its seed")
	}
}

func TestUntil(t *testing.T) {
	s := twoPairs(t)
	s.Spec.Budget = &metav1.Duration{Duration: 90 * time.Minute}
	p, err := plan.New(s, plan.Options{Pair: plan.AllPairs, Until: &plan.Until{Rule: "below-target", Confidence: 0.95, Target: 0.2, Max: 21}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.Pairs(), []string{"modern", "second"}) || len(p.Trials) != 2 {
		t.Fatalf("pairs %v, %d trials", p.Pairs(), len(p.Trials))
	}
	further, err := p.Another("second", 17)
	if err != nil {
		t.Fatal(err)
	}
	if further.ID != "017" {
		t.Errorf("its id is %s", further.ID)
	}
	further.ID = "002"
	if diff := cmp.Diff(p.Trials[1], further); diff != "" {
		t.Errorf("a further trial isn't like the first: -want +got:\n%s", diff)
	}
	if _, err := p.Another("third", 3); err == nil || !strings.Contains(err.Error(), `there is no pair "third"`) {
		t.Errorf("another of no pair: %v", err)
	}
	var text bytes.Buffer
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"trials of each pair until the judged arm is shown to show the incident in less than 20 % of them at 95 %: 14 without it, at most 21 in all", "a nightly gives it at most 1h30m\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the plan's text lacks %q:\n%s", want, text.String())
		}
	}
}

func until(confidence, target float64, most int) *plan.Until {
	return &plan.Until{Rule: "below-target", Confidence: confidence, Target: target, Max: most}
}

func TestUntilRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		options plan.Options
		want    string
	}{
		{"another rule", plan.Options{Until: &plan.Until{Rule: "luck", Confidence: 0.95, Target: 0.2, Max: 20}}, `plan goes on until the rule "luck": want one of below-target`},
		{"percent", plan.Options{Until: until(95, 0.2, 20)}, "a confidence of 95: want one above 0.5 and below 1, as 0.95"},
		{"a target in percent", plan.Options{Until: until(0.95, 20, 20)}, "a target rate of 20: want one from 0.01 to 0.5, as 0.2"},
		{"no target", plan.Options{Until: until(0.95, 0, 20)}, "a target rate of 0: want one from 0.01 to 0.5, as 0.2"},
		{"too few trials for it", plan.Options{Until: until(0.95, 0.2, 13)},
			"at most 13 trials of each pair: a rate below 20 % at 95 % takes 14 without the incident (want 14 to 28)"},
		{"more set aside than count", plan.Options{Until: until(0.95, 0.2, 29)}, "at most 29 trials of each pair: a rate below 20 % at 95 % takes 14 without the incident (want 14 to 28)"},
		{"too many", plan.Options{Until: until(0.999, 0.01, 1000)}, "plan goes on for at most 1000 trials of each of 1 pairs: want at most 999 in all"},
		{"no control", plan.Options{Arms: []string{"fixed"}, Until: until(0.95, 0.2, 21)},
			"pair modern goes on until a rule is satisfied: want a vulnerable arm as the control, and a fixed one or a candidate to be judged"},
		{"none to judge", plan.Options{Arms: []string{"vulnerable"}, Until: until(0.95, 0.2, 21)}, "want a vulnerable arm as the control, and a fixed one or a candidate to be judged"},
		{"repeats, too", plan.Options{Repeat: 2, Until: until(0.95, 0.2, 21)}, "--repeat 2 and --until-confident are mutually exclusive"},
		{"very many repeats", plan.Options{Repeat: 1000}, "plan has 1000 trials: want at most 999"},
	} {
		if _, err := plan.New(load(t), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
