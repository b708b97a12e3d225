package check

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
)

// reached reports whether something lies at least that long after the beginning of a phase; "" asks for nothing.
func reached(lastAfter string, at, began time.Time) bool {
	if lastAfter == "" {
		return true
	}
	d, err := time.ParseDuration(lastAfter)
	return err == nil && at.Sub(began) >= d
}

// sinceFault is a window with all that lies between it and the beginning of the fault: what a restart took away in that time was not healed.
func sinceFault(v bundle.View, cell string, w bundle.Window) bundle.Window {
	if fault, ok := v.Phase(cell, Fault); ok && fault.Start.Before(w.Start) {
		w.Start = fault.Start
	}
	return w
}

// restarted says why what was seen in a window may not be of one process, "" if it is. A process that is gone doesn't come back with its id and its
// time of start, so looks before and after a time prove that it was there in between.
func restarted(v bundle.View, cell string, w bundle.Window) string {
	st := standing[bundle.IdentitySample](v, bundle.Identity, cell, w)
	in := lookedAt(st.records, w)
	for _, r := range in {
		if r.PID <= 0 || r.PID != in[0].PID || r.StartTicks != in[0].StartTicks || r.Restarts != in[0].Restarts {
			return fmt.Sprintf("the process was not the same any more at %s", clock(r.Time))
		}
	}
	switch {
	case st.doubt != "":
		return st.doubt
	case len(in) == 0:
		return "nobody looked which process it was in " + span(w)
	case in[0].Time.Sub(w.Start) > slack(w):
		return "nobody looked which process it was from " + span(bundle.Window{Start: w.Start, End: in[0].Time})
	}
	return ""
}

// lookedAt are the looks of a window, with the last one before it.
func lookedAt(all []bundle.IdentitySample, w bundle.Window) (in []bundle.IdentitySample) {
	for _, r := range all {
		switch {
		case r.Time.After(w.End):
		case r.Time.Before(w.Start):
			in = []bundle.IdentitySample{r}
		default:
			in = append(in, r)
		}
	}
	return in
}

// standing reads the records of what can't come back once it is gone, a process or a container: that it is still there at the end of a window
// shows that it was there all along, so that a gap before is no matter.
func standing[T any](v bundle.View, kind bundle.Kind, cell string, w bundle.Window) stream[T] {
	word := lastWord(v.Artifacts(bundle.Query{Kind: kind, Cell: cell}))
	if !word.Before(w.End.Add(-slack(w))) {
		return read[T](v, kind, cell, bundle.Window{Start: word, End: word})
	}
	return read[T](v, kind, cell, w)
}

// lastWord is the latest moment for which streams speak; zero if there is none.
func lastWord(arts []bundle.Artifact) time.Time {
	var out time.Time
	for _, a := range arts {
		if a.Missing || a.Error != "" || a.Coverage == nil {
			continue
		}
		last := a.Coverage.Last
		for _, g := range a.Coverage.Gaps {
			if !g.To.Before(last) && g.From.Before(last) {
				last = g.From
			}
		}
		out = later(out, last)
	}
	return out
}
