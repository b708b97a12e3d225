// Package metrics has the checks of counters and gauges over time, and of CPU time.
package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// MaxGap is the longest time between two samples that still counts as watched. An endpoint that answers without the
// metric says nothing about the metric, so no such answer is a sample.
const MaxGap = 20 * time.Second

// Sample is a value that was read once, with the times of the request and of the answer.
type Sample struct {
	Asked, Answered time.Time
	Value           float64 // of a histogram: the number of observations
	sum             float64 // of a histogram: the sum of the observations
	process         string  // the process that the value is of, if known
}

// Series holds the samples of one number of an arm, in order of time: those that were asked for and answered in a
// window.
type Series struct {
	Name    string
	Window  bundle.Window
	Samples []Sample
	Paths   []string
	Doubt   error // why the samples can't be relied on for all of the window; nil if they can
}

// newSeries returns a series of those samples in all that lie in the window. none is the doubt if all is empty.
func newSeries(
	name string,
	w bundle.Window,
	all []Sample,
	paths []string,
	doubt, none error,
) Series {
	s := Series{Name: name, Window: w, Paths: paths, Doubt: doubt}
	for _, x := range all {
		if !x.Asked.Before(w.Start) && !x.Answered.After(w.End) {
			s.Samples = append(s.Samples, x)
		}
	}
	slices.SortStableFunc(s.Samples, func(a, b Sample) int { return a.Asked.Compare(b.Asked) })
	if len(all) == 0 {
		s.Doubt = cmp.Or(s.Doubt, none)
	}
	s.Doubt = cmp.Or(s.Doubt, s.leftOut())
	return s
}

// leftOut says where in the window samples are more than MaxGap apart, nil if nowhere.
func (s Series) leftOut() error {
	last := s.Window.Start
	for _, x := range append(slices.Clone(s.Samples), Sample{Asked: s.Window.End}) {
		if x.Asked.Sub(last) > MaxGap {
			return check.Doubt(
				check.Gap,
				"there is no sample of %s in %s",
				s.Name,
				question.Between(last, x.Asked),
			)
		}
		last = x.Asked
	}
	return nil
}

// ReadSeries returns the series of a metric, with all its label sets that match labels added up: a check asks for the
// component's total.
func ReadSeries(q *question.Question, metric string, labels map[string]string) Series {
	return ReadSeriesOf(
		q,
		metric,
		func(have map[string]string) bool { return HasLabels(have, labels) },
	)
}

