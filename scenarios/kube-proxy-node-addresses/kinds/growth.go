package kinds

import (
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/metrics"
)

// lastBefore returns the last sample that was answered by t.
func lastBefore(s metrics.Series, t time.Time) (x metrics.Sample, ok bool) {
	for _, x := range slices.Backward(s.Samples) {
		if !x.Answered.After(t) {
			return x, true
		}
	}
	return x, false
}

// firstAfter returns the first sample that was asked for at t or later.
func firstAfter(s metrics.Series, t time.Time) (x metrics.Sample, ok bool) {
	i := slices.IndexFunc(s.Samples, func(x metrics.Sample) bool { return !x.Asked.Before(t) })
	if i < 0 {
		return x, false
	}
	return s.Samples[i], true
}

// hasAround reports whether s has a sample before and a sample after look, which belongs to another series.
func hasAround(s metrics.Series, look metrics.Sample) bool {
	_, before := lastBefore(s, look.Asked)
	_, after := firstAfter(s, look.Answered)
	return before && after
}

// grownBetween returns by how much a counter grew, at least and at most, between two samples of another series. The
// counter must have samples around both. The growth is a range because taking a sample takes a while.
func grownBetween(s metrics.Series, from, to metrics.Sample) (least, most float64) {
	first, _ := lastBefore(s, from.Asked)
	second, _ := firstAfter(s, from.Answered)
	third, _ := lastBefore(s, to.Asked)
	last, _ := firstAfter(s, to.Answered)
	return max(0, third.Value-second.Value), last.Value - first.Value
}
