package rate_test

import (
	"math/rand/v2"
	"testing"

	"github.com/kube-relapse/relapse/harness/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func arm(role string, k, n int) rate.Arm {
	return rate.Arm{Name: role, Role: role, Count: rate.Count{K: k, N: n}}
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name string
		arms []rate.Arm
		done bool
		why  string
	}{
		{"seven each are not enough", []rate.Arm{arm("vulnerable", 7, 7), arm("fixed", 0, 7)}, false, "the arms can't be told apart yet"},
		{"eight each are", []rate.Arm{arm("vulnerable", 8, 8), arm("fixed", 0, 8)}, true,
			"fixed shows it in at most 49 % of its trials, vulnerable in at least 51 %"},
		{"a candidate is judged beside both", []rate.Arm{arm("vulnerable", 9, 9), arm("fixed", 0, 9), arm("candidate", 0, 9)}, true,
			"candidate shows it in at most 48 % of its trials, vulnerable in at least 52 %"},
		{"a candidate that has it", []rate.Arm{arm("vulnerable", 9, 9), arm("fixed", 0, 9), arm("candidate", 9, 9)}, true,
			"candidate shows it in at least 52 % of its trials"},
		{"no bite", []rate.Arm{arm("vulnerable", 0, 8), arm("fixed", 0, 8)}, true,
			"vulnerable shows it in at most 49 % of its trials, which makes a poor control"},
		{"lone", []rate.Arm{arm("fixed", 0, 7)}, true, "fixed shows it in at most 48 % of its trials"},
		{"lone, all", []rate.Arm{arm("vulnerable", 7, 7)}, true, "vulnerable shows it in at least 52 % of its trials"},
		{"lone, too few", []rate.Arm{arm("fixed", 0, 5)}, false, "fixed may show it in more than half of its trials or in less"},
		{"nothing judged", []rate.Arm{arm("vulnerable", 0, 0), arm("fixed", 0, 0)}, false, "the arms can't be told apart yet"},
		{"no arm", nil, false, "there is no arm"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rate.Decide(c.arms, 0.95); got != (rate.Decision{Done: c.done, Why: c.why}) {
				t.Errorf("%+v, want %v: %s", got, c.done, c.why)
			}
		})
	}
}

const campaigns = 10_000

// remember keeps what a function of counts gave: simulated runs come by the same few thousand counts again and again.
func remember[K comparable, V any](f func(K) V) func(K) V {
	known := map[K]V{}
	return func(k K) V {
		v, ok := known[k]
		if !ok {
			v = f(k)
			known[k] = v
		}
		return v
	}
}

// The rule is asked after every trial of 10,000 made-up runs, and may end at most 5 % of them with something that isn't so.
func TestDecideKeepsItsErrorRate(t *testing.T) {
	done := remember(func(pair [2]rate.Count) bool {
		return rate.Decide([]rate.Arm{{Role: scenario.Vulnerable, Count: pair[0]}, {Role: scenario.Fixed, Count: pair[1]}}, 0.95).Done
	})
	for _, c := range []struct{ vulnerable, fixed float64 }{{0.5, 0.5}, {0.9, 0.9}, {0.3, 0.5}, {0.55, 0.5}, {1, 1}, {0.05, 0.05}, {0.7, 0.72}} {
		r := rand.New(rand.NewPCG(7, uint64(1000*c.vulnerable)))
		wrong, stopped := 0, 0
		for range campaigns {
			v, f := arm(scenario.Vulnerable, 0, 0), arm(scenario.Fixed, 0, 0)
			for range 60 {
				v.N, f.N = v.N+1, f.N+1
				if r.Float64() < c.vulnerable {
					v.K++
				}
				if r.Float64() < c.fixed {
					f.K++
				}
				if done([2]rate.Count{v.Count, f.Count}) {
					stopped++
					if !isSo(v, f, c.vulnerable, c.fixed) {
						wrong++
					}
					break
				}
			}
		}
		t.Logf("vulnerable %.2f, fixed %.2f: %d of %d runs stopped, %d of them wrongly", c.vulnerable, c.fixed, stopped, campaigns, wrong)
		if wrong > campaigns/20 {
			t.Errorf("vulnerable %.2f, fixed %.2f: %d of %d runs ended with a false statement, at most 5 %% may", c.vulnerable, c.fixed, wrong, campaigns)
		}
	}
}

// isSo asks the rule's statements, in its order, of the rates that it doesn't know.
func isSo(v, f rate.Arm, pv, pf float64) bool {
	low, high := rate.Sequence(f.Count, 0.025)
	least, _ := rate.Sequence(v.Count, 0.025)
	switch {
	case high < least:
		return pf < pv
	case low > 0.5:
		return pf > 0.5
	}
	return pv < 0.5
}

// The sequence misses the rate, at any of 200 looks, in at most 5 % of runs. Wilson's interval, which is for one look, misses it in far more: it must not
// be what stops a run.
func TestLookingAfterEveryTrial(t *testing.T) {
	type interval struct{ low, high float64 }
	sequenceOf := remember(func(c rate.Count) interval { low, high := rate.Sequence(c, 0.05); return interval{low, high} })
	wilsonOf := remember(func(c rate.Count) interval { low, high := rate.Wilson(c, 0.95); return interval{low, high} })
	misses := func(i interval, p float64) bool { return p < i.low || p > i.high }
	for _, p := range []float64{0.05, 0.3, 0.5, 0.9} {
		r := rand.New(rand.NewPCG(11, uint64(1000*p)))
		sequence, wilson := 0, 0
		for range campaigns {
			var c rate.Count
			missed, missedByWilson := false, false
			for range 200 {
				c.N++
				if r.Float64() < p {
					c.K++
				}
				missed = missed || misses(sequenceOf(c), p)
				missedByWilson = missedByWilson || misses(wilsonOf(c), p)
			}
			if missed {
				sequence++
			}
			if missedByWilson {
				wilson++
			}
		}
		t.Logf("rate %.2f: the sequence missed it in %d of %d runs, Wilson in %d", p, sequence, campaigns, wilson)
		if sequence > campaigns/20 {
			t.Errorf("rate %.2f: the sequence missed it in %d of %d runs, at most 5 %% may", p, sequence, campaigns)
		}
		if wilson < campaigns/5 {
			t.Errorf("rate %.2f: Wilson missed it in %d of %d runs only: then the reason for another rule is gone", p, wilson, campaigns)
		}
	}
}
