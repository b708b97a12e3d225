package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "costGrowth",
		Doc: "How the cost of a unit of the subject's work grows with a size that stands still for a while, grows, " +
			"and stands still again.\n\n" +
			"The cost is that of costPerUnit, for each size separately. The work must be counted by a counter, not " +
			"by a load. In the fault phase, the check also looks at the baseline. A size counts if it stands still " +
			"for 15s. If too little work was done at a size to know the cost, that size is skipped. If fewer sizes " +
			"remain than `sizes` asks for, the answer is unknown.\n\n" +
			"With times, the check is true if a unit costs more at each size than at the next smaller one, and at " +
			"the largest size at least times as much as at the smallest.\n\n" +
			"With atMostMore, the check asks instead that a unit costs about as much at each size. A fast machine " +
			"makes everything cheap, so the limit is a multiple of what a unit costs at the smallest size. Only the " +
			"cost of the process alone counts for this limit: what its children do costs the same at each size, and " +
			"would make a growth look small. Neither the process with its children nor the process alone may exceed " +
			"the limit: children that happen to take less would hide a growth of the process. The costs at the " +
			"smallest and at the largest size must be known.",
		Example: "name: grows\nkind: costGrowth\nphase: fault\nspec:\n  of: cpu\n  counter: " +
			"kubeproxy_sync_proxy_rules_duration_seconds_count\n  units: 5\n  with: node_ipv4_addresses\n  sizes: 3\n  times: 4\n",
		New: func() check.Check { return &CostGrowth{Cost: oneUnit, Sizes: 3} },
	})
}

// CostGrowth asks how the cost of a unit of work grows with a size.
type CostGrowth struct {
	Cost
	With  string  `json:"with" refers:"metric" jsonschema:"name of the metric whose value is the size, such as node_ipv4_addresses"`
	Sizes int     `json:"sizes,omitzero" jsonschema:"at how many sizes the cost must be known, at least (2 or more)"`
	Times float64 `json:"times,omitzero" jsonschema:"how many times as much a unit must cost at the largest size as at the smallest, at least (above 1). Give either times or atMostMore"`

	AtMostMore float64 `json:"atMostMore,omitzero" jsonschema:"instead of times: how much more a unit may cost at any size than at the smallest, as a multiple of what a unit costs the process alone at the smallest (above 0)"`
}

// NeedsBaselineProcess returns true: a unit's cost in the baseline is one of those that are compared, and a new process has
// yet to fill its caches.
func (*CostGrowth) NeedsBaselineProcess() bool { return true }

// settled is the shortest time for which a size has to stand still. Work that began at the previous size is done by
// then.
const settled = 15 * time.Second

// Validate refuses fewer than two sizes, which show no growth, a load in place of a counter, and no limit or two.
func (c *CostGrowth) Validate() error {
	return errors.Join(
		c.Cost.validate(),
		question.Refuse(c.With == "", "with is empty"),
		question.Refuse(c.Load != "", "load is given: want a counter, which is known at each size"),
		question.Refuse(c.Sizes < 2, "sizes is %d (want at least 2: one shows no growth)", c.Sizes),
		cmp.Or(question.Refuse(question.CountTrue(c.Times != 0, c.AtMostMore != 0) != 1, "want one of times and atMostMore"),
			question.Refuse(c.Times != 0 && c.Times <= 1, "times is %g (want more than 1)", c.Times),
			question.Refuse(c.AtMostMore < 0, "atMostMore is %g (want above 0)", c.AtMostMore)))
}

// between has what a unit costs, at least and at most.
type between struct{ cheap, dear float64 }

// sized has the cost of a unit at one size: all of it, and without that of the process's children.
type sized struct {
	size       float64
	all, alone between
}

// wanted says in words what the check asks for.
func (c *CostGrowth) wanted() string {
	if c.AtMostMore != 0 {
		return fmt.Sprintf(
			"at %d sizes of %s: %s; at none more than at the smallest by over %g times what it costs the "+
				"process alone there, with its children or without",
			c.Sizes,
			c.With,
			c.Cost.describe(),
			c.AtMostMore,
		)
	}
	return fmt.Sprintf(
		"at %d sizes of %s: %s; growing, and at the last %g times that at the first",
		c.Sizes,
		c.With,
		c.Cost.describe(),
		c.Times,
	)
}

