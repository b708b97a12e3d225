package rate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan/rate"
)

// ruled is the default rule: below 20 % at 95 %.
func ruled() rate.Rule {
	r := rate.Rule{Confidence: 0.95, Target: 0.2}
	r.Max = r.DefaultMax()
	return r
}

func TestDecide(t *testing.T) {
	tally := func(clear, shown, broken, aside, bites int) rate.Tally {
		return rate.Tally{Judged: "candidate", Clear: clear, Shown: shown, Broken: broken, SetAside: aside, Control: "vulnerable",
			Bites: rate.Count{K: bites, N: clear + shown + broken + aside}}
	}
	doubtful := tally(14, 0, 0, 1, 14)
	doubtful.Doubtful = 1
	failed := tally(3, 0, 0, 0, 3)
	failed.Failed = 1
	mute := tally(13, 0, 0, 2, 16)
	mute.Silent = 1
	mute.Bites.N = 16
	dull := tally(14, 0, 0, 0, 0)
	dull.Bites = rate.Count{K: 14, N: 60}
	for _, c := range []struct {
		name string
		is   rate.Tally
		want rate.Decision
	}{
		{"nothing yet", tally(0, 0, 0, 0, 0), rate.Decision{Why: "candidate showed it in none of 0 trials that count, and 14 are needed"}},
		{"eight told the arms apart, and aren't enough", tally(8, 0, 0, 0, 8), rate.Decision{Why: "candidate showed it in none of 8 trials that count, and 14 are needed"}},
		{"thirteen are not enough", tally(13, 0, 0, 2, 15), rate.Decision{Why: "candidate showed it in none of 13 trials that count, and 14 are needed; 2 set aside (limit 7)"}},
		{"fourteen are", tally(14, 0, 0, 0, 14), rate.Decision{End: rate.Below,
			Why: "candidate showed it in none of 14 trials that count: its rate is below 20 % (Clopper-Pearson, one-sided, 95 %), whenever one stops; vulnerable showed it in 14 of 14: at least 70 % (confidence sequence, 95 %)"}},
		{"and those set aside are named", tally(14, 0, 0, 3, 16), rate.Decision{End: rate.Below,
			Why: "candidate showed it in none of 14 trials that count: its rate is below 20 % (Clopper-Pearson, one-sided, 95 %), whenever one stops; " +
				"vulnerable showed it in 16 of 17: at least 62 % (confidence sequence, 95 %); 3 set aside (limit 7)"}},
		{"one is proof", tally(12, 1, 0, 0, 13), rate.Decision{End: rate.Shown, Why: "candidate showed it in 1 of 13 trials that count, and one is proof that it has it"}},
		{"it failed in another way", tally(4, 0, 1, 1, 6), rate.Decision{End: rate.Broken, Why: "candidate failed in another way in 1 of 5 trials that count"}},
		{"ours failed", failed, rate.Decision{End: rate.Failed, Why: "something of relapse's own failed"}},
		{"too many set aside", tally(5, 0, 0, 8, 13), rate.Decision{End: rate.Undecided,
			Why: "a rate below 20 % can't be shown any more: 5 of 13 trials count, and 14 without the incident are needed; 8 set aside (limit 7)"}},
		{"it showed it where nothing counted", doubtful, rate.Decision{End: rate.Undecided,
			Why: "candidate showed it in 1 of the trials that were set aside, beside a control that was not as expected: that is no proof, and it can't be called cured; 1 set aside (limit 7)"}},
		{"it gave no answer beside controls that were as expected", mute, rate.Decision{End: rate.Undecided,
			Why: "candidate gave no answer in 1 of 14 trials whose controls were as expected, which counts against it, as an incident may destroy its own evidence: " +
				"a rate below 20 % can't be shown any more; 2 set aside (limit 7)"}},
		{"a control that hardly shows it itself", dull, rate.Decision{
			Why: "candidate showed it in none of 14 trials that count, and 14 are needed; vulnerable showed it in 14 of 60 only, which doesn't show a rate above 20 %"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ruled().Decide(c.is); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		target, confidence float64
		needed             int
	}{{0.5, 0.95, 5}, {0.2, 0.95, 14}, {0.1, 0.95, 29}, {0.05, 0.95, 59}, {0.01, 0.95, 299}, {0.2, 0.99, 21}} {
		r := rate.Rule{Confidence: c.confidence, Target: c.target}
		if got := r.Needed(); got != c.needed {
			t.Errorf("below %v at %v takes %d trials, want %d", c.target, c.confidence, got, c.needed)
		}
		if high := rate.AtMost(rate.Count{N: c.needed}, c.confidence); high > c.target+1e-9 {
			t.Errorf("0 of %d leaves a rate of %v, above %v", c.needed, high, c.target)
		}
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

// fate is what a made-up pair does in a trial: the judged arm shows the incident with probability shows; the vulnerable
// one misses it with probability misses; a control gives no answer with probability fails; an incident destroys its own
// evidence with probability hides.
type fate struct{ shows, misses, fails, hides float64 }

// run plays one run to its end and returns how it ended and after how many trials.
func (f fate) run(r *rand.Rand, rule rate.Rule, decide func(rate.Tally) rate.End) (rate.End, int) {
	t := rate.Tally{Judged: "candidate", Control: "vulnerable"}
	for trials := 1; trials <= rule.Max; trials++ {
		bites, shows, fails, hides := r.Float64() >= f.misses, r.Float64() < f.shows, r.Float64() < f.fails, r.Float64() < f.hides
		t.Bites.N++
		if bites {
			t.Bites.K++
		}
		switch {
		case fails:
			t.SetAside++
		case !bites:
			t.SetAside++
			if shows && !hides {
				t.Doubtful++
			}
		case shows && hides:
			t.Silent++
		case shows:
			t.Shown++
		default:
			t.Clear++
		}
		if end := decide(t); end != "" {
			return end, trials
		}
	}
	return "", rule.Max
}

// The rule is asked after every trial of 20,000 made-up runs. An end is wrong if it says that the rate is below the
// target where it isn't, or that an arm has the incident which never shows it. At most 5 % may be; every run must end.
func TestTheRuleKeepsItsErrorRate(t *testing.T) {
	runs := 20_000
	if testing.Short() {
		runs = 2_000
	}
	rule := ruled()
	decide := remember(func(t rate.Tally) rate.End { return rule.Decide(t).End })
	for _, world := range []struct {
		name string
		fate
	}{{"controls always as expected", fate{}}, {"a control misses 1 in 10, and 1 in 10 gives no answer", fate{misses: 0.1, fails: 0.1}},
		{"the incident always destroys its evidence", fate{hides: 1}}, {"it does so every other time, and 1 in 10 controls gives no answer", fate{hides: 0.5, fails: 0.1}}} {
		for _, shows := range []float64{0, 0.05, 0.1, 0.2, 0.3, 0.5} {
			f := world.fate
			f.shows = shows
			r := rand.New(rand.NewPCG(7, uint64(1000*shows)))
			ends, lengths := map[rate.End]int{}, []int{}
			for range runs {
				end, trials := f.run(r, rule, decide)
				ends[end]++
				lengths = append(lengths, trials)
			}
			slices.Sort(lengths)
			wrong := 0
			if shows >= rule.Target {
				wrong = ends[rate.Below]
			}
			if shows == 0 {
				wrong = ends[rate.Shown]
			}
			share := func(n int) float64 { return 100 * float64(n) / float64(runs) }
			t.Logf("%s, true rate %2.0f %%: %4.1f %% end as below 20 %%, %5.1f %% as shown, %4.1f %% undecided; wrong %.1f %%; trials: median %d, at most %d",
				world.name, shows*100, share(ends[rate.Below]), share(ends[rate.Shown]), share(ends[rate.Undecided]), share(wrong), lengths[runs/2], lengths[runs-1])
			if share(wrong) > 5 {
				t.Errorf("true rate %v: %.1f %% of %d runs ended wrongly, at most 5 %% may", shows, share(wrong), runs)
			}
			if ends[""] > 0 {
				t.Errorf("true rate %v: %d of %d runs had no end", shows, ends[""], runs)
			}
		}
	}
}

// The sequence misses the rate, at any of 200 looks, in at most 5 % of runs. Wilson's interval, which is for one look,
// misses it in far more: it must not be what stops a run.
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
