package rate

import (
	"fmt"
	"math"
)

// Percent is a rate in whole percent, rounded so that a bound stays true: an upper one up, a lower one down. 0.1391 as an upper bound is "14 %".
func Percent(rate float64, upper bool) string {
	p := rate * 100
	near := math.Round(p)
	switch {
	case math.Abs(p-near) < 1e-6: // 95.00000000000001 is 95
		p = near
	case upper:
		p = math.Ceil(p)
	default:
		p = math.Floor(p)
	}
	return fmt.Sprintf("%.0f %%", p)
}

// Exactly is a rate that somebody stated, in percent and not rounded: "12.5 %".
func Exactly(rate float64) string { return fmt.Sprintf("%g %%", math.Round(rate*1e8)/1e6) }

// Fixed says what a count means after a number of trials that was fixed beforehand: "at most 14 % at 95 %" of 0 of 20, by the exact one-sided bound;
// "at least" where all showed it; Wilson's interval otherwise.
func Fixed(c Count, confidence float64) string {
	low, high := Wilson(c, confidence)
	if c.K == 0 {
		high = AtMost(c, confidence)
	}
	if c.K == c.N {
		low = AtLeast(c, confidence)
	}
	return bounds(c, low, high) + " at " + Percent(confidence, false)
}

// Anytime says what a count means in a run that was stopped for what it showed, by Sequence: it is wider than Fixed, which such a run may not use.
func Anytime(c Count, confidence float64) string {
	low, high := Sequence(c, 1-confidence)
	return bounds(c, low, high) + " at " + Percent(confidence, false) + ", whenever one stops"
}

// NoneSoFar says what 0 of n means in a run that ends at the first 1 and claims nothing of the rate then: AtMost's bound holds whenever one stops. It lies
// below a rate p for the first time after the n at which (1-p)^n <= 1-confidence, and with rate p so many in a row without one have that probability.
func NoneSoFar(n int, confidence float64) string {
	return "at most " + Percent(AtMost(Count{N: n}, confidence), true) + " at " + Percent(confidence, false) + ", whenever one stops"
}

func bounds(c Count, low, high float64) string {
	switch {
	case c.N == 0:
		return "anything from 0 % to 100 %"
	case c.K == 0:
		return "at most " + Percent(high, true)
	case c.K == c.N:
		return "at least " + Percent(low, false)
	}
	return Percent(low, false) + " to " + Percent(high, true)
}
