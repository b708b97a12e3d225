package harness

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func TestTrialsOfAList(t *testing.T) {
	queue := newQueue(&plan.Plan{Trials: []plan.Trial{{ID: "001", Pair: "a"}, {ID: "002", Pair: "b"}}})
	var got []string
	for queue.next() {
		got = append(got, queue.trial.ID+queue.trial.Pair)
		if queue.last != (queue.trial.ID == "002") {
			t.Errorf("trial %s is the last one: %v", queue.trial.ID, queue.last)
		}
		if err := queue.over("", nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"001a", "002b"}) || queue.err != nil {
		t.Errorf("%v, %v", got, queue.err)
	}
}

// Two trials without any evidence are all that this run may have; nothing is known after them, and that is said.
func TestTurnsOfAnOpenEndedRun(t *testing.T) {
	arm := func(role, expected string) plan.Arm {
		return plan.Arm{Arm: scenario.Arm{Name: role, Role: role}, Expected: expected}
	}
	p := &plan.Plan{Schema: plan.Schema, Scenario: "x", Until: &plan.Until{Rule: "below-target", Confidence: 0.75, Target: 0.5, Max: 3},
		Trials: []plan.Trial{{ID: "001", Pair: "a", Arms: []plan.Arm{arm("vulnerable", plan.Reproduced), arm("fixed", plan.NotReproduced)}}}}
	dir := t.TempDir()
	var said []string
	events := event.NewStream(event.SinkFunc(func(e event.Event) { said = append(said, e.Message) }))
	queue := newQueue(p)
	for queue.next() {
		one := *p
		one.Trials = []plan.Trial{queue.trial}
		raw, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		w, err := bundle.Create(filepath.Join(dir, "trials", queue.trial.ID))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []func() error{func() error { return w.PutPlan(raw) }, func() error { return w.SetWorld(bundle.World{}) }, w.Seal} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := queue.over(dir, events); err != nil {
			t.Fatal(err)
		}
	}
	if queue.had != 2 || queue.err != nil || len(said) != 2 {
		t.Fatalf("%d trials, %v, said %q", queue.had, queue.err, said)
	}
	for i, want := range []string{"; it goes on: fixed showed it in none of 0 trials that count, and 2 are needed; 1 set aside (limit 1)", "; that ends the pair's trials: a rate below 50 % can't be shown any more: 0 of 2 trials count, and 2 without the incident are needed; 2 set aside (limit 1)"} {
		if !strings.HasPrefix(said[i], "trial 00"+string(rune('1'+i))+", pair a: Inconclusive, ") || !strings.HasSuffix(said[i], want) {
			t.Errorf("said %q, want it to end in %q", said[i], want)
		}
	}
}
