package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/plan"
)

// A run can't be over before its phases are: one after the other, or several trials at once.
func TestHowLongAPlanLastsAtLeast(t *testing.T) {
	s := load(t)
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ph := p.Trials[0].Phases
	one := ph.Steady.AtLeast.Duration + ph.Baseline.AtLeast.Duration + ph.Fault.AtLeast.Duration + ph.Recovery.AtLeast.Duration
	if one == 0 {
		t.Fatal("the scenario's phases may last no time")
	}
	four, err := plan.New(s, plan.Options{Repeat: 4})
	if err != nil {
		t.Fatal(err)
	}
	inTurn, err := plan.New(s, plan.Options{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	again := ph.Fault.AtLeast.Duration + ph.Recovery.AtLeast.Duration // of the second arm
	for _, c := range []struct {
		name     string
		p        *plan.Plan
		parallel int
		want     time.Duration
	}{
		{"one trial", p, 1, one},
		{"one trial, where two would fit", p, 2, one},
		{"four trials", four, 1, 4 * one},
		{"four trials, two at once", four, 2, 2 * one},
		{"one arm after the other", inTurn, 1, one + again},
	} {
		if got := c.p.AtLeast(c.parallel); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := p.Trials[0].Lengths(); !strings.HasPrefix(got, "steady, ") || strings.Count(got, ";") != 3 {
		t.Errorf("the lengths are %q", got)
	}
}
