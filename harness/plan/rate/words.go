package rate

import (
	"fmt"
	"math"
)

// Percent returns a rate in whole percent, rounded so that a bound stays true: an upper bound up, a lower bound down.
// 0.1391 as an upper bound is "14 %".
func Percent(rate float64, upper bool) string { return fmt.Sprintf("%.0f %%", whole(rate, upper)) }

// Range returns an interval in whole percent, rounded as Percent rounds: "5 to 37 %".
func Range(low, high float64) string {
	return fmt.Sprintf("%.0f to %.0f %%", whole(low, false), whole(high, true))
}

func whole(rate float64, upper bool) float64 {
	p := rate * 100
	near := math.Round(p)
	switch {
	case math.Abs(p-near) < 1e-6: // 95.00000000000001 is 95
		return near
	case upper:
		return math.Ceil(p)
	}
	return math.Floor(p)
}

// Exactly returns a rate that somebody stated, in percent and not rounded to a whole number: "12.5 %".
func Exactly(rate float64) string { return fmt.Sprintf("%g %%", math.Round(rate*1e8)/1e6) }

// Interval returns Wilson's interval of a count. silent of the N trials gave no answer and aren't in K: the upper end
// counts them as trials that showed it, the lower end as trials that didn't. Every report of a rate shows this one.
func Interval(c Count, silent int, confidence float64) (low, high float64) {
	low, _ = Wilson(c, confidence)
	_, high = Wilson(c.and(silent), confidence)
	return low, high
}

// InWords returns Interval with the name of its method: "5 to 37 % (Wilson, 95 %)".
func InWords(c Count, silent int, confidence float64) string {
	return Named(Range(Interval(c, silent, confidence)), "Wilson", confidence)
}

// Anytime says what a count means, by Sequence, in a run that was stopped because of its results: "1 to 48 %
// (confidence sequence, 95 %)". Its interval is wider than Wilson's, which doesn't hold in such a run. silent is as for
// Interval.
func Anytime(c Count, silent int, confidence float64) string {
	low, _ := Sequence(c, 1-confidence)
	_, high := Sequence(c.and(silent), 1-confidence)
	return Named(Range(low, high), ByTrial, confidence)
}

// ByTrial is the name of the intervals that hold whenever one stops.
const ByTrial = "confidence sequence"

// Named adds to an interval or a bound by which method, and at which confidence, it was found.
func Named(interval, method string, confidence float64) string {
	return fmt.Sprintf("%s (%s, %s)", interval, method, Exactly(confidence))
}

// and returns c with further more of its N trials counted in K.
func (c Count) and(further int) Count { return Count{K: c.K + further, N: c.N} }

// oneSided is the name of AtMost's bound.
const oneSided = "Clopper-Pearson, one-sided"

// NoneSoFar says what 0 of n means in a run that ends at the first 1 and then claims nothing. AtMost's bound holds
// there no matter when one stops: it falls below a rate p only after n trials with (1-p)^n <= 1-confidence, and at rate
// p the probability of n trials in a row without a 1 is (1-p)^n.
func NoneSoFar(n int, confidence float64) string {
	return Named("at most "+Percent(AtMost(Count{N: n}, confidence), true), oneSided, confidence)
}
