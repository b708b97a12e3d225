package churn

import (
	"slices"
	"time"
)

// Series counts how many times lie in each step from a start to an end, which is not included: element i counts those
// in [from + i*step, from + (i+1)*step).
func Series(times []time.Time, from, to time.Time, step time.Duration) []int {
	if step <= 0 || !to.After(from) {
		return nil
	}
	out := make([]int, (to.Sub(from)+step-1)/step)
	for _, t := range times {
		if !t.Before(from) && t.Before(to) {
			out[t.Sub(from)/step]++
		}
	}
	return out
}

// LongestGap returns the longest time between two writes, and where it begins. from and to count as writes. times must
// be in order.
func LongestGap(times []time.Time, from, to time.Time) (longest time.Duration, at time.Time) {
	last, at := from, from
	for _, t := range append(slices.Clone(times), to) {
		if t.Before(from) || t.After(to) {
			continue
		}
		if gap := t.Sub(last); gap > longest {
			longest, at = gap, last
		}
		last = t
	}
	return longest, at
}
