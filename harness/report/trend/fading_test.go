package trend

import (
	"math/rand/v2"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan/rate"
)

// The ledger of an arm that never changes is looked at after each of the 365 nightlies of a year, over 200 made-up
// years. At most 5 % of the years may have an alarm. Wilson's interval of the newest window against that of all before,
// which is made for one look, has one in most: it must not be the rule.
func TestAnUnchangedArmIsHardlyEverCalledFading(t *testing.T) {
	years := 200
	if testing.Short() {
		years = 50
	}
	type asked struct {
		rate.Count
		alpha float64
	}
	known := map[asked][2]float64{} // the same few counts come again and again
	sequence := func(c rate.Count, alpha float64) (float64, float64) {
		b, ok := known[asked{c, alpha}]
		if !ok {
			b[0], b[1] = rate.Sequence(c, alpha)
			known[asked{c, alpha}] = b
		}
		return b[0], b[1]
	}
	for _, p := range []float64{0.5, 0.8, 0.95} {
		r := rand.New(rand.NewPCG(12, uint64(1000*p)))
		alarms, byWilson := 0, 0
		for range years {
			var yes []bool
			alarmed, alarmedByWilson := false, false
			for range 365 {
				yes = append(yes, r.Float64() < p)
				if !alarmed {
					_, alarmed = dropIn(yes, FalseAlarm, sequence)
				}
				alarmedByWilson = alarmedByWilson || windowed(yes)
			}
			if alarmed {
				alarms++
			}
			if alarmedByWilson {
				byWilson++
			}
		}
		t.Logf("rate %2.0f %%: an alarm in %.1f %% of %d years, by Wilson's windows in %.1f %%", p*100, 100*float64(alarms)/float64(years), years, 100*float64(byWilson)/float64(years))
		if alarms*20 > years {
			t.Errorf("rate %.2f: a false alarm in %d of %d years, at most 5 %% may have one", p, alarms, years)
		}
		if byWilson*4 < years {
			t.Errorf("rate %.2f: Wilson's windows have a false alarm in %d of %d years only: then the reason for another rule is gone", p, byWilson, years)
		}
	}
}

// windowed holds the newest window against all before it, each by Wilson's interval.
func windowed(yes []bool) bool {
	if len(yes) < 2*Window {
		return false
	}
	count := func(of []bool) (c rate.Count) {
		c.N = len(of)
		for _, y := range of {
			if y {
				c.K++
			}
		}
		return c
	}
	_, high := rate.Wilson(count(yes[len(yes)-Window:]), 0.95)
	low, _ := rate.Wilson(count(yes[:len(yes)-Window]), 0.95)
	return high < low
}

// How many nightlies it takes to see that an arm which always showed the incident in 60 nightlies has gone blind, or
// shows it in half of its trials.
func TestAFadingArmIsSeenSoon(t *testing.T) {
	for _, c := range []struct {
		name  string
		shows func(n int) bool
		soon  int
	}{{"blind", func(int) bool { return false }, 8}, {"every other one", func(n int) bool { return n%2 == 0 }, 25}} {
		yes := make([]bool, 60)
		for i := range yes {
			yes[i] = true
		}
		nights := 0
		for found := false; !found && nights < 100; nights++ {
			yes = append(yes, c.shows(nights))
			_, found = dropIn(yes, FalseAlarm/2, rate.Sequence)
		}
		t.Logf("%s: seen after %d nightlies", c.name, nights)
		if nights > c.soon {
			t.Errorf("%s: seen after %d nightlies, want at most %d", c.name, nights, c.soon)
		}
	}
}
