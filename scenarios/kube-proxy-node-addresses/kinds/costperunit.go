package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "costPerUnit",
		Doc: "What a unit of the subject's work costs: CPU time, or bytes allocated below functions, divided by the " +
			"growth of a counter of the work.\n\n" +
			"A starved subject does less work. Its share of the CPU says nothing about how much the work costs, but " +
			"the cost of a unit does. CPU time is what the kernel of the subject's node counts for the process, and " +
			"for children that the process has waited for. Bytes are the difference between the first and the last " +
			"heap profile of the window, whether they were freed again or not.\n\n" +
			"How much work was done in between is known only to within two samples of the counter, so the cost is a " +
			"range. If the limit lies inside the range, the answer is unknown. The answer is also unknown if the " +
			"counter grew by less than units, if the counter fell, or if the subject was not the same process all " +
			"along. A gap between the samples does no harm.\n\n" +
			"A subject that counts each unit twice would halve its cost. So the work can be counted by the calls of " +
			"a load instead: what was spent in the window is divided by the calls that were answered with 200.",
		Example: "name: costly\nkind: costPerUnit\nphase: fault\nspec:\n  of: allocated\n  under: " +
			"[net.interfaceAddrTable]\n  counter: kubeproxy_sync_proxy_rules_duration_seconds_count\n  each: 200\n  " +
			"units: 10\n  atLeast: 200k\n",
		Meets:   `{"of":"cpu","counter":"grows_total","units":1,"below":"1h"}`,
		Differs: `{"of":"cpu","counter":"grows_total","units":1,"atLeast":"1h"}`,
		New:     func() check.Check { return &CostPerUnit{Cost: oneUnit} },
	})
}

// CostPerUnit asks what a unit of work costs.
type CostPerUnit struct {
	Cost
	AtLeast string `json:"atLeast,omitempty" jsonschema:"the least that a unit must cost: a duration for cpu (200ms), bytes for allocated (200k). Give either atLeast or below"`
	Below   string `json:"below,omitempty" jsonschema:"instead of atLeast: a unit must cost less than this"`
}

// Validate refuses no limit or two limits, and a limit in the wrong unit.
func (c *CostPerUnit) Validate() error {
	_, err := c.limit()
	return errors.Join(
		c.Cost.validate(),
		cmp.Or(
			question.Refuse(
				question.CountTrue(c.AtLeast != "", c.Below != "") != 1,
				"want one of atLeast and below",
			),
			err,
		),
	)
}

// limit returns the limit that the cost is compared with, in seconds or bytes.
func (c *CostPerUnit) limit() (float64, error) {
	field, text := "atLeast", cmp.Or(c.AtLeast, c.Below)
	if c.Below != "" {
		field = "below"
	}
	if c.Of == costCPU {
		return question.Duration(text).Seconds(), question.Positive(field, text)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("%s is %q (want bytes above 0, with a suffix: 200k)", field, text)
	}
	return q.AsApproximateFloat64(), nil
}

// Describe says in words what the check asks for.
func (c *CostPerUnit) Describe() string {
	side := "at least " + c.AtLeast
	if c.Below != "" {
		side = "below " + c.Below
	}
	return side + " of " + c.Cost.describe()
}

// Eval divides the cost between the first and the last sample by the work between them.
func (c *CostPerUnit) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	limit, _ := c.limit() // Validate has read it
	spent := c.spent(q)
	var work metrics.Series
	if c.Load == "" {
		work = metrics.ReadSeries(q, c.Counter, c.Labels)
	}
	q.Evidence = slices.Concat(spent.Paths, work.Paths)
	cheap, dear, seen, doubt := c.divide(q, spent, work)
	if q.Seen = seen; doubt != nil {
		return q.Unknown(doubt)
	}
	unit := "Bytes"
	if c.Of == costCPU {
		unit = "CPUSeconds"
	}
	q.Keep("least"+unit+"PerUnit", cheap)
	q.Keep("most"+unit+"PerUnit", dear)
	switch {
	case cheap >= limit:
		q.Met = check.Of(c.Below == "")
	case dear < limit:
		q.Met = check.Of(c.Below != "")
	default:
		q.DoubtBy(check.NotConclusive, ", on both sides of the limit")
	}
	return q.Finding
}
