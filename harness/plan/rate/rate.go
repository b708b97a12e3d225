// Package rate says what counts prove: if k of n trials showed something, how often does it happen?
//
// Three bounds answer three questions, and none can replace another:
//
//   - Wilson is the interval of a rate. Whatever shows k of n shows this one.
//   - AtMost is the exact one-sided bound: what a claim such as "below 20 %" rests on.
//   - Sequence is an interval that holds at all times at once, so that one may look after every trial and stop at will.
//
// Whoever shows one names it: the same numbers give three different intervals.
//
// For one look, Wilson's interval at 95 % misses the true rate about one time in twenty. If one looks after every trial
// and stops at a pleasing result, it misses far more often, and with unlimited trials for certain. So Decide, which
// stops runs, uses Sequence alone.
package rate

import (
	"fmt"
	"math"
)

// Count is K of N trials, 0 <= K <= N.
type Count struct {
	K int `json:"k"`
	N int `json:"n"`
}

// String returns "3 of 20".
func (c Count) String() string { return fmt.Sprintf("%d of %d", c.K, c.N) }

// Wilson returns the two-sided score interval of a rate (E. B. Wilson, JASA 22, 1927, p. 209). confidence lies between
// 0 and 1, such as 0.95. Without trials the interval is 0 to 1.
func Wilson(c Count, confidence float64) (low, high float64) {
	if c.N == 0 {
		return 0, 1
	}
	z := math.Sqrt2 * math.Erfinv(confidence)
	n, p := float64(c.N), float64(c.K)/float64(c.N)
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	low, high = (middle-half)/(1+z*z/n), (middle+half)/(1+z*z/n)
	if c.K == 0 {
		low = 0 // without the formula's rounding error
	}
	if c.K == c.N {
		high = 1
	}
	return max(low, 0), min(high, 1)
}

// AtMost returns the exact one-sided upper bound (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934): the least rate
// at which K or fewer have a probability of only 1-confidence. For 0 of n it is 1-(1-confidence)^(1/n). Without trials,
// or if K is N, it is 1.
func AtMost(c Count, confidence float64) float64 {
	if c.K == c.N {
		return 1
	}
	return crossing(0, 1, func(p float64) bool { return atMost(c, p) > 1-confidence })
}

// atMost returns the probability of seeing K or fewer in N trials at rate p.
func atMost(c Count, p float64) (sum float64) {
	for k := 0; k <= c.K; k++ {
		sum += math.Exp(logChoose(c.N, k) + times(k, math.Log(p)) + times(c.N-k, math.Log1p(-p)))
	}
	return sum
}

// Sequence returns a confidence sequence of a rate: with a probability of at least 1-alpha the rate lies within the
// interval after every single trial, over all trials that ever follow. So one may look after each trial and stop
// because of the result.
//
// It is Robbins' mixture (H. Robbins, Ann. Math. Statist. 41, 1970, p. 1397). For the true rate p, take the likelihood
// of the data averaged over all rates by a Beta(1/2, 1/2), divided by its likelihood at p. This is a nonnegative
// martingale that begins at 1. By Ville's inequality it ever reaches 1/alpha with a probability of at most alpha. The
// interval consists of the rates at which it hasn't reached 1/alpha. Trials must be alike, given those before them;
// arms need not be independent.
func Sequence(c Count, alpha float64) (low, high float64) {
	if c.N == 0 {
		return 0, 1
	}
	k, n := float64(c.K), float64(c.N)
	mixture := logBeta(k+0.5, n-k+0.5) - logBeta(0.5, 0.5)
	within := func(p float64) bool {
		return mixture-times(c.K, math.Log(p))-times(c.N-c.K, math.Log1p(-p)) < -math.Log(alpha)
	}
	best := k / n
	if c.K > 0 {
		low = 1 - crossing(1-best, 1, func(q float64) bool { return within(1 - q) })
	}
	high = 1
	if c.K < c.N {
		high = crossing(best, 1, within)
	}
	return low, high
}

// crossing returns the point between from and to where holds turns false. holds is true at from and false at to.
func crossing(from, to float64, holds func(float64) bool) float64 {
	for range 60 {
		middle := from + (to-from)/2
		if holds(middle) {
			from = middle
		} else {
			to = middle
		}
	}
	return to
}

// times returns n*x, but 0 if n is 0 and x infinite: 0 to the power of 0 is 1.
func times(n int, x float64) float64 {
	if n == 0 {
		return 0
	}
	return float64(n) * x
}

func logGamma(x float64) float64 {
	v, _ := math.Lgamma(x) // positive arguments only
	return v
}

func logBeta(a, b float64) float64 { return logGamma(a) + logGamma(b) - logGamma(a+b) }

func logChoose(n, k int) float64 {
	return logGamma(float64(n)+1) - logGamma(float64(k)+1) - logGamma(float64(n-k)+1)
}
