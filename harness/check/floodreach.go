package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "floodDelivered",
		Doc: "The runtime told the subject of more state changes than a limit, within a stretch of time that begins at a mark.\n\n" +
			"The CRI interposer counts a pod's state changes when the subject's own relist has been given the last of them. The finding states how many that " +
			"were: an arm is only shown to survive so much. With fresh, the subject's own time stamp has to have stayed young all along, which is how a build " +
			"behaves that never is overdue.",
		Example: "name: delivered\nkind: floodDelivered\nphase: fault\nspec:\n  fault: flood\n  moreThan: {number: 1000}\n  since: {metric: kubelet_pleg_last_seen_seconds, plus: {duration: 3m}}\n",
		New:     func() Check { return &FloodDelivered{} },
	})
}

// FloodDelivered asks how much of a flood reached the subject.
type FloodDelivered struct {
	Fault    string   `json:"fault" jsonschema:"the name of the containerFlood in the scenario"`
	MoreThan Quantity `json:"moreThan" jsonschema:"how many state changes have to be exceeded"`
	Since    Mark     `json:"since" jsonschema:"only deliveries of the stretch that begins here count"`
	Fresh    *Fresh   `json:"fresh,omitempty" jsonschema:"a time stamp of the subject's own that has to stay young in the whole window"`
}

// Fresh is a timestamp metric that never grows as old as a limit.
type Fresh struct {
	Metric string   `json:"metric" jsonschema:"a metric whose value is a time in seconds since the epoch"`
	Below  Quantity `json:"below" jsonschema:"the age that it must not reach"`
}

// Reads names the interposer's counts, and what the mark and the time stamp come from.
func (c *FloodDelivered) Reads() []bundle.Kind {
	out := with(c.Since.reads(), bundle.Interposer)
	if c.Fresh != nil {
		out = with(out, bundle.MetricSamples)
	}
	return out
}

// NeedsConstants names the constants of the limit, of the moment and of the age.
func (c *FloodDelivered) NeedsConstants() []string {
	out := append(c.MoreThan.constants(), c.Since.Plus.constants()...)
	if c.Fresh != nil {
		out = append(out, c.Fresh.Below.constants()...)
	}
	return out
}

// Validate refuses a limit and a moment in the wrong unit.
func (c *FloodDelivered) Validate() error {
	switch {
	case c.Fault == "":
		return errors.New("fault is empty")
	case c.MoreThan.Number != nil && *c.MoreThan.Number < 0:
		return fmt.Errorf("moreThan.number is %g (want 0 or more)", *c.MoreThan.Number)
	}
	errs := []error{c.MoreThan.validate("moreThan", false), c.Since.validate("since")}
	if c.Fresh != nil {
		if c.Fresh.Metric == "" {
			errs = append(errs, errors.New("fresh.metric is empty"))
		}
		errs = append(errs, c.Fresh.Below.validate("fresh.below", true))
	}
	return errors.Join(errs...)
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
	mark := c.Since.at(v, s.Cell, w)
	if mark.doubt != "" {
		return unknown(wanted, mark.doubt, nil)
	}
	wanted += mark.after()
	st := read[bundle.Stamped[control.Counts]](v, bundle.Interposer, s.Cell, w)
	rec, found := newestFlood(c.Fault, &st, w)
	paths := slices.Compact(slices.Concat(mark.paths, st.paths))
	switch {
	case mark.short != "":
		return Finding{Met: NotMet, Seen: mark.short, Wanted: wanted, Evidence: paths}
	case !found && st.doubt != "":
		return unknown(wanted, st.doubt, paths)
	case !found:
		return Finding{Met: NotMet, Seen: "no flood was armed", Wanted: wanted, Evidence: paths}
	}
	n := rec.DeliveredBetween(mark.Start, mark.End)
	f := Finding{Met: Of(float64(n) > limit), Wanted: wanted, Evidence: paths,
		Seen: fmt.Sprintf("%d delivered from then on, of %d in all", n, rec.DeliveredSandboxes+rec.DeliveredContainers) + c.MoreThan.assumed(v, s.Cell)}
	if mark.said != "" {
		f.Seen += "; " + mark.said
	}
	if f.Met == NotMet && st.doubt != "" {
		return unknown(wanted, st.doubt, paths)
	}
	if f.Met == Met && c.Fresh != nil {
		c.Fresh.judge(v, s.Cell, w, &f)
	}
	if f.Met == Met {
		f.Tried = fmt.Sprintf("%d state changes delivered from %s on", n, clock(mark.Start))
	}
	return f
}

// judge turns a finding down where the time stamp grew old, or isn't known.
func (r Fresh) judge(v bundle.View, cell string, w bundle.Window, f *Finding) {
	limit, err := r.Below.value(v, cell)
	stamps := metricSeries(v, cell, r.Metric, nil, w)
	f.Wanted += fmt.Sprintf(", while %s is never %s old", r.Metric, time.Duration(limit))
	f.Evidence = append(f.Evidence, stamps.paths...)
	oldest, _ := stamps.oldest()
	f.Seen += fmt.Sprintf("; %s was at most %s old", r.Metric, oldest.Round(100*time.Millisecond))
	if err != nil {
		stamps.doubt = err.Error()
	}
	switch {
	case oldest >= time.Duration(limit):
		f.Met = NotMet
	case stamps.doubt != "" || oldest < 0:
		*f = unknown(f.Wanted, cmp.Or(stamps.doubt, "no sample of "+r.Metric), f.Evidence)
	}
}

// newestFlood is a flood's record in the last reading of the window. One that was over before the window began is another's, of a trial before in the
// same cluster, say: its deliveries are none of this one's. An interposer that was restarted counts from zero with nothing armed, which leaves the stream
// in doubt: what it says is too little at best.
func newestFlood(name string, st *stream[bundle.Stamped[control.Counts]], w bundle.Window) (rec control.ArmRecord, found bool) {
	var process control.Counts
	for _, r := range st.records {
		if r.Time.After(w.End) || r.Time.Before(w.Start) {
			continue
		}
		if process.PID != 0 && (r.Value.PID != process.PID || !r.Value.StartedAt.Equal(process.StartedAt)) && st.doubt == "" {
			st.doubt = fmt.Sprintf("the interposer was restarted by %s", r.Time.UTC().Format("15:04:05"))
		}
		process = r.Value
		if a, ok := r.Value.Find(control.FaultFlood, name); ok && !(a.EndedAt != nil && a.EndedAt.Before(w.Start)) {
			rec, found = a, true
		}
	}
	return rec, found
}
