package kinds

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "floodDelivered",
		Doc: "The runtime told the subject about more state changes than a limit, within a stretch of time that " +
			"begins where `since` says.\n\n" +
			"The CRI interposer counts a pod's state changes once a relist of the subject has been given the last of " +
			"them. The finding says how many state changes there were: an arm is only shown to survive that many. " +
			"With fresh, a time stamp of the subject must also have stayed young in the whole window, which shows a " +
			"build that is never overdue.",
		Example: "name: delivered\nkind: floodDelivered\nphase: fault\nspec:\n  fault: flood\n  moreThan: {number: " +
			"1000}\n  since: {flood: flood, plus: {duration: 3m}}\n",
		Meets:   `{"fault":"flood","moreThan":{"number":7},"since":{"flood":"flood"}}`,
		Differs: `{"fault":"flood","moreThan":{"number":8},"since":{"flood":"flood"}}`,
		New:     func() check.Check { return &FloodDelivered{} },
	})
}

// FloodDelivered asks how much of a flood reached the subject.
type FloodDelivered struct {
	Fault    string                `json:"fault" refers:"fault" jsonschema:"name of the containerFlood in the scenario"`
	MoreThan question.Quantity     `json:"moreThan" jsonschema:"there must be more state changes than this: a number (0 or more) or a constant"`
	Since    goroutines.StartPoint `json:"since" jsonschema:"where the stretch begins in which deliveries count. Give one of log, node and flood"`
	Fresh    *Fresh                `json:"fresh,omitempty" jsonschema:"a time stamp metric of the subject that must stay young in the whole window. Default: none"`
}

// Fresh asks that a timestamp metric never grows as old as a limit.
type Fresh struct {
	Metric string            `json:"metric" refers:"metric" jsonschema:"name of a metric whose value is a time in seconds since the Unix epoch"`
	Below  question.Quantity `json:"below" jsonschema:"age that the time stamp must never reach: a duration or a constant"`
}

// Reads names the interposer's counts, and the artifacts that the start point and the time stamp come from.
func (c *FloodDelivered) Reads() []bundle.Kind {
	out := question.Union(c.Since.Reads(), bundle.Interposer)
	if c.Fresh != nil {
		out = question.Union(out, bundle.MetricSamples)
	}
	return out
}

// Validate refuses empty names, a limit below 0, and quantities in the wrong unit.
func (c *FloodDelivered) Validate() error {
	switch {
	case c.Fault == "":
		return errors.New("fault is empty")
	case c.MoreThan.Number != nil && *c.MoreThan.Number < 0:
		return fmt.Errorf("moreThan.number is %g (want 0 or more)", *c.MoreThan.Number)
	}
	errs := []error{c.MoreThan.Validate("moreThan", false), c.Since.Validate("since")}
	if c.Fresh != nil {
		errs = append(errs, question.Refuse(c.Fresh.Metric == "", "fresh.metric is empty"),
			c.Fresh.Below.Validate("fresh.below", true))
	}
	return errors.Join(errs...)
}

// Eval counts the deliveries by the last reading of the window in which the flood was armed, because deliveries only
// grow.
func (c *FloodDelivered) Eval(v bundle.View, s check.Scope) check.Finding {
	limit, err := c.MoreThan.Value(v, s.Arm)
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("more than %g state changes delivered", limit)+c.MoreThan.Assumed(v, s.Arm),
		err,
	)
	if !ok {
		return q.Finding
	}
	mark := c.Since.Resolve(q)
	if mark.Doubt != nil {
		return q.Unknown(mark.Doubt)
	}
	q.Wanted += mark.DescribeStart()
	rec, found, st := goroutines.NewestFlood(q, c.Fault)
	q.Evidence = question.Union(mark.Paths, st.Paths...)
	switch {
	case mark.Absent != "":
		return q.Answer(check.False, mark.Absent)
	case !found && st.Doubt != nil:
		return q.Unknown(st.Doubt)
	case !found:
		return q.Answer(check.False, "no flood was armed")
	}
	n := rec.DeliveredBetween(mark.Start, mark.End)
	q.Met = check.Of(float64(n) > limit)
	q.Say(
		"%d delivered from then on, of %d in all%s",
		question.N("deliveredSince", n),
		question.N(
			"delivered",
			rec.DeliveredSandboxes+rec.DeliveredContainers,
		),
		c.MoreThan.Assumed(v, q.Arm),
	)
	if mark.Said != "" {
		q.Add("; %s", mark.Said)
	}
	if q.Met == check.False && st.Doubt != nil {
		return q.Unknown(st.Doubt)
	}
	if q.Met == check.True && c.Fresh != nil {
		c.Fresh.judge(q)
	}
	if q.Met == check.True {
		q.Tried = fmt.Sprintf(
			"%d state changes delivered from %s on",
			n,
			question.Clock(mark.Start),
		)
	}
	return q.Finding
}

// judge makes a finding false if the time stamp grew too old, and unknown if its age isn't known.
func (r Fresh) judge(q *question.Question) {
	below, err := r.Below.Value(q.View, q.Arm)
	limit := time.Duration(below)
	stamps := metrics.ReadSeries(q, r.Metric, nil)
	age := oldest(stamps)
	q.Wanted += fmt.Sprintf(", while %s is never %s old", r.Metric, limit)
	q.Evidence = append(q.Evidence, stamps.Paths...)
	q.Add(
		"; %s was at most %s old",
		r.Metric,
		question.Rounded("oldestSeconds", age, 100*time.Millisecond),
	)
	switch {
	case err != nil: // without a limit nothing is too old
		q.Finding = q.Unknown(check.Doubt(check.BadCheck, "%w", err))
	case age >= limit:
		q.Met = check.False
	case stamps.Doubt != nil:
		q.Finding = q.Unknown(stamps.Doubt)
	case age < 0:
		q.Finding = q.Unknown(check.Doubt(check.NotRecorded, "no sample of %s", r.Metric))
	}
}

// oldest returns the largest age of a metric that holds a time in seconds since the epoch. An age is taken at the time
// of the request, when the metric was younger than at the time of the answer. A metric that was never set has no age;
// age is below 0 if no sample has one.
func oldest(s metrics.Series) (age time.Duration) {
	age = -1
	for _, x := range s.Samples {
		if a := x.Asked.Sub(time.Unix(0, int64(x.Value*1e9))); x.Value > 0 && a > age {
			age = a
		}
	}
	return age
}
