package report_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
)

// figure is a trial's figure whose title begins so, or nil.
func figure(t *testing.T, tr *trial, title string) *report.Figure {
	t.Helper()
	v, err := judge.Run(tr.write(t))
	must(t, err)
	for _, f := range report.Read(v)[0].Figures {
		if strings.HasPrefix(f.Title, title) {
			return &f
		}
	}
	return nil
}

// values are a line's, by its label, at some seconds of the trial; the fault begins at 42. -1 is none.
func values(f *report.Figure, label string, seconds ...float64) []float64 {
	var out []float64
	for _, s := range seconds {
		n := -1.0
		for _, l := range f.Lines {
			if l.Label() != label {
				continue
			}
			for _, p := range l.Points {
				if p.Seconds == s-42 {
					n = p.Value
				}
			}
		}
		out = append(out, n)
	}
	return out
}

// near compares up to what a float loses on its way.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if len(got) != len(want) || got[i]-want[i] > 1e-6 || want[i]-got[i] > 1e-6 {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func TestSeriesOfMetrics(t *testing.T) {
	for _, c := range []struct {
		title, label string
		seconds      []float64
		want         []float64
	}{
		{"CPU of kube-apiserver", "vulnerable", []float64{0, 20, 60}, []float64{-1, 0.3, 0.64}},
		{"CPU of kube-apiserver", "fixed", []float64{20, 60}, []float64{0.3, 0.3}},
		{"CPU of kube-apiserver", "etcd (shared)", []float64{20, 60}, []float64{0.12, 0.12}},
		{"resident memory of", "fixed", []float64{0, 80}, []float64{3e8 / (1 << 20), 3e8 / (1 << 20)}},
		{"heap in use of", "vulnerable", []float64{52}, []float64{1.9e8 / (1 << 20)}},
		{"age of the last relist", "fixed", []float64{0, 20, 80}, []float64{0, 10, 40}},
		{"slowest answer of etcd", "fixed", []float64{42, 45, 51, 60}, []float64{2, 1002, -1, 2}},
		{"requests to etcd", "vulnerable", []float64{0, 20}, []float64{-1, 100}},
	} {
		f := figure(t, rich(t), c.title)
		if f == nil {
			t.Errorf("there is no figure %s", c.title)
			continue
		}
		near(t, c.title+" of "+c.label, values(f, c.label, c.seconds...), c.want)
	}
}

// A check brings its own figure, which is drawn once for all that ask for it.
func TestSeriesOfACheckedCounter(t *testing.T) {
	tr := rich(t)
	if f := figure(t, tr, "growth of process_cpu_seconds_total"); f != nil {
		t.Fatalf("it is drawn, and no check is about it: %+v", f)
	}
	tr = rich(t)
	grows := &metrics.MetricIncrease{Metric: "process_cpu_seconds_total", By: question.Quantity{Number: new(1.0)}}
	slow := &metrics.MetricRate{Metric: "process_cpu_seconds_total", RateLimit: metrics.RateLimit{AtMost: new(1.0)}}
	tr.plan.Info = append(tr.plan.Info, plan.Check{CheckHeader: scenario.CheckHeader{Name: "grows", Kind: "metricIncrease"}, Spec: grows}, plan.Check{CheckHeader: scenario.CheckHeader{Name: "slow", Kind: "metricRate"}, Spec: slow})
	v, err := judge.Run(tr.write(t))
	must(t, err)
	n := 0
	for _, f := range report.Read(v)[0].Figures {
		if f.Title == "growth of process_cpu_seconds_total" && f.Unit == "per second" {
			n++
			near(t, f.Title, values(&f, "vulnerable", 0, 20, 60), []float64{-1, 0.3, 0.64})
		}
	}
	if n != 1 {
		t.Errorf("it is drawn %d times, want once", n)
	}
}

// A counter that falls was reset, and over a hole nothing is known of it.
func TestSeriesOverAReset(t *testing.T) {
	tr := rich(t)
	tr.fixed.more = func(w *bundle.Writer) {
		s, err := w.Stream(bundle.Meta{Kind: bundle.MetricSamples, Arm: "fixed", Component: "kube-apiserver", Time: t0}, "jsonl")
		must(t, err)
		for _, p := range [][2]int{{0, 100}, {2, 102}, {4, 3}, {6, 9}, {40, 43}, {42, 45}} {
			must(t, s.JSON(bundle.MetricSample{Time: at(p[0]), Done: at(p[0]), Name: "process_cpu_seconds_total", Value: float64(p[1])}))
		}
	}
	near(t, "CPU", values(figure(t, tr, "CPU of"), "fixed", 0, 2, 4, 6, 40, 42), []float64{-1, 1, -1, 3, -1, 1})
}

// churning has both arms' checks ask about writes.
func churning(t *testing.T, record func(w *bundle.Writer)) *trial {
	tr := newTrial()
	tr.emit = append(faultEvents("vulnerable", 42, 58), faultEvents("fixed", 42, 58)...)
	tr.plan.Info = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "any"}, AnyOf: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "loop", Kind: "churn"}, Spec: &kinds.Churn{Resource: "configmaps"}}}}}
	tr.vulnerable.planned.Namespace, tr.fixed.planned.Namespace = "one", "two"
	tr.vulnerable.more = record
	return tr
}

func TestSeriesOfWrites(t *testing.T) {
	own := churning(t, func(w *bundle.Writer) {
		s := recorded(t, w, "vulnerable", "one", 30, 1, 2, 3, 11, 12, 29)
		s.Gap(at(16), at(17), "the watch broke")
		recorded(t, w, "fixed", "two", 79)
	})
	f := figure(t, own, "writes to configmaps")
	if f == nil || f.Unit != "writes per second" {
		t.Fatalf("figure %+v", f)
	}
	near(t, "own record", values(f, "vulnerable", 2.5, 7.5, 12.5, 17.5, 27.5, 32.5), []float64{0.6, 0, 0.4, -1, 0.2, -1})
	near(t, "nothing written", values(f, "fixed", 2.5, 72.5, 77.5), []float64{0, 0, -1})
}
