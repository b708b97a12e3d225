package trend

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

const (
	// FalseAlarm bounds the probability that an arm whose rate never changes is ever flagged, however often somebody
	// looks.
	FalseAlarm = 0.05
	// Streak is how many of the newest trials in a row have to lack an answer before that is reported.
	Streak = 3
)

// fading explains why a vulnerable arm reproduces less: fewer of the trials with an answer show the incident than
// before, or fewer trials give an answer. It returns nothing if neither is shown.
func fading(of, answered []history.Entry) []string {
	var out []string
	for _, q := range []struct {
		of   []history.Entry
		yes  func(history.Entry) bool
		what string
	}{
		{answered, func(e history.Entry) bool { return e.Outcome == reproduced }, "Reproduced in"},
		{of, answers, "there was an answer in"},
	} {
		yes := make([]bool, len(q.of))
		for i, e := range q.of {
			yes[i] = q.yes(e)
		}
		d, ok := dropIn(yes, FalseAlarm/2, rate.Sequence)
		if !ok {
			continue
		}
		why := fmt.Sprintf("%s %s since %s (at most %.1f %%), and in %s before (at least %.1f %%), by %ss",
			q.what, d.since, q.of[d.at].Time.UTC().Format(time.DateOnly), 100*d.high, d.before, 100*d.low, rate.ByTrial)
		if was, is := q.of[d.at-1].Digest, of[len(of)-1].Digest; was != is {
			why += fmt.Sprintf("; the binary was %.12s and is %.12s", was, is)
		}
		out = append(out, why)
	}
	return out
}

// answers reports whether a trial says something of the arm. That an arm doesn't show the incident does so only if the
// trial has a verdict: without one, nobody knows whether its fault was large enough.
func answers(e history.Entry) bool {
	return e.Outcome == reproduced ||
		e.Outcome == notReproduced && (e.Role == scenario.Vulnerable || !provesNothing(e))
}

// provesNothing reports whether the trial has no verdict.
func provesNothing(e history.Entry) bool { return e.Verdict == "Inconclusive" || e.Verdict == "Error" }

// silent says that the newest trials gave no answer, "" if fewer than Streak did. It is an observation, not a
// conclusion.
func silent(of []history.Entry) string {
	n := 0
	for _, e := range slices.Backward(of) {
		if answers(e) {
			break
		}
		n++
	}
	if n < Streak {
		return ""
	}
	return fmt.Sprintf(
		"the last %d trials gave no answer, the newest is %s",
		n,
		of[len(of)-1].Outcome,
	)
}

// drop is a moment at which something became rarer: its counts before the entry at, and since that entry.
type drop struct {
	at            int
	before, since rate.Count
	low, high     float64 // the rate was at least low before, and is at most high since
}

// dropIn finds the moment since which something is rarer than before. Every Window-th entry may be that moment. If
// there are several, dropIn returns the one with the widest gap between the two rates.
//
// The trials before the moment have one confidence sequence at alpha/2. Those since the i-th moment have their own at
// alpha/2 divided by i(i+1); over all i these add up to alpha/2. If the rate never changes, all of the sequences hold
// it at all times with a probability of at least 1-alpha, and then no later one lies below the first (Boole's
// inequality). So the probability that there is ever a false alarm is at most alpha, over any number of years and
// looks.
func dropIn(
	yes []bool,
	alpha float64,
	sequence func(rate.Count, float64) (low, high float64),
) (best drop, found bool) {
	all := rate.Count{N: len(yes)}
	for _, y := range yes {
		if y {
			all.K++
		}
	}
	before := rate.Count{}
	for at, y := range yes {
		if at > 0 && at%Window == 0 {
			i := float64(at / Window)
			d := drop{
				at:     at,
				before: before,
				since:  rate.Count{K: all.K - before.K, N: all.N - before.N},
			}
			d.low, _ = sequence(d.before, alpha/2)
			_, d.high = sequence(d.since, alpha/2/(i*(i+1)))
			if d.high < d.low && (!found || d.low-d.high > best.low-best.high) {
				best, found = d, true
			}
		}
		before.N++
		if y {
			before.K++
		}
	}
	return best, found
}
