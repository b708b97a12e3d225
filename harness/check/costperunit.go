package check

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/heap"
)

func init() {
	register(kind{
		Name: "costPerUnit",
		Doc: "What a unit of the subject's work costs: CPU time, or bytes allocated below functions, divided by the " +
			"growth of a counter of the work.\n\n" +
			"A starved subject does less work, and a share of its CPU says nothing of how much that costs; a cost " +
			"per unit does. CPU time is what the kernel of its node counts for the process. Bytes are the " +
			"difference between the first and the last heap profile of the window, freed again or not. How much " +
			"was done in between is known within two samples of the counter, so a cost is a range: it meets a limit " +
			"only as a whole, and a range on both sides of it is unknown. So is less work than units, another " +
			"process, and a counter that falls. That nobody looked for a while in between changes nothing.",
		Example: "name: costly\nkind: costPerUnit\nphase: fault\nspec:\n  of: allocated\n  under: " +
			"[net.interfaceAddrTable]\n  counter: kubeproxy_sync_proxy_rules_duration_seconds_count\n  each: 200\n  " +
			"units: 10\n  atLeast: 200k\n",
		Meets:   `{"of":"cpu","counter":"grows_total","units":1,"below":"1h"}`,
		Differs: `{"of":"cpu","counter":"grows_total","units":1,"atLeast":"1h"}`,
		New:     func() Check { return &CostPerUnit{Each: 1, Units: 1} },
	})
}

// CostPerUnit asks what a unit of work costs.
type CostPerUnit struct {
	Of      string            `json:"of" jsonschema:"cpu or allocated"`
	Under   []string          `json:"under,omitempty" jsonschema:"of allocated: parts of names of functions; what is below one of them counts"`
	Counter string            `json:"counter" jsonschema:"the metric that counts the work, as exposed"`
	Labels  map[string]string `json:"labels,omitempty" jsonschema:"labels that its samples must have; all that match are added up"`
	Each    int               `json:"each,omitzero" jsonschema:"how many units each count stands for: the services that a sync goes through"`
	Units   int               `json:"units,omitzero" jsonschema:"by how much the counter must have grown at least"`
	AtLeast string            `json:"atLeast,omitempty" jsonschema:"the cost that must be reached: a duration of cpu (200ms), bytes of allocated (200k)"`
	Below   string            `json:"below,omitempty" jsonschema:"the cost that must not be reached, instead of atLeast"`
}

const costCPU, costAllocated = "cpu", "allocated"

// Reads names metric samples and what the cost is read from.
func (c *CostPerUnit) Reads() []bundle.Kind {
	if c.Of == costAllocated {
		return []bundle.Kind{bundle.MetricSamples, bundle.Heap}
	}
	return []bundle.Kind{bundle.MetricSamples, bundle.Identity}
}

// Validate refuses no limit or two, and one in the wrong unit.
func (c *CostPerUnit) Validate() error {
	_, err := c.limit()
	return errors.Join(
		refuse(c.Of != costCPU && c.Of != costAllocated, "of is %q (want cpu or allocated)", c.Of),
		refuse((c.Of == costAllocated) != (len(c.Under) > 0) || slices.Contains(c.Under, ""),
			"under is %q (want names with allocated, none of them empty, and nothing with cpu)", c.Under),
		refuse(c.Counter == "", "counter is empty"),
		refuse(c.Each < 1, "each is %d (want at least 1)", c.Each),
		refuse(c.Units < 1, "units is %d (want at least 1)", c.Units),
		cmp.Or(refuse(given(c.AtLeast != "", c.Below != "") != 1, "want one of atLeast and below"), err),
	)
}

// limit is what is compared with, in seconds or bytes.
func (c *CostPerUnit) limit() (float64, error) {
	field, text := "atLeast", cmp.Or(c.AtLeast, c.Below)
	if c.Below != "" {
		field = "below"
	}
	if c.Of == costCPU {
		return duration(text).Seconds(), positive(field, text)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("%s is %q (want bytes above 0, with a suffix: 200k)", field, text)
	}
	return q.AsApproximateFloat64(), nil
}

// Describe says in words what is asked.
func (c *CostPerUnit) Describe() string {
	of, per := "CPU time", c.Counter
	if c.Of == costAllocated {
		of = fmt.Sprintf("bytes allocated below %q", c.Under)
	}
	if c.Each > 1 {
		per = fmt.Sprintf("each of %d in one of %s", c.Each, c.Counter)
	}
	side := "at least " + c.AtLeast
	if c.Below != "" {
		side = "below " + c.Below
	}
	return fmt.Sprintf("%s of %s for %s, over at least %d", side, of, per, c.Units)
}

