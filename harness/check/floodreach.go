package check

import (
	"errors"
	"fmt"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "floodDelivered",
		Doc: "The runtime told the subject of more state changes than a limit, after a moment that a metric names.\n\n" +
			"The CRI interposer counts a pod's state changes when the subject's own relist has been given the last of them. The finding states the flood's " +
			"reach: an arm is only shown to survive that much.",
		Example: "name: delivered\nkind: floodDelivered\nphase: fault\nspec:\n  fault: flood\n  moreThan: {number: 1000}\n  since: {metric: kubelet_pleg_last_seen_seconds, plus: {duration: 3m}}\n",
		New:     func() Check { return &FloodDelivered{} },
	})
}

// FloodDelivered asks how much of a flood reached the subject.
type FloodDelivered struct {
	Fault    string   `json:"fault" jsonschema:"the name of the containerFlood in the scenario"`
	MoreThan Quantity `json:"moreThan" jsonschema:"how many state changes have to be exceeded"`
	Since    Mark     `json:"since" jsonschema:"only deliveries at or after this moment count"`
}

// Reads names the interposer's counts and the metrics that the moment comes from.
func (c *FloodDelivered) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.Interposer, bundle.MetricSamples}
}

// NeedsConstants names the constants of the limit and of the moment.
func (c *FloodDelivered) NeedsConstants() []string {
	return append(c.MoreThan.constants(), c.Since.Plus.constants()...)
}

// Validate refuses a limit and a moment in the wrong unit.
func (c *FloodDelivered) Validate() error {
	switch {
	case c.Fault == "":
		return errors.New("fault is empty")
	case c.MoreThan.Number != nil && *c.MoreThan.Number < 0:
		return fmt.Errorf("moreThan.number is %g (want 0 or more)", *c.MoreThan.Number)
	}
	return errors.Join(c.MoreThan.validate("moreThan", false), c.Since.validate("since"))
}

// Eval takes the last reading of the window in which the flood was armed: deliveries only grow.
func (c *FloodDelivered) Eval(v bundle.View, s Scope) Finding {
	limit, err := c.MoreThan.value(v, s.Cell)
	wanted := fmt.Sprintf("more than %g state changes delivered", limit) + c.MoreThan.assumed(v, s.Cell)
	if bad := c.Validate(); bad != nil {
		err = bad
	}
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	mark, short, doubt := c.Since.at(v, s.Cell, w)
	if doubt != "" {
		return unknown(wanted, doubt, nil)
	}
	wanted += " after " + mark.UTC().Format("15:04:05")
	st := read[bundle.Stamped[control.Counts]](v, bundle.Interposer, s.Cell, w)
	rec, found := c.newest(&st, w)
	if short != "" {
		return Finding{Met: NotMet, Seen: short, Wanted: wanted, Evidence: st.paths}
	}
	if !found {
		if st.doubt != "" {
			return unknown(wanted, st.doubt, st.paths)
		}
		return Finding{Met: NotMet, Seen: "no flood was armed", Wanted: wanted, Evidence: st.paths}
	}
	n := rec.DeliveredAfter(mark)
	f := Finding{Met: Of(float64(n) > limit), Wanted: wanted, Evidence: st.paths,
		Seen: fmt.Sprintf("%d delivered after it, of %d in all; the flood's reach is up to %d events in one relist",
			n, rec.DeliveredSandboxes+rec.DeliveredContainers, rec.Flood.StateChanges()) + c.MoreThan.assumed(v, s.Cell)}
	if f.Met == NotMet && st.doubt != "" {
		return unknown(wanted, st.doubt, st.paths)
	}
	return f
}

// newest is the flood's record in the last reading of the window. An interposer that was restarted counts from zero with nothing armed,
// which leaves the stream in doubt: what it says is too little at best.
func (c *FloodDelivered) newest(st *stream[bundle.Stamped[control.Counts]], w bundle.Window) (rec control.ArmRecord, found bool) {
	var process control.Counts
	for _, r := range st.records {
		if r.Time.After(w.End) || r.Time.Before(w.Start) {
			continue
		}
		if process.PID != 0 && (r.Value.PID != process.PID || !r.Value.StartedAt.Equal(process.StartedAt)) && st.doubt == "" {
			st.doubt = fmt.Sprintf("the interposer was restarted by %s", r.Time.UTC().Format("15:04:05"))
		}
		process = r.Value
		if a, ok := r.Value.Find(control.FaultFlood, c.Fault); ok {
			rec, found = a, true
		}
	}
	return rec, found
}
