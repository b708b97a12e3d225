package rate

import (
	"fmt"
	"math"
)

// Percent is a rate in whole percent, rounded so that a bound stays true: an upper bound up, a lower bound down.
// 0.1391 as an upper bound is "14 %".
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

// Exactly is a rate that somebody stated, in percent, not rounded: "12.5 %".
func Exactly(rate float64) string { return fmt.Sprintf("%g %%", math.Round(rate*1e8)/1e6) }

// Fixed says what a count means if the number of trials was fixed beforehand. For 0 of 20 it is "at most 14 % at 95
// %", by the exact one-sided bound. If all showed it, it is "at least"; otherwise it is Wilson's interval.
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

// Anytime says what a count means in a run that was stopped for what it showed, by Sequence. It is wider than Fixed,
// which doesn't hold there.
func Anytime(c Count, confidence float64) string {
	low, high := Sequence(c, 1-confidence)
	return bounds(c, low, high) + " at " + Percent(confidence, false) + ", whenever one stops"
}

// NoneSoFar says what 0 of n means in a run that ends at the first 1 and then claims nothing: AtMost's bound holds
// whenever one stops. It falls below a rate p only after n trials with (1-p)^n <= 1-confidence, and at rate p so many
// in a row without one have just that probability.
func NoneSoFar(n int, confidence float64) string {
	return "at most " + Percent(AtMost(Count{N: n}, confidence), true) + " at " + Percent(confidence, false) +
		", whenever one stops"
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
