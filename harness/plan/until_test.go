package plan_test

import (
	"bytes"
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
	p, err := plan.New(s, plan.Options{Pair: plan.AllPairs, Until: &plan.Until{Rule: "separated", Confidence: 0.95, Max: 30}})
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
	for _, want := range []string{`trials of each pair until the rule "separated" is content at 95 %, at most 30`, "a nightly gives it at most 1h30m\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the plan's text lacks %q:\n%s", want, text.String())
		}
	}
}

func TestUntilRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		options plan.Options
		want    string
	}{
		{"another rule", plan.Options{Until: &plan.Until{Rule: "luck", Confidence: 0.95, Max: 3}}, `plan goes on until the rule "luck": want one of separated`},
		{"percent", plan.Options{Until: &plan.Until{Rule: "separated", Confidence: 95, Max: 3}}, "plan goes on until a confidence of 95: want one above 0.5 and below 1, as 0.95"},
		{"no trials", plan.Options{Until: &plan.Until{Rule: "separated", Confidence: 0.95}}, "plan goes on for at most 0 trials of each of 1 pairs: want at least 1 and at most 999 in all"},
		{"too many", plan.Options{Until: &plan.Until{Rule: "separated", Confidence: 0.95, Max: 1000}}, "plan goes on for at most 1000 trials of each of 1 pairs"},
		{"repeats, too", plan.Options{Repeat: 2, Until: &plan.Until{Rule: "separated", Confidence: 0.95, Max: 3}}, "repeat is 2, and trials go on until a rule is content: want one of the two"},
		{"very many repeats", plan.Options{Repeat: 1000}, "plan has 1000 trials: want at most 999"},
	} {
		if _, err := plan.New(load(t), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
