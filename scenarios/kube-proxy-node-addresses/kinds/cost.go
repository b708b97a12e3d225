package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

// Cost says which cost of the subject's work is measured, and how the work is counted.
type Cost struct {
	Of      string            `json:"of" jsonschema:"which cost is measured: cpu (CPU time) or allocated (bytes)"`
	Under   []string          `json:"under,omitempty" jsonschema:"required with allocated, and only allowed there: parts of function names. Memory counts if it was allocated below a function whose name has one of these parts"`
	Counter string            `json:"counter,omitempty" refers:"metric" jsonschema:"name of the metric that counts the work, as exposed. Give either counter or load"`
	Load    string            `json:"load,omitempty" refers:"load" jsonschema:"instead of counter: name of the load that made the work. Each of its calls that was answered with 200 counts once, whatever the subject counts"`
	Labels  map[string]string `json:"labels,omitempty" jsonschema:"labels that the counter's samples must have. All samples that have them are added up. Default: all samples"`
	Each    int               `json:"each,omitzero" jsonschema:"how many units of work each count stands for, such as the services that one sync goes through (1 or more)"`
	Units   int               `json:"units,omitzero" jsonschema:"by how much the counter must grow for an answer, or how many of the load's calls must be answered with 200, at least (1 or more)"`
}

const costCPU, costAllocated = "cpu", "allocated"

// oneUnit has the defaults of a Cost: each count is one unit, and one unit is enough to answer by.
var oneUnit = Cost{Each: 1, Units: 1}

// Reads names metric samples, and the artifacts that show the cost: heap profiles, or identities for CPU time.
func (c *Cost) Reads() []bundle.Kind {
	if c.Of == costAllocated {
		return []bundle.Kind{bundle.MetricSamples, bundle.Heap}
	}
	return []bundle.Kind{bundle.MetricSamples, bundle.Identity}
}

// RestsOnCPU reports whether CPU time is the cost that is measured.
func (c *Cost) RestsOnCPU() bool { return c.Of == costCPU }

func (c *Cost) validate() error {
	return errors.Join(
		question.Refuse(
			c.Of != costCPU && c.Of != costAllocated,
			"of is %q (want cpu or allocated)",
			c.Of,
		),
		question.Refuse(
			(c.Of == costAllocated) != (len(c.Under) > 0) || slices.Contains(c.Under, ""),
			"under is %q (want names with allocated, none of them empty, and nothing with cpu)",
			c.Under,
		),
		question.Refuse(
			question.CountTrue(c.Counter != "", c.Load != "") != 1,
			"want one of counter and load",
		),
		question.Refuse(c.Load != "" && len(c.Labels) > 0, "labels are those of a counter"),
		question.Refuse(c.Each < 1, "each is %d (want at least 1)", c.Each),
		question.Refuse(c.Units < 1, "units is %d (want at least 1)", c.Units),
	)
}

// name returns a name for the count of the work: the counter's, or a phrase with the load's.
func (c *Cost) name() string {
	if c.Load != "" {
		return "what load " + c.Load + " did"
	}
	return c.Counter
}

func (c *Cost) describe() string {
	of, per := "CPU time", c.name()
	if c.Of == costAllocated {
		of = fmt.Sprintf("bytes allocated below %q", c.Under)
	}
	if c.Each > 1 {
		per = fmt.Sprintf("each of %d in one of %s", c.Each, c.name())
	}
	return fmt.Sprintf("%s for %s, over at least %d", of, per, c.Units)
}

// divide returns what a unit cost at least and at most in q's window, from the samples of the cost and of the counter.
// seen says how much work there was; doubt says why the cost can't be told, nil if it can.
func (c *Cost) divide(
	q *question.Question,
	spent, work metrics.Series,
) (cheap, dear float64, seen string, doubt error) {
	if c.Load != "" {
		return c.byLoad(q, spent)
	}
	one := q.Restarted()
	if one == nil && len(work.Samples) > 0 { // one process's counters only grow, so a gap between samples does no harm
		work.Doubt = nil
		if c.Of == costCPU && len(spent.Samples) > 0 {
			spent.Doubt = nil
		}
	}
	spent.Samples = slices.DeleteFunc(
		slices.Clone(spent.Samples),
		func(x metrics.Sample) bool { return !hasAround(work, x) },
	)
	if doubt := cmp.Or(work.Doubt, spent.WhyNoRate(), one); doubt != nil {
		return 0, 0, "", doubt
	}
	if i := work.FirstReset(); i > 0 {
		return 0, 0, "", check.Doubt(
			check.OtherProcess,
			"%s fell at %s: it was reset",
			c.Counter,
			question.Clock(work.Samples[i].Asked),
		)
	}
	least, most := grownBetween(work, spent.First(), spent.Last())
	seen = fmt.Sprintf(
		"%s in %s, while %s grew by %s",
		c.show(spent.Growth()),
		question.Span(spent.Extent()),
		c.Counter,
		rangeText(
			least,
			most,
			func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) },
		),
	)
	if least < float64(c.Units) {
		return 0, 0, seen, check.Doubt(
			check.TooFew,
			"%s: too little work to answer by, want %d",
			seen,
			c.Units,
		)
	}
	cheap, dear = spent.Growth()/most/float64(c.Each), spent.Growth()/least/float64(c.Each)
	return cheap, dear, seen + ": " + rangeText(cheap, dear, c.show) + " each", nil
}

