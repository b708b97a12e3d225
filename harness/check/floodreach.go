package check

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
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
		New:     func() Check { return &FloodDelivered{} },
	})
}

// FloodDelivered asks how much of a flood reached the subject.
type FloodDelivered struct {
	Fault    string     `json:"fault" jsonschema:"name of the containerFlood in the scenario"`
	MoreThan Quantity   `json:"moreThan" jsonschema:"there must be more state changes than this: a number (0 or more) or a constant"`
	Since    StartPoint `json:"since" jsonschema:"where the stretch begins in which deliveries count. Give one of log, node and flood"`
	Fresh    *Fresh     `json:"fresh,omitempty" jsonschema:"a time stamp metric of the subject that must stay young in the whole window. Default: none"`
}

// Fresh asks that a timestamp metric never grows as old as a limit.
type Fresh struct {
	Metric string   `json:"metric" jsonschema:"name of a metric whose value is a time in seconds since the Unix epoch"`
	Below  Quantity `json:"below" jsonschema:"age that the time stamp must never reach: a duration or a constant"`
}

// Reads names the interposer's counts, and the artifacts that the start point and the time stamp come from.
func (c *FloodDelivered) Reads() []bundle.Kind {
	out := union(c.Since.reads(), bundle.Interposer)
	if c.Fresh != nil {
		out = union(out, bundle.MetricSamples)
	}
	return out
}

// Needs names the constants of the limit, of the start point and of the age.
func (c *FloodDelivered) Needs() Needs {
	out := append(c.MoreThan.constants(), c.Since.constants()...)
	if c.Fresh != nil {
		out = append(out, c.Fresh.Below.constants()...)
	}
	return Needs{Constants: out}
}

// Validate refuses empty names, a limit below 0, and quantities in the wrong unit.
func (c *FloodDelivered) Validate() error {
	switch {
	case c.Fault == "":
		return errors.New("fault is empty")
	case c.MoreThan.Number != nil && *c.MoreThan.Number < 0:
		return fmt.Errorf("moreThan.number is %g (want 0 or more)", *c.MoreThan.Number)
	}
	errs := []error{c.MoreThan.validate("moreThan", false), c.Since.validate("since")}
	if c.Fresh != nil {
		errs = append(errs, refuse(c.Fresh.Metric == "", "fresh.metric is empty"),
			c.Fresh.Below.validate("fresh.below", true))
	}
	return errors.Join(errs...)
}

// Eval counts the deliveries by the last reading of the window in which the flood was armed, because deliveries only
// grow.
func (c *FloodDelivered) Eval(v bundle.View, s Scope) Finding {
	limit, err := c.MoreThan.value(v, s.Arm)
	q, ok := ask(c, v, s, fmt.Sprintf("more than %g state changes delivered", limit)+c.MoreThan.assumed(v, s.Arm), err)
	if !ok {
		return q.Finding
	}
	mark := c.Since.resolve(q)
	if mark.doubt != "" {
		return q.unknown(mark.doubt)
	}
	q.Wanted += mark.after()
	rec, found, st := newestFlood(q, c.Fault)
	q.Evidence = union(mark.paths, st.paths...)
	switch {
	case mark.short != "":
		return q.answer(False, mark.short)
	case !found && st.doubt != "":
		return q.unknown(st.doubt)
	case !found:
		return q.answer(False, "no flood was armed")
	}
	n := rec.DeliveredBetween(mark.Start, mark.End)
	q.Met = Of(float64(n) > limit)
	q.Seen = fmt.Sprintf("%d delivered from then on, of %d in all", n, rec.DeliveredSandboxes+rec.DeliveredContainers) +
		c.MoreThan.assumed(v, q.arm)
	if mark.said != "" {
		q.Seen += "; " + mark.said
	}
	if q.Met == False && st.doubt != "" {
		return q.unknown(st.doubt)
	}
	if q.Met == True && c.Fresh != nil {
		c.Fresh.judge(q)
	}
	if q.Met == True {
		q.Tried = fmt.Sprintf("%d state changes delivered from %s on", n, clock(mark.Start))
	}
	return q.Finding
}

// judge makes a finding false if the time stamp grew too old, and unknown if its age isn't known.
func (r Fresh) judge(q *question) {
	below, err := r.Below.value(q.view, q.arm)
	limit := time.Duration(below)
	stamps := metricSeries(q, r.Metric, nil)
	oldest, _ := stamps.oldest()
	q.Wanted += fmt.Sprintf(", while %s is never %s old", r.Metric, limit)
	q.Evidence = append(q.Evidence, stamps.paths...)
	q.Seen += fmt.Sprintf("; %s was at most %s old", r.Metric, oldest.Round(100*time.Millisecond))
	switch {
	case err != nil: // without a limit nothing is too old
		q.Finding = q.unknown(err.Error())
	case oldest >= limit:
		q.Met = False
	case stamps.doubt != "":
		q.Finding = q.unknown(stamps.doubt)
	case oldest < 0:
		q.Finding = q.unknown("no sample of " + r.Metric)
	}
}