// Eval divides the cost between the first and the last look by the work between them.
func (c *CostPerUnit) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	limit, _ := c.limit() // Validate has read it
	spent, work := c.spent(q), metricSeries(q, c.Counter, c.Labels)
	q.Evidence = slices.Concat(spent.paths, work.paths)
	one := q.restarted()
	if one == "" && len(work.samples) > 0 { // what one process counts only grows, whoever failed to look in between
		work.doubt = ""
		if c.Of == costCPU && len(spent.samples) > 0 {
			spent.doubt = ""
		}
	}
	spent.samples = slices.DeleteFunc(spent.samples, func(x sample) bool { return !work.around(x) })
	if doubt := cmp.Or(work.doubt, spent.noRate(), one); doubt != "" {
		return q.unknown(doubt)
	}
	if i := work.reset(); i > 0 {
		return q.unknown(fmt.Sprintf("%s fell at %s: it was reset", c.Counter, clock(work.samples[i].asked)))
	}
	least, most := work.grownBetween(spent.first(), spent.last())
	q.Seen = fmt.Sprintf("%s in %s, while %s grew by %s", c.show(spent.grown()), span(spent.extent()), c.Counter,
		ranged(least, most, func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }))
	if least < float64(c.Units) {
		return q.unknown(q.Seen + fmt.Sprintf(": too little work to answer by, want %d", c.Units))
	}
	cheap, dear := spent.grown()/most/float64(c.Each), spent.grown()/least/float64(c.Each)
	q.Seen += ": " + ranged(cheap, dear, c.show) + " each"
	switch {
	case cheap >= limit:
		q.Met = Of(c.Below == "")
	case dear < limit:
		q.Met = Of(c.Below != "")
	default:
		return q.unknown(q.Seen + ", on both sides of the limit")
	}
	return q.Finding
}

// spent is the cost since the process began, each time that somebody looked.
func (c *CostPerUnit) spent(q *question) series {
	if c.Of == costCPU {
		return cpuSeries(q)
	}
	var all captured
	var looks []sample
	all.each(q, bundle.Heap, "profile", func(a bundle.Artifact) error {
		if a.Missing {
			return errors.New(broken(a))
		}
		one, err := remember(q.view, a, fmt.Sprintf("allocated below %q", c.Under),
			func(_ sample, r io.Reader) (sample, error) {
				bytes, made, err := heap.Allocated(r, c.Under)
				return sample{asked: a.Time, answered: later(a.Time, made), value: float64(bytes)}, err
			})
		if err == nil {
			looks = append(looks, one)
		}
		return err
	})
	s := series{name: "what was allocated", window: q.window, samples: looks, paths: all.paths, doubt: all.missing}
	if len(looks) == 0 {
		s.doubt = cmp.Or(s.doubt, fmt.Sprintf("there is no heap profile in %s", span(q.window)))
	}
	return s
}

// show is a cost in its unit.
func (c *CostPerUnit) show(x float64) string {
	if c.Of == costCPU {
		return strconv.FormatFloat(x, 'g', 3, 64) + " s of CPU"
	}
	return strconv.FormatFloat(x/1000, 'f', 1, 64) + " kB"
}

// ranged is a range as findings show it.
func ranged(from, to float64, show func(float64) string) string {
	if show(from) == show(to) {
		return show(from)
	}
	return show(from) + " to " + show(to)
}

// before is the last sample that was answered by a time, after the first that was asked for from then on.
func (s series) before(t time.Time) (x sample, ok bool) {
	for _, x := range slices.Backward(s.samples) {
		if !x.answered.After(t) {
			return x, true
		}
	}
	return x, false
}

func (s series) after(t time.Time) (x sample, ok bool) {
	i := slices.IndexFunc(s.samples, func(x sample) bool { return !x.asked.Before(t) })
	if i < 0 {
		return x, false
	}
	return s.samples[i], true
}

// around reports whether there are samples on both sides of a look at something else.
func (s series) around(look sample) bool {
	_, before := s.before(look.asked)
	_, after := s.after(look.answered)
	return before && after
}

// grownBetween is by how much a counter grew between two looks at something else that it has samples around, at least
// and at most: somebody who looks takes a while, and so does a sample.
func (s series) grownBetween(from, to sample) (least, most float64) {
	first, _ := s.before(from.asked)
	second, _ := s.after(from.answered)
	third, _ := s.before(to.asked)
	last, _ := s.after(to.answered)
	return max(0, third.value-second.value), last.value - first.value
}
