package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// hole is the longest time between two samples that still counts as watched. An endpoint that answers without the
// metric says nothing about the metric, so no such answer is a sample.
const hole = 20 * time.Second

// sample is a value that was read once, with the times of the request and of the answer.
type sample struct {
	asked, answered time.Time
	value           float64 // of a histogram: the number of observations
	sum             float64 // of a histogram: the sum of the observations
	process         string  // the process that the value is of, if known
}

// series holds the samples of one number of an arm, in order of time: those that were asked for and answered in a
// window.
type series struct {
	name    string
	window  bundle.Window
	samples []sample
	paths   []string
	doubt   string // why the samples can't be relied on for all of the window; "" if they can
}

// newSeries returns a series of those samples in all that lie in the window. none is the doubt if all is empty.
func newSeries(name string, w bundle.Window, all []sample, paths []string, doubt, none string) series {
	s := series{name: name, window: w, paths: paths, doubt: doubt}
	for _, x := range all {
		if !x.asked.Before(w.Start) && !x.answered.After(w.End) {
			s.samples = append(s.samples, x)
		}
	}
	slices.SortStableFunc(s.samples, func(a, b sample) int { return a.asked.Compare(b.asked) })
	if len(all) == 0 {
		s.doubt = cmp.Or(s.doubt, none)
	}
	s.doubt = cmp.Or(s.doubt, s.leftOut())
	return s
}

// leftOut says where in the window samples are more than hole apart, "" if nowhere.
func (s series) leftOut() string {
	last := s.window.Start
	for _, x := range append(slices.Clone(s.samples), sample{asked: s.window.End}) {
		if x.asked.Sub(last) > hole {
			return fmt.Sprintf("there is no sample of %s in %s", s.name, between(last, x.asked))
		}
		last = x.asked
	}
	return ""
}

// metricSeries returns the series of a metric, with all its label sets that match labels added up: a check asks for the
// component's total.
func metricSeries(q *question, metric string, labels map[string]string) series {
	return metricSeriesOf(q, metric, func(have map[string]string) bool { return matches(have, labels) })
}

// metricSeriesOf returns the series of a metric, with all label sets added up for which wanted is true.
func metricSeriesOf(q *question, metric string, wanted func(labels map[string]string) bool) series {
	st := metricSamples(q, metric)
	var all []sample
	for _, r := range st.records {
		if r.Name != metric || !wanted(r.Labels) {
			continue
		}
		if n := len(all); n > 0 && all[n-1].asked.Equal(r.Time) {
			all[n-1].value += r.Value
			continue
		}
		all = append(all, sample{asked: r.Time, answered: r.Done, value: r.Value})
	}
	return newSeries(metric, q.window, all, st.paths, st.doubt,
		fmt.Sprintf("the metrics of %s never showed %s", q.arm, metric))
}

// metricSamples reads all metric samples of the arm. Only artifacts that have the metric must cover the window: samples
// of other metrics don't show when this one was read.
func metricSamples(q *question, metric string) stream[bundle.MetricSample] {
	return readCounting(q, bundle.Query{Kind: bundle.MetricSamples, Arm: q.arm}, records[bundle.MetricSample],
		func(r bundle.MetricSample) bool { return r.Name == metric })
}