// ReadSeriesOf returns the series of a metric, with all label sets added up for which wanted is true.
func ReadSeriesOf(
	q *question.Question,
	metric string,
	wanted func(labels map[string]string) bool,
) Series {
	st := metricSamples(q, metric)
	var all []Sample
	for _, r := range st.Records {
		if r.Name != metric || !wanted(r.Labels) {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Asked.Equal(r.Time) {
			all[n-1].Value += r.Value
			continue
		}
		all = append(all, Sample{Asked: r.Time, Answered: r.Done, Value: r.Value})
	}
	return newSeries(metric, q.Window, all, st.Paths, st.Doubt,
		check.Doubt(check.NotRecorded, "the metrics of %s never showed %s", q.Arm, metric))
}

// metricSamples reads all metric samples of the arm. Only artifacts that have the metric must cover the window: samples
// of other metrics don't show when this one was read.
func metricSamples(q *question.Question, metric string) question.Stream[bundle.MetricSample] {
	return question.ReadCounting(
		q,
		bundle.Query{Kind: bundle.MetricSamples, Arm: q.Arm},
		question.Records[bundle.MetricSample],
		func(r bundle.MetricSample) bool { return r.Name == metric },
	)
}

// HasLabels reports whether have contains all labels of want.
func HasLabels(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// histogramSeries returns the counts of a histogram or summary, each with the sum from the same answer.
func histogramSeries(q *question.Question, family string, labels map[string]string) Series {
	s := ReadSeries(q, family+"_count", labels)
	sums := map[time.Time]float64{}
	for _, x := range ReadSeries(q, family+"_sum", labels).Samples { // the same answers, so the same doubt
		sums[x.Asked] = x.Value
	}
	var paired []Sample
	for _, x := range s.Samples {
		sum, ok := sums[x.Asked]
		if !ok {
			s.Doubt = cmp.Or(
				s.Doubt,
				check.Doubt(
					check.Unreadable,
					"%s has no sum beside it at %s",
					s.Name,
					question.Clock(x.Asked),
				),
			)
			continue
		}
		x.sum = sum
		paired = append(paired, x)
	}
	s.Samples = paired
	return s
}

// processCPUTime is the name of the series that ReadCPU returns.
const processCPUTime = "the process's CPU time"

// ReadCPU returns the CPU time that the subject's process had used at each look. It includes the time of children
// that the process had waited for: what a program does by running another is its work, too. Times of different
// processes can't be compared.
func ReadCPU(q *question.Question) Series {
	return ReadCPUBy(
		q,
		func(r bundle.IdentitySample) float64 { return r.CPUSeconds + r.ChildSeconds },
	)
}

// ReadCPUBy returns the series of a CPU time from the identity records; used reads the time from a record.
func ReadCPUBy(q *question.Question, used func(bundle.IdentitySample) float64) Series {
	st := question.Read[bundle.IdentitySample](q, bundle.Identity)
	var all []Sample
	var last bundle.IdentitySample
	for _, r := range st.Records {
		if r.Expected || r.PID <= 0 || r.CPUSeconds <= 0 || !question.Contains(q.Window, r.Time) {
			continue
		}
		if len(all) > 0 && !r.SameProcess(last) {
			st.Doubt = cmp.Or(
				st.Doubt,
				check.Doubt(
					check.OtherProcess,
					"process %d was followed by process %d at %s",
					last.PID,
					r.PID,
					question.Clock(r.Time),
				),
			)
		}
		last = r
		all = append(all, Sample{Asked: r.Time, Answered: r.Time, Value: used(r),
			process: fmt.Sprintf("%d since tick %d", r.PID, r.StartTicks)})
	}
	return newSeries(processCPUTime, q.Window, all, st.Paths, st.Doubt,
		check.Doubt(check.NotRecorded, "nobody recorded the CPU time of %s in %s", q.Arm, question.Span(q.Window)))
}

// First returns the first sample. There must be one.
func (s Series) First() Sample { return s.Samples[0] }

// Last returns the last sample. There must be one.
func (s Series) Last() Sample { return s.Samples[len(s.Samples)-1] }

// watched returns the time between the first and the last sample. The series must not be empty.
func (s Series) watched() time.Duration { return s.Last().Asked.Sub(s.First().Asked) }

// Extent returns the window from when the first sample was asked for to when the last was answered.
func (s Series) Extent() bundle.Window {
	return bundle.Window{Start: s.First().Asked, End: s.Last().Answered}
}

// Shown returns a sample's value as sentences have it. A metric whose value is a time, in seconds since 1970, is shown
// as a clock.
func (s Series) Shown(x Sample) string {
	const years = 10 * 365 * 24 * time.Hour
	if at := time.Unix(0, int64(x.Value*1e9)); strings.HasSuffix(s.Name, "_seconds") && at.Sub(x.Asked).Abs() < years {
		return at.UTC().Format("2006-01-02 15:04:05.0 UTC")
	}
	return fmt.Sprintf("%.10g", x.Value)
}

// Growth returns by how much a counter grew between the first and the last sample; rate returns the growth a second.
func (s Series) Growth() float64 { return s.Last().Value - s.First().Value }
func (s Series) rate() float64   { return s.Growth() / s.watched().Seconds() }

// FirstReset returns the index of the first sample that is less than the one before it, where a counter began anew; 0
// if there is none.
func (s Series) FirstReset() int {
	for i := 1; i < len(s.Samples); i++ {
		if was, is := s.Samples[i-1], s.Samples[i]; is.Value < was.Value || is.sum < was.sum {
			return i
		}
	}
	return 0
}

// WhyNoRate says why the rate of a counter isn't known, nil if it is. Two samples have to span half of the window,
// without a reset.
func (s Series) WhyNoRate() error {
	if s.Doubt != nil {
		return s.Doubt
	}
	if n := len(s.Samples); n < 2 {
		return check.Doubt(
			check.TooFew,
			"there are %d samples of %s in %s, two are needed",
			n,
			s.Name,
			question.Span(s.Window),
		)
	}
	if i := s.FirstReset(); i > 0 {
		return check.Doubt(
			check.OtherProcess,
			"%s fell from %s to %s at %s: it was reset",
			s.Name,
			s.Shown(s.Samples[i-1]),
			s.Shown(s.Samples[i]),
			question.Clock(s.Samples[i].Asked),
		)
	}
	if s.watched() < question.Length(s.Window)/2 {
		return check.Doubt(
			check.TooFew,
			"the samples of %s lie within %s of %s",
			s.Name,
			s.watched().Round(100*time.Millisecond),
			question.Span(s.Window),
		)
	}
	return nil
}

// judgeStill answers whether the number stood still for at least need, and describes what it did. One change decides
// that the answer is False; a standstill has to be watched all along.
func (s Series) judgeStill(need time.Duration) question.Part {
	if len(s.Samples) < 2 {
		return s.unsure(
			cmp.Or(
				s.Doubt,
				check.Doubt(check.TooFew, "has %d samples, two are needed", len(s.Samples)),
			),
		)
	}
	first := s.First()
	if i := slices.IndexFunc(s.Samples, func(x Sample) bool { return x.Value != first.Value }); i >= 0 {
		return question.Answered(check.False, "%s changed from %s to %s by %s", s.Name, s.Shown(first),
			s.Shown(s.Samples[i]), question.Clock(s.Samples[i].Asked))
	}
	stood := s.Last().Asked.Sub(first.Answered)
	switch {
	case s.Doubt != nil:
		return s.unsure(s.Doubt)
	case stood < need:
		return s.unsure(check.Doubt(check.TooShort, "was watched for %s only", stood.Round(time.Second)))
	}
	return question.Answered(
		check.True,
		"%s stood at %s for %s",
		s.Name,
		s.Shown(first),
		stood.Round(time.Second),
	)
}

func (s Series) unsure(doubt error) question.Part {
	return question.Unsure(fmt.Errorf("%s %w", s.Name, doubt))
}