// loadEarly is how long before the window a load may begin. What the load's calls cost before the window is not seen.
const loadEarly = 10 * time.Second

// byLoad returns what was spent between the first and the last sample of the window, divided by the load's calls that
// were answered with 200. A round that began outside the window is a doubt: calls that were made at another time would
// make the cost look small.
func (c *Cost) byLoad(
	q *question.Question,
	spent metrics.Series,
) (cheap, dear float64, seen string, doubt error) {
	one := q.Restarted()
	if c.Of == costCPU && one == nil && len(spent.Samples) > 0 {
		spent.Doubt = nil
	}
	if doubt := cmp.Or(spent.WhyNoRate(), one); doubt != nil {
		return 0, 0, "", doubt
	}
	load, path, err := question.LoadOf(q, c.Load)
	if err != nil {
		return 0, 0, "", err
	}
	q.Evidence = append(q.Evidence, path)
	for _, r := range load.Rounds {
		if r.Start.Before(q.Began) || r.Start.Before(q.Window.Start.Add(-loadEarly)) || r.Start.After(q.Window.End) {
			return 0, 0, "", check.Doubt(check.NotConclusive, "round %d of load %s began at %s, not in %s", r.Round, c.Load, question.Clock(r.Start),
				question.Span(q.Window))
		}
	}
	calls := load.Codes["200"]
	seen = fmt.Sprintf(
		"%s in %s, for %d calls of load %s",
		c.show(spent.Growth()),
		question.Span(spent.Extent()),
		calls,
		c.Load,
	)
	if calls < c.Units {
		return 0, 0, seen, check.Doubt(
			check.TooFew,
			"%s: too little work to answer by, want %d",
			seen,
			c.Units,
		)
	}
	each := spent.Growth() / float64(calls) / float64(c.Each)
	return each, each, seen + ": " + c.show(each) + " each", nil
}

// spent returns a series of the total cost since the process began.
func (c *Cost) spent(q *question.Question) metrics.Series {
	if c.Of == costCPU {
		return metrics.ReadCPU(q)
	}
	var all question.Captured
	var looks []metrics.Sample
	all.Each(q, bundle.Heap, "profile", func(a bundle.Artifact) error {
		if a.Missing {
			return question.CaptureError(a)
		}
		one, err := question.Remember(q.View, a, fmt.Sprintf("allocated below %q", c.Under),
			func(_ metrics.Sample, r io.Reader) (metrics.Sample, error) {
				bytes, made, err := heap.Allocated(r, c.Under)
				return metrics.Sample{
					Asked:    a.Time,
					Answered: question.LaterOf(a.Time, made),
					Value:    float64(bytes),
				}, err
			})
		if err == nil {
			looks = append(looks, one)
		}
		return err
	})
	s := metrics.Series{
		Name:    "what was allocated",
		Window:  q.Window,
		Samples: looks,
		Paths:   all.Paths,
		Doubt:   all.Missing,
	}
	if len(looks) == 0 {
		s.Doubt = cmp.Or(
			s.Doubt,
			check.Doubt(
				check.NotRecorded,
				"there is no heap profile in %s",
				question.Span(q.Window),
			),
		)
	}
	return s
}

// show returns a cost as text with its unit.
func (c *Cost) show(x float64) string {
	if c.Of == costCPU {
		return strconv.FormatFloat(x, 'g', 3, 64) + " s of CPU"
	}
	return strconv.FormatFloat(x/1000, 'f', 1, 64) + " kB"
}

// rangeText returns a range as findings show it: one number if both ends look the same.
func rangeText(from, to float64, show func(float64) string) string {
	if show(from) == show(to) {
		return show(from)
	}
	return show(from) + " to " + show(to)
}
