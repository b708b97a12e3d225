package check

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "costGrowth",
		Doc: "How the cost of a unit of the subject's work grows with a size that stands still for a while, grows, " +
			"and stands still again.\n\n" +
			"The cost is costPerUnit's, told for each size by itself, from the baseline to the end of the phase. It " +
			"is met where a unit costs more at each size than at the one before, and at the last one times as much " +
			"as at the first. A size at which too little was done to tell is passed over; fewer sizes than asked " +
			"for are unknown.",
		Example: "name: grows\nkind: costGrowth\nphase: fault\nspec:\n  of: cpu\n  counter: " +
			"kubeproxy_sync_proxy_rules_duration_seconds_count\n  units: 5\n  with: node_ipv4_addresses\n  sizes: 3\n  times: 4\n",
		New: func() Check { return &CostGrowth{Cost: oneUnit, Sizes: 3} },
	})
}

// CostGrowth asks how what a unit of work costs grows with a size.
type CostGrowth struct {
	Cost
	With  string  `json:"with" jsonschema:"the metric that is the size: node_ipv4_addresses"`
	Sizes int     `json:"sizes,omitzero" jsonschema:"at how many sizes the cost has to be known"`
	Times float64 `json:"times" jsonschema:"how many times as much as at the first size a unit costs at the last"`
}

// settled is the shortest time for which a size has to stand still: what was begun at the one before is done by then.
const settled = 15 * time.Second

// Validate refuses one size, which shows no growth.
func (c *CostGrowth) Validate() error {
	return errors.Join(c.Cost.validate(),
		refuse(c.With == "", "with is empty"),
		refuse(c.Load != "", "load is given: want a counter, which is known at each size"),
		refuse(c.Sizes < 2, "sizes is %d (want at least 2: one shows no growth)", c.Sizes),
		refuse(c.Times <= 1, "times is %g (want more than 1)", c.Times))
}

// sized is the cost of a unit at one size.
type sized struct{ size, cheap, dear float64 }

// Eval tells the cost at each size, and compares.
func (c *CostGrowth) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("at %d sizes of %s: %s; growing, and at the last %g times that at the first",
		c.Sizes, c.With, c.Cost.describe(), c.Times))
	if !ok {
		return q.Finding
	}
	if before, ok := v.Phase(q.cell, Baseline); ok && q.phase == Fault {
		q.window.Start = earlier(q.window.Start, before.Start)
	}
	sizes := metricSeries(q, c.With, nil)
	q.Evidence = sizes.paths
	var all []sized
	var shown []string
	for _, p := range plateaus(sizes.samples) {
		at := q.over(p.extent())
		spent, work := c.spent(at), metricSeries(at, c.Counter, c.Labels)
		q.Evidence = append(q.Evidence, spent.paths...)
		cheap, dear, _, doubt := c.divide(at, spent, work)
		name := strconv.FormatFloat(p.first().value, 'f', -1, 64)
		if doubt != "" {
			shown = append(shown, name+": "+doubt)
			continue
		}
		all = append(all, sized{p.first().value, cheap, dear})
		shown = append(shown, name+": "+ranged(cheap, dear, c.show))
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Compare(a.size, b.size) })
	q.Evidence = slices.Compact(slices.Sorted(slices.Values(q.Evidence)))
	q.Seen = fmt.Sprintf("by %s: %s", c.With, strings.Join(shown, "; "))
	if len(all) < c.Sizes {
		return q.unknown(fmt.Sprintf("the cost is known at %d sizes, want %d; %s", len(all), c.Sizes, q.Seen))
	}
	first, last := all[0], all[len(all)-1]
	rises := true
	for i := 1; i < len(all); i++ {
		rises = rises && all[i].cheap > all[i-1].dear
	}
	switch {
	case rises && last.cheap >= c.Times*first.dear:
		q.Met = Met
	case last.dear < c.Times*first.cheap:
		q.Met = NotMet
	default:
		return q.unknown(q.Seen + ": that is neither growth nor none")
	}
	return q.Finding
}

// plateaus are the stretches in which a number stays within a twentieth of what it was at first for long enough.
func plateaus(all []sample) (out []series) {
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && math.Abs(all[end].value-all[i].value) <= all[i].value/20 {
			end++
		}
		if p := (series{samples: all[i:end]}); length(p.extent()) >= settled {
			out = append(out, p)
		}
		i = end
	}
	return out
}
