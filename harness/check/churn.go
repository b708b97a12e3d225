package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "churn",
		Doc: "While the world stood still, one object of the cell was written again and again, and nothing in it changed but what a loop changes.\n\n" +
			"It looks at the quiet window that quietWorld finds. A write counts if the watch showed it: one that changed no byte is none. On a loaded machine " +
			"a loop stalls: up to the part stalls of the window may lie beyond gap. With none: true, it asks instead that no such object was written at " +
			"all, which the record has to prove. With noneOnly, it asks that no write of the whole phase, still world or not, changed nothing but those " +
			"paths: a writer that is slow shows there. In the baseline, where a window may not fit, fewer writes than the rate over the whole phase are " +
			"not met.",
		Example: "name: status-churn\nkind: churn\nphase: fault\nspec:\n  resource: bundledeployments.fleet.cattle.io\n  rate: 0.3\n  gap: 5s\n  share: 0.95\n" +
			"  only: [\"status.conditions[type=Monitored].lastUpdateTime\"]\n  by: fleet-agent-$$(cell)\n  window:\n    terminating: 1\n",
		New: func() Check { return &Churn{Rate: 0.3, Gap: "5s", Share: 0.95, Window: standstill()} },
	})
}

// Churn asks for writes that never end, or for none.
type Churn struct {
	Resource string   `json:"resource" jsonschema:"whose writes they are: a plural name, with its API group unless it is the core's"`
	Name     string   `json:"name,omitempty" jsonschema:"the object; when left out the one that was written most, or with none any"`
	Rate     float64  `json:"rate,omitempty" jsonschema:"how many writes a second at least"`
	Gap      string   `json:"gap,omitempty" jsonschema:"the longest time without a write, the window's ends included: a duration with its unit"`
	Stalls   float64  `json:"stalls,omitzero" jsonschema:"which part of the window may lie beyond the gap, as on a loaded machine: 0 up to 0.5"`
	Share    float64  `json:"share,omitempty" jsonschema:"which part of the writes must change nothing else and be by the manager, up to 1"`
	Only     []string `json:"only,omitempty" jsonschema:"the paths that they may change, with what is below them; [*] is any element"`
	By       string   `json:"by,omitempty" jsonschema:"the field manager; $(cell) in it is the cell's name"`
	None     bool     `json:"none,omitempty" jsonschema:"no write at all, instead"`
	NoneOnly []string `json:"noneOnly,omitempty" jsonschema:"no write in the whole phase that changes only these paths, instead; [*] is any element"`
	Window   Quiet    `json:"window,omitzero" jsonschema:"while what stands still; see quietWorld"`
}

// Reads names recorded objects.
func (c *Churn) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Validate refuses what any writes would meet.
func (c *Churn) Validate() error {
	errs := []error{c.Window.validate("window.")}
	if c.Resource == "" {
		errs = append(errs, errors.New("resource is empty"))
	}
	if slices.Contains(c.Window.filled().Resources, c.Resource) {
		errs = append(errs, fmt.Errorf("resource %s is among those that have to stand still", c.Resource))
	}
	if len(c.NoneOnly) > 0 {
		return errors.Join(append(errs, c.validateVain())...)
	}
	if c.None {
		if len(c.Only) > 0 || c.By != "" {
			errs = append(errs, errors.New("with none, no write counts less than another (want neither only nor by)"))
		}
		return errors.Join(errs...)
	}
	if c.Stalls < 0 || c.Stalls > 0.5 {
		errs = append(errs, fmt.Errorf("stalls is %g (want 0 up to 0.5)", c.Stalls))
	}
	if c.Rate <= 0 {
		errs = append(errs, fmt.Errorf("rate is %g (want above 0)", c.Rate))
	}
	if c.Share <= 0 || c.Share > 1 {
		errs = append(errs, fmt.Errorf("share is %g (want above 0, up to 1)", c.Share))
	}
	if len(c.Only) == 0 || slices.Contains(c.Only, "") {
		errs = append(errs, fmt.Errorf("only is %q (want the paths that a loop changes)", c.Only))
	}
	return errors.Join(append(errs, positive("gap", c.Gap))...)
}

func (c *Churn) wanted(cell string) string {
	what := c.Resource
	if c.Name != "" {
		what += " " + c.Name
	}
	if len(c.NoneOnly) > 0 {
		return fmt.Sprintf("in the whole phase no write to %s that changed only %s", what, strings.Join(c.NoneOnly, ", "))
	}
	window := fmt.Sprintf("in a window of %s after %s of standstill", c.Window.filled().For, c.Window.filled().Still)
	if c.None {
		return fmt.Sprintf("no write to %s %s", what, window)
	}
	gaps := "no gap over " + c.Gap
	if c.Stalls > 0 {
		gaps = fmt.Sprintf("at most %g %% of the time in gaps beyond %s", 100*c.Stalls, c.Gap)
	}
	out := fmt.Sprintf("at least %g writes a second to one of %s %s, %s, at least %g %% of them only %s",
		c.Rate, what, window, gaps, 100*c.Share, strings.Join(c.Only, ", "))
	if c.By != "" {
		out += " by " + c.by(cell)
	}
	return out
}

func (c *Churn) by(cell string) string { return ofCell(c.By, cell) }

// ofCell puts a cell's name where $(cell) stands.
func ofCell(text, cell string) string { return strings.ReplaceAll(text, "$(cell)", cell) }

