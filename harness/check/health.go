package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "healthy",
		Doc: "The subject's own health endpoint answered 200, each time, through the last stretch of the window.\n\n" +
			"One other answer in that stretch is decisive; where there was none at all, it is unknown. Being well needs the whole stretch.",
		Example: "name: apiserver-well\nkind: healthy\nphase: recovery\nspec:\n  path: /readyz\n  for: 30s\n",
		New:     func() Check { return &Healthy{Path: "/readyz", For: "30s"} },
	})
}

// Healthy asks what a health endpoint answered.
type Healthy struct {
	Path string `json:"path,omitempty" jsonschema:"the endpoint: /readyz, /livez"`
	For  string `json:"for,omitempty" jsonschema:"for how long before the end of the window: a duration with its unit"`
}

// Reads names health samples.
func (c *Healthy) Reads() []bundle.Kind { return []bundle.Kind{bundle.Health} }

// Validate refuses a path that is none, and a stretch that is none.
func (c *Healthy) Validate() error {
	if !strings.HasPrefix(c.Path, "/") {
		return fmt.Errorf("path is %q (want one that begins with a slash: /readyz)", c.Path)
	}
	return positive("for", c.For)
}

// Eval looks at all answers of the last stretch.
func (c *Healthy) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("%s answers 200 for the last %s", c.Path, c.For)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	hold, _ := time.ParseDuration(c.For) // Validate has read it
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	st := read[bundle.HealthSample](v, bundle.Health, s.Cell, lastOf(w, hold))
	var all []reading
	for _, r := range st.records {
		if r.Path != c.Path {
			continue
		}
		one := reading{asked: r.Time, done: r.Done}
		switch {
		case r.Code == 0:
			one.mute = "no answer: " + r.Text
		case r.Code != 200:
			one.bad = fmt.Sprintf("%d %s", r.Code, r.Text)
		}
		all = append(all, one)
	}
	return well(all, st.paths, st.doubt, w, hold, wanted, "answers of "+c.Path)
}

// reading is one look at something that is well or isn't.
type reading struct {
	asked, done time.Time
	bad         string // what was wrong; "" if nothing was
	mute        string // why there is no answer, which nobody can read anything from; "" if there is one
}

// lastOf is the last stretch of a window.
func lastOf(w bundle.Window, hold time.Duration) bundle.Window {
	return bundle.Window{Start: later(w.Start, w.End.Add(-hold)), End: w.End}
}

// well is the finding over what was read in the last stretch of a window, which ends with the last reading. One that wasn't well is decisive:
// an answer counts from when it was asked for, so that one under way when the stretch began is of it.
func well(all []reading, paths []string, doubt string, w bundle.Window, hold time.Duration, wanted, noun string) Finding {
	f := Finding{Wanted: wanted, Evidence: paths}
	var in []reading
	for _, r := range all {
		if !r.asked.Before(w.Start) && !r.done.After(w.End) {
			in = append(in, r)
		}
	}
	if len(in) == 0 {
		if doubt == "" {
			doubt = fmt.Sprintf("there are no %s in %s", noun, span(w))
		}
		return unknown(wanted, doubt, paths)
	}
	last := bundle.Window{Start: later(w.Start, in[len(in)-1].done.Add(-hold)), End: in[len(in)-1].done}
	looked, good := last.Start, 0
	for _, r := range in {
		if !r.done.After(last.Start) {
			looked = later(looked, r.done)
			continue
		}
		if r.asked.Sub(looked) > hole && doubt == "" {
			doubt = fmt.Sprintf("there are no %s in %s", noun, span(bundle.Window{Start: looked, End: r.asked}))
		}
		looked = r.done
		switch {
		case r.bad != "":
			f.Met, f.Detail = NotMet, clock(r.asked)+": "+r.bad
			f.Differs = append(f.Differs, f.Detail)
		case r.mute != "":
			f.Differs = append(f.Differs, clock(r.asked)+": "+r.mute)
		default:
			good++
		}
	}
	f.Seen = fmt.Sprintf("%d of %d %s are well in %s", good, good+len(f.Differs), noun, span(last))
	f.Differs = few(f.Differs)
	switch {
	case f.Met == NotMet:
		return f
	case len(f.Differs) > 0 && doubt == "":
		doubt = "the others say nothing"
	}
	if so := last.End.Sub(last.Start); so < hold && doubt == "" {
		doubt = fmt.Sprintf("that is %s only", so.Round(100*time.Millisecond))
	}
	if missed := w.End.Sub(last.End); missed > slack(w) && doubt == "" {
		doubt = fmt.Sprintf("nobody looked in the last %s", missed.Round(100*time.Millisecond))
	}
	if doubt != "" {
		f.Seen += "; " + doubt
		return f
	}
	f.Met = Met
	return f
}