func matches(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// histogramSeries returns the counts of a histogram or summary, each with the sum from the same answer.
func histogramSeries(q *question, family string, labels map[string]string) series {
	s := metricSeries(q, family+"_count", labels)
	sums := map[time.Time]float64{}
	for _, x := range metricSeries(q, family+"_sum", labels).samples { // the same answers, so the same doubt
		sums[x.asked] = x.value
	}
	var paired []sample
	for _, x := range s.samples {
		sum, ok := sums[x.asked]
		if !ok {
			s.doubt = cmp.Or(s.doubt, fmt.Sprintf("%s has no sum beside it at %s", s.name, clock(x.asked)))
			continue
		}
		x.sum = sum
		paired = append(paired, x)
	}
	s.samples = paired
	return s
}

// processCPUTime is the name of the series that cpuSeries returns.
const processCPUTime = "the process's CPU time"

// cpuSeries returns the CPU time that the subject's process had used at each look. It includes the time of children
// that the process had waited for: what a program does by running another is its work, too. Times of different
// processes can't be compared.
func cpuSeries(q *question) series {
	return cpuOf(q, func(r bundle.IdentitySample) float64 { return r.CPUSeconds + r.ChildSeconds })
}

// cpuOf returns the series of a CPU time from the identity records; used reads the time from a record.
func cpuOf(q *question, used func(bundle.IdentitySample) float64) series {
	st := read[bundle.IdentitySample](q, bundle.Identity)
	var all []sample
	var last bundle.IdentitySample
	for _, r := range st.records {
		if r.Expected || r.PID <= 0 || r.CPUSeconds <= 0 || !contains(q.window, r.Time) {
			continue
		}
		if len(all) > 0 && !r.SameProcess(last) {
			st.doubt = cmp.Or(st.doubt,
				fmt.Sprintf("process %d was followed by process %d at %s", last.PID, r.PID, clock(r.Time)))
		}
		last = r
		all = append(all, sample{asked: r.Time, answered: r.Time, value: used(r),
			process: fmt.Sprintf("%d since tick %d", r.PID, r.StartTicks)})
	}
	return newSeries(processCPUTime, q.window, all, st.paths, st.doubt,
		fmt.Sprintf("nobody recorded the CPU time of %s in %s", q.arm, span(q.window)))
}

func (s series) first() sample { return s.samples[0] }
func (s series) last() sample  { return s.samples[len(s.samples)-1] }

// watched returns the time between the first and the last sample. The series must not be empty.
func (s series) watched() time.Duration { return s.last().asked.Sub(s.first().asked) }

// extent returns the window from when the first sample was asked for to when the last was answered.
func (s series) extent() bundle.Window {
	return bundle.Window{Start: s.first().asked, End: s.last().answered}
}

// growth returns by how much a counter grew between the first and the last sample; rate returns the growth a second.
func (s series) growth() float64 { return s.last().value - s.first().value }
func (s series) rate() float64   { return s.growth() / s.watched().Seconds() }

// reset returns the index of the first sample that is less than the one before it, where a counter began anew; 0 if
// there is none.
func (s series) reset() int {
	for i := 1; i < len(s.samples); i++ {
		if was, is := s.samples[i-1], s.samples[i]; is.value < was.value || is.sum < was.sum {
			return i
		}
	}
	return 0
}

// noRate says why the rate of a counter isn't known, "" if it is. Two samples have to span half of the window, without
// a reset.
func (s series) noRate() string {
	if s.doubt != "" {
		return s.doubt
	}
	if n := len(s.samples); n < 2 {
		return fmt.Sprintf("there are %d samples of %s in %s, two are needed", n, s.name, span(s.window))
	}
	if i := s.reset(); i > 0 {
		return fmt.Sprintf("%s fell from %.10g to %.10g at %s: it was reset", s.name, s.samples[i-1].value,
			s.samples[i].value, clock(s.samples[i].asked))
	}
	if s.watched() < length(s.window)/2 {
		return fmt.Sprintf("the samples of %s lie within %s of %s", s.name, s.watched().Round(100*time.Millisecond),
			span(s.window))
	}
	return ""
}

// oldest returns the largest age of a metric that holds a time in seconds since the epoch, and when the metric was that
// old. An age is taken at the time of the request, when the metric was younger than at the time of the answer. A metric
// that was never set has no age; age is below 0 if no sample has one.
func (s series) oldest() (age time.Duration, at time.Time) {
	age = -1
	for _, x := range s.samples {
		if a := x.asked.Sub(time.Unix(0, int64(x.value*1e9))); x.value > 0 && a > age {
			age, at = a, x.asked
		}
	}
	return age, at
}

// judgeStill answers whether the number stood still for at least need, and describes what it did. One change decides
// that the answer is False; a standstill has to be watched all along.
func (s series) judgeStill(need time.Duration) (Truth, string) {
	if len(s.samples) < 2 {
		return Unknown, cmp.Or(s.doubt, fmt.Sprintf("has %d samples, two are needed", len(s.samples)))
	}
	first := s.first()
	if i := slices.IndexFunc(s.samples, func(x sample) bool { return x.value != first.value }); i >= 0 {
		return False, fmt.Sprintf("changed from %.10g to %.10g by %s", first.value, s.samples[i].value,
			clock(s.samples[i].asked))
	}
	stood := s.last().asked.Sub(first.answered)
	switch {
	case s.doubt != "":
		return Unknown, s.doubt
	case stood < need:
		return Unknown, fmt.Sprintf("was watched for %s only", stood.Round(time.Second))
	}
	return True, fmt.Sprintf("stood at %.10g for %s", first.value, stood.Round(time.Second))
}

// before returns the last sample that was answered by t.
func (s series) before(t time.Time) (x sample, ok bool) {
	for _, x := range slices.Backward(s.samples) {
		if !x.answered.After(t) {
			return x, true
		}
	}
	return x, false
}

// after returns the first sample that was asked for at t or later.
func (s series) after(t time.Time) (x sample, ok bool) {
	i := slices.IndexFunc(s.samples, func(x sample) bool { return !x.asked.Before(t) })
	if i < 0 {
		return x, false
	}
	return s.samples[i], true
}

// around reports whether s has a sample before and a sample after look, which belongs to another series.
func (s series) around(look sample) bool {
	_, before := s.before(look.asked)
	_, after := s.after(look.answered)
	return before && after
}

// grownBetween returns by how much a counter grew, at least and at most, between two samples of another series. The
// counter must have samples around both. The growth is a range because taking a sample takes a while.
func (s series) grownBetween(from, to sample) (least, most float64) {
	first, _ := s.before(from.asked)
	second, _ := s.after(from.answered)
	third, _ := s.before(to.asked)
	last, _ := s.after(to.answered)
	return max(0, third.value-second.value), last.value - first.value
}