// Eval counts what was written in the quiet window.
func (c *Churn) Eval(v bundle.View, s Scope) Finding {
	wanted := c.wanted(s.Cell)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	all, doubt := recordsOf(v, s.Cell)
	of := following(all, c.Resource)
	if len(of) == 0 {
		return unknown(wanted, cmp.Or(doubt, fmt.Sprintf("nobody followed %s for %s", c.Resource, s.Cell)), nil)
	}
	if len(c.NoneOnly) > 0 {
		return c.vain(of, doubt, w, wanted)
	}
	q := c.Window.find(v, s.Cell, w)
	evidence := slices.Compact(append(pathsOf(of), slices.DeleteFunc(q.paths, func(p string) bool { return slices.Contains(pathsOf(of), p) })...))
	switch {
	case !q.found() && s.Phase == Baseline && !c.None:
		return c.before(of, doubt, w, wanted, evidence)
	case !q.found():
		return unknown(wanted, q.never(), evidence)
	}
	if ok, gap := covering(of, q.window); !ok || doubt != "" {
		return unknown(wanted, cmp.Or(doubt, gap), evidence)
	}
	var f Finding
	if c.None {
		f = c.silent(of, q.window)
	} else {
		f = c.loop(of, q.window, s.Cell)
	}
	f.Wanted, f.Evidence = wanted, evidence
	return f
}

// before judges a baseline that is too short for a quiet window: fewer writes than the rate are no churn, whatever they changed.
func (c *Churn) before(of []*recorded, doubt string, w bundle.Window, wanted string, evidence []string) Finding {
	const least = 10 * time.Second
	whole := slices.ContainsFunc(of, func(r *recorded) bool { return r.Coverage.Covers(w.Start, w.End, slack(w)) })
	long := w.End.Sub(w.Start)
	if doubt == "" && !whole {
		_, doubt = covering(of, w)
	}
	by, _ := c.writes(of, w)
	most := busiest(by)
	rate := float64(len(by[most])) / long.Seconds()
	seen := fmt.Sprintf("no quiet window fits into the baseline; in all of it %d writes to one object, %.2g a second", len(by[most]), rate)
	switch {
	case doubt != "":
		return unknown(wanted, seen+"; "+doubt, evidence)
	case long < least:
		return unknown(wanted, fmt.Sprintf("%s; it lasted %s only", seen, long.Round(100*time.Millisecond)), evidence)
	case rate >= c.Rate:
		return unknown(wanted, seen, evidence)
	}
	return Finding{Met: NotMet, Wanted: wanted, Seen: seen, Evidence: evidence}
}

// silent wants no write in the window, and something that could have been written.
func (c *Churn) silent(of []*recorded, w bundle.Window) Finding {
	by, there := c.writes(of, w)
	n := 0
	for _, all := range by {
		n += len(all)
	}
	f := Finding{Met: Of(n == 0), Seen: fmt.Sprintf("%d writes to %d objects in %s", n, max(len(there), len(by)), span(w))}
	switch {
	case n > 0:
		f.Differs = groups(by[busiest(by)])
		f.Detail = exampleOf(of, by[busiest(by)])
	case len(there) == 0:
		f.Met = Unknown
		f.Seen = fmt.Sprintf("there was no %s to be written in %s", c.Resource, span(w))
	}
	return f
}

// loop wants the writes of a loop in the window.
func (c *Churn) loop(of []*recorded, w bundle.Window, cell string) Finding {
	by, there := c.writes(of, w)
	most := busiest(by)
	all := by[most]
	if len(all) == 0 {
		if len(there) == 0 {
			return Finding{Met: Unknown, Seen: fmt.Sprintf("there was no %s to be written in %s", c.Resource, span(w))}
		}
		return Finding{Met: NotMet, Seen: fmt.Sprintf("no write in %s", span(w))}
	}
	meant := matchers(c.Only)
	var times []time.Time
	var like, unlike []written
	for _, x := range all {
		times = append(times, x.at)
		if x.typ == churn.Modified && x.compared && len(x.paths) > 0 && allMatch(meant, x.paths) && (c.By == "" || x.manager == c.by(cell)) {
			like = append(like, x)
		} else {
			unlike = append(unlike, x)
		}
	}
	limit, _ := time.ParseDuration(c.Gap) // Validate has read it
	gap, at := churn.LongestGap(times, w.Start, w.End)
	stalled := beyond(times, w, limit)
	rate := float64(len(all)) / w.End.Sub(w.Start).Seconds()
	share := float64(len(like)) / float64(len(all))
	f := Finding{Met: Of(rate >= c.Rate && stalled <= c.Stalls && share >= c.Share), Detail: exampleOf(of, orAll(like, all))}
	f.Seen = fmt.Sprintf("%d writes to %s in %s: %.2g a second, at most %s apart (from %s), %.3g %% of them only %s, by %s",
		len(all), most, span(w), rate, gap.Round(100*time.Millisecond), clock(at), 100*share, strings.Join(c.Only, ", "), managers(orAll(like, all)))
	if stalled > 0 && c.Stalls > 0 {
		f.Seen += fmt.Sprintf("; %.2g %% of the time lay in gaps beyond %s", 100*stalled, c.Gap)
	}
	f.Differs = few(groups(unlike))
	return f
}