// Eval computes the cost of a unit at each size, and compares the costs.
func (c *CostGrowth) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	if before, ok := v.Phase(q.Arm, check.Baseline); ok && q.Phase == check.Fault {
		q.Window.Start = question.EarlierOf(q.Window.Start, before.Start)
	}
	sizes := metrics.ReadSeries(q, c.With, nil)
	q.Evidence = sizes.Paths
	var all []sized
	var shown []string
	var code check.Code     // of the first size whose cost is not known
	var least, most float64 // the smallest and the largest size, whether or not the cost there is known
	for i, p := range plateaus(sizes.Samples) {
		size := p.First().Value
		if i == 0 || size < least {
			least = size
		}
		most = max(most, size)
		one, doubt := c.costAtSize(q, p)
		name := sizeText(size)
		if doubt != nil {
			code = cmp.Or(code, check.CodeOf(doubt))
			shown = append(shown, fmt.Sprintf("%s: %s", name, doubt))
			continue
		}
		all = append(all, one)
		shown = append(shown, name+": "+rangeText(one.all.cheap, one.all.dear, c.show))
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	q.Evidence = slices.Compact(slices.Sorted(slices.Values(q.Evidence)))
	q.Say("by %s: %s", c.With, strings.Join(shown, "; "))
	switch {
	case len(all) < c.Sizes:
		return q.Unknown(
			check.Doubt(
				cmp.Or(code, check.TooFew),
				"the cost is known at %d sizes, want %d; %s",
				len(all),
				c.Sizes,
				q.Seen,
			),
		)
	case c.Times != 0:
		q.Met = c.grows(all)
	case all[0].size > least || all[len(all)-1].size < most:
		return q.Unknown(
			check.Doubt(
				cmp.Or(code, check.TooFew),
				"the cost is not known at the smallest and the largest size; %s",
				q.Seen,
			),
		)
	default:
		q.Met = c.stays(all)
		q.Add("; the process alone: %s", c.showAlone(all))
	}
	if q.Met == check.Unknown {
		return q.Unknown(check.Doubt(check.NotConclusive, "%s: that is neither growth nor none", q.Seen))
	}
	return q.Finding
}

// costAtSize returns the cost of a unit during p, in which the size stood still. doubt says why the cost can't be told,
// nil if it can.
func (c *CostGrowth) costAtSize(q *question.Question, p metrics.Series) (one sized, doubt error) {
	at := q.Over(p.Extent())
	spent, work := c.spent(at), metrics.ReadSeries(at, c.Counter, c.Labels)
	q.Evidence = append(q.Evidence, spent.Paths...)
	one.size = p.First().Value
	if one.all.cheap, one.all.dear, _, doubt = c.divide(at, spent, work); doubt != nil {
		return one, doubt
	}
	one.alone = one.all
	if c.Of == costCPU {
		own := metrics.ReadCPUBy(
			at,
			func(r bundle.IdentitySample) float64 { return r.CPUSeconds },
		)
		one.alone.cheap, one.alone.dear, _, doubt = c.divide(at, own, work)
	}
	return one, doubt
}

// grows reports whether a unit costs more at each size than at the previous size, and at the last size at least Times
// as much as at the first.
func (c *CostGrowth) grows(all []sized) check.Truth {
	first, last := all[0].all, all[len(all)-1].all
	rises := true
	for i := 1; i < len(all); i++ {
		rises = rises && all[i].all.cheap > all[i-1].all.dear
	}
	switch {
	case rises && last.cheap >= c.Times*first.dear:
		return check.True
	case last.dear < c.Times*first.cheap:
		return check.False
	}
	return check.Unknown
}

// stays reports whether a unit costs little more at every size than at the smallest: AtMostMore times what the unit
// costs the process alone at the smallest size. Both the process with its children and the process alone must stay.
func (c *CostGrowth) stays(all []sized) check.Truth {
	first := all[0]
	limit := between{c.AtMostMore * first.alone.cheap, c.AtMostMore * first.alone.dear}
	var met []check.Truth
	for _, one := range all[1:] {
		met = append(met, limit.holds(first.all, one.all), limit.holds(first.alone, one.alone))
	}
	return check.All(met...)
}

// holds reports whether a unit costs no more now than before and this limit.
func (limit between) holds(before, now between) check.Truth {
	switch {
	case now.cheap-before.dear > limit.dear:
		return check.False
	case now.dear-before.cheap <= limit.cheap:
		return check.True
	}
	return check.Unknown
}

// showAlone returns what a unit costs the process alone at each size.
func (c *CostGrowth) showAlone(all []sized) string {
	var out []string
	for _, one := range all {
		out = append(
			out,
			sizeText(one.size)+": "+rangeText(one.alone.cheap, one.alone.dear, c.show),
		)
	}
	return strings.Join(out, "; ")
}

func sizeText(size float64) string { return strconv.FormatFloat(size, 'f', -1, 64) }

// plateaus returns the stretches in which the samples stay within a twentieth of their first value, for settled or
// longer.
func plateaus(all []metrics.Sample) (out []metrics.Series) {
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && math.Abs(all[end].Value-all[i].Value) <= all[i].Value/20 {
			end++
		}
		if p := (metrics.Series{Samples: all[i:end]}); question.Length(p.Extent()) >= settled {
			out = append(out, p)
		}
		i = end
	}
	return out
}
