package rate

import (
	"fmt"
	"math"
)

// Percent returns a rate in whole percent, rounded so that a bound stays true: an upper bound up, a lower bound down.
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

// Exactly returns a rate that somebody stated, in percent and not rounded to a whole number: "12.5 %".
func Exactly(rate float64) string { return fmt.Sprintf("%g %%", math.Round(rate*1e8)/1e6) }

// Fixed says what a count means if the number of trials was fixed beforehand. For 0 of 20 it returns "at most 14 %
// at 95 %", by the exact one-sided bound. If all of the trials showed it, it returns "at least", otherwise Wilson's
// interval. silent of the N trials gave no answer and aren't in K: the upper bound counts them as trials that showed
// it, the lower bound as trials that didn't.
func Fixed(c Count, silent int, confidence float64) string {
	most := c.and(silent)
	low, _ := Wilson(c, confidence)
	_, high := Wilson(most, confidence)
	if c.K == 0 {
		high = AtMost(most, confidence)
	}
	if most.K == most.N {
		low = AtLeast(c, confidence)
	}
	return bounds(c, most, low, high) + " at " + Percent(confidence, false)
}

// Anytime says what a count means, by Sequence, in a run that was stopped because of its results. Its interval is
// wider than that of Fixed, which doesn't hold in such a run. silent is as for Fixed.
func Anytime(c Count, silent int, confidence float64) string {
	most := c.and(silent)
	low, _ := Sequence(c, 1-confidence)
	_, high := Sequence(most, 1-confidence)
	return bounds(c, most, low, high) + " at " + Percent(confidence, false) + ", whenever one stops"
}

// and returns c with further more of its N trials counted in K.
func (c Count) and(further int) Count { return Count{K: c.K + further, N: c.N} }

// NoneSoFar says what 0 of n means in a run that ends at the first 1 and then claims nothing. AtMost's bound holds
// there no matter when one stops: it falls below a rate p only after n trials with (1-p)^n <= 1-confidence, and at rate
// p the probability of n trials in a row without a 1 is (1-p)^n.
func NoneSoFar(n int, confidence float64) string {
	return "at most " + Percent(AtMost(Count{N: n}, confidence), true) + " at " + Percent(confidence, false) +
		", whenever one stops"
}

// bounds describes an interval. At least `least` of the trials showed it, and at most `most` of them.
func bounds(least, most Count, low, high float64) string {
	switch {
	case least.K == 0 && most.K == most.N:
		return "anything from 0 % to 100 %"
	case least.K == 0:
		return "at most " + Percent(high, true)
	case most.K == most.N:
		return "at least " + Percent(low, false)
	}
	return Percent(low, false) + " to " + Percent(high, true)
}
