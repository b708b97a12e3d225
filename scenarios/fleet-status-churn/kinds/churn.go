// Package kinds has the kinds of the scenario fleet-status-churn: checks of an agent that writes the same status again
// and again although nothing around it changes, collectors of node Leases and of lists of objects, and the check of a
// Lease that ran out.
package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func init() {
	check.Register(check.Kind{
		Name: "churn",
		Doc: "While the world stood still, one object of the arm was written again and again, and the writes changed " +
			"only what a loop changes.\n\n" +
			"The check looks at the quiet window that quietWorld finds. A write counts if the watch showed it, so a " +
			"write that changed no byte doesn't count. On a loaded machine a loop stalls: up to the share `stalls` " +
			"of the window may lie beyond gap.\n\n" +
			"With none: true, the check asks instead that no such object was written at all. The record of objects " +
			"must prove that.\n\n" +
			"With noneOnly, the check looks at the whole phase, whether the world stood still or not. No write may " +
			"change only those paths, or nothing. Every other write needs a cause: a change outside that is no older " +
			"than `within`. A slow writer shows there.\n\n" +
			"A quiet window may not fit into the baseline. Without none and noneOnly, the check is then false if the " +
			"baseline lasts 10s or longer and has fewer writes a second than rate.",
		Example: "name: status-churn\nkind: churn\nphase: fault\nspec:\n  resource: " +
			"bundledeployments.fleet.cattle.io\n  rate: 0.3\n  gap: 5s\n  share: 0.95\n" +
			"  only: [\"status.conditions[type=Monitored].lastUpdateTime\"]\n  by: fleet-agent-$$(arm)\n  window:\n " +
			"   terminating: 1\n",
		Meets: `{"resource":"bundledeployments.fleet.cattle.io","rate":0.9,"only":["status.n"],"by":"agent-$(arm)",` +
			`"window":{"resources":["bundles.fleet.cattle.io"],"still":"500ms","for":"2s"}}`,
		Differs: `{"resource":"bundledeployments.fleet.cattle.io","none":true,` +
			`"window":{"resources":["bundles.fleet.cattle.io"],"still":"500ms","for":"2s"}}`,
		New: func() check.Check { return &Churn{Rate: 0.3, Gap: "5s", Share: 0.95, Window: objects.DefaultQuiet()} },
	})
}

// Churn asks for writes that never end, or for none.
type Churn struct {
	Resource string        `json:"resource" refers:"objects" jsonschema:"resource whose objects are written: plural name, with its API group unless that is the core group"`
	Name     string        `json:"name,omitempty" jsonschema:"name of the object. Default: the object that was written most, or with none or noneOnly every object"`
	Rate     float64       `json:"rate,omitempty" jsonschema:"how many writes a second there must be, at least (above 0)"`
	Gap      string        `json:"gap,omitempty" jsonschema:"longest time without a write that is allowed: a duration with its unit. The times from the window's start to the first write and from the last write to the window's end count, too"`
	Stalls   float64       `json:"stalls,omitzero" jsonschema:"share of the window that may lie beyond gap, because a loop stalls on a loaded machine: 0 to 0.5 (default 0)"`
	Share    float64       `json:"share,omitempty" jsonschema:"share of the writes that must change only the paths in only and come from the manager in by: above 0, up to 1"`
	Only     []string      `json:"only,omitempty" jsonschema:"paths that these writes may change, each with everything below it: status.conditions[type=Ready].status, spec.list[0], metadata.labels[\"a.b/c\"]; [*] stands for any element of a list. Required unless none or noneOnly is given"`
	By       string        `json:"by,omitempty" jsonschema:"field manager that these writes must come from; $(arm) stands for the arm's name. Default: any"`
	None     bool          `json:"none,omitempty" jsonschema:"instead asks that there is no write at all"`
	NoneOnly []string      `json:"noneOnly,omitempty" jsonschema:"instead asks about the whole phase: no write may change only these paths, and every other write needs a cause outside; [*] stands for any element of a list"`
	Within   string        `json:"within,omitempty" jsonschema:"with noneOnly: for how long a change outside is a cause to write, a duration with its unit (default 45s)"`
	Window   objects.Quiet `json:"window,omitzero" jsonschema:"the quiet window in which the writes are judged; see quietWorld. With noneOnly, only its resources and ignore are used"`
}

// Reads names recorded objects.
func (c *Churn) Reads() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Figure returns what a report can draw: how often the objects are written.
func (c *Churn) Figure() check.Figure { return check.Figure{Writes: c.Resource} }

// Validate refuses numbers out of range, empty paths, and fields that say nothing together.
func (c *Churn) Validate() error {
	errs := []error{
		c.Window.Validate("window."),
		question.Refuse(c.Resource == "", "resource is empty"),
		question.OnlyArm("by", c.By),
		question.Optional("within", c.Within),
		question.Refuse(
			c.Within != "" && len(c.NoneOnly) == 0,
			"within says nothing without noneOnly",
		),
		question.Refuse(slices.Contains(c.Window.WithDefaults().Resources, c.Resource),
			"resource %s is among those that have to stand still", c.Resource),
	}
	switch {
	case len(c.NoneOnly) > 0:
		errs = append(errs,
			question.Refuse(c.None || len(c.Only) > 0 || c.By != "", "noneOnly stands alone (want none of none, only and by)"),
			question.Refuse(slices.Contains(c.NoneOnly, ""), "noneOnly is %q (want the paths that a loop changes)", c.NoneOnly))
	case c.None:
		errs = append(errs, question.Refuse(len(c.Only) > 0 || c.By != "",
			"with none, no write counts less than another (want neither only nor by)"))
	default:
		errs = append(
			errs,
			question.Refuse(
				c.Stalls < 0 || c.Stalls > 0.5,
				"stalls is %g (want 0 up to 0.5)",
				c.Stalls,
			),
			question.Refuse(c.Rate <= 0, "rate is %g (want above 0)", c.Rate),
			question.Refuse(
				c.Share <= 0 || c.Share > 1,
				"share is %g (want above 0, up to 1)",
				c.Share,
			),
			question.Refuse(
				len(c.Only) == 0 || slices.Contains(c.Only, ""),
				"only is %q (want the paths that a loop changes)",
				c.Only,
			),
			question.Positive("gap", c.Gap),
		)
	}
	return errors.Join(errs...)
}

func (c *Churn) wanted(arm string) string {
	what := c.Resource
	if c.Name != "" {
		what += " " + c.Name
	}
	if len(c.NoneOnly) > 0 {
		return fmt.Sprintf(
			"in the whole phase no write to %s that changed only %s, and none without a change of %s in "+
				"the %s before",
			what,
			strings.Join(c.NoneOnly, ", "),
			strings.Join(c.Window.WithDefaults().Resources, ", "),
			c.reach(),
		)
	}
	window := fmt.Sprintf(
		"in a window of %s after %s of standstill",
		c.Window.WithDefaults().For,
		c.Window.WithDefaults().Still,
	)
	if c.None {
		return fmt.Sprintf("no write to %s %s", what, window)
	}
	gaps := "no gap over " + c.Gap
	if c.Stalls > 0 {
		gaps = fmt.Sprintf("at most %g %% of the time in gaps beyond %s", 100*c.Stalls, c.Gap)
	}
	out := fmt.Sprintf(
		"at least %g writes a second to one of %s %s, %s, at least %g %% of them only %s",
		c.Rate,
		what,
		window,
		gaps,
		100*c.Share,
		strings.Join(c.Only, ", "),
	)
	if c.By != "" {
		out += " by " + question.ExpandArm(c.By, arm)
	}
	return out
}

// Eval judges the writes in the quiet window, or with noneOnly those in the whole phase.
func (c *Churn) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	of, doubt := objects.RecordsFollowing(v, q.Arm, c.Resource)
	if len(of) == 0 {
		return q.Unknown(doubt)
	}
	q.Evidence = objects.PathsOf(of)
	if len(c.NoneOnly) > 0 {
		return c.judgeVain(q, of, doubt)
	}
	still := c.Window.Find(q)
	q.Evidence = question.Union(q.Evidence, still.Paths...)
	switch {
	case !still.Found() && q.Phase == check.Baseline && !c.None:
		return c.before(q, of, doubt)
	case !still.Found():
		return q.Unknown(still.WhyNotFound())
	}
	q.Window = still.Window
	if doubt = cmp.Or(doubt, objects.WhyUncovered(of, q.Window, 0)); doubt != nil {
		return q.Unknown(doubt)
	}
	if c.None {
		return c.silent(q, of)
	}
	return c.loop(q, of)
}

// before judges a baseline that is too short for a quiet window: fewer writes than the rate are no churn, whatever
// they changed.
func (c *Churn) before(q *question.Question, of []*objects.Recorded, doubt error) check.Finding {
	const least = 10 * time.Second
	doubt = cmp.Or(doubt, objects.WhyUncovered(of, q.Window, question.Slack(q.Window)))
	_, all := busiest(objects.ActivityOf(of, c.Resource, c.Name, q.Window))
	long := question.Length(q.Window)
	rate := float64(len(all)) / long.Seconds()
	q.Say(
		"no quiet window fits into the baseline; in all of it %d writes to one object, %.2g a second",
		question.N("writes", len(all)),
		question.N("perSecond", rate),
	)
	switch {
	case doubt != nil:
		return q.UnknownAfter(doubt)
	case long < least:
		return q.UnknownAfter(check.Doubt(check.TooShort, "it lasted %s only", long.Round(100*time.Millisecond)))
	case rate < c.Rate:
		q.Met = check.False
	default:
		q.Code = check.NotQuiet
	}
	return q.Finding
}

// nothingThere returns the finding, unknown, for a window without any object that could have been written.
func (c *Churn) nothingThere(q *question.Question) check.Finding {
	return q.Unknown(
		check.Doubt(
			check.NotRecorded,
			"there was no %s to be written in %s",
			c.Resource,
			question.Span(q.Window),
		),
	)
}

// silent judges a check with none: the window may have no write, but must have an object that could have been written.
func (c *Churn) silent(q *question.Question, of []*objects.Recorded) check.Finding {
	got := objects.ActivityOf(of, c.Resource, c.Name, q.Window)
	if got.NoObject() {
		return c.nothingThere(q)
	}
	n := len(got.All)
	q.Met = check.Of(n == 0)
	q.Say(
		"%d writes to %d objects in %s",
		question.N("writes", n),
		question.N("objects", max(got.Existing, len(got.By))),
		question.Span(q.Window),
	)
	_, most := busiest(got)
	q.Differs, q.Detail = describeGroups(most), objects.ExampleOf(of, most)
	return q.Finding
}

// loop judges whether the window has the writes of a loop to one object: frequent enough, without long gaps, and enough
// of them limited to the paths in Only.
func (c *Churn) loop(q *question.Question, of []*objects.Recorded) check.Finding {
	got := objects.ActivityOf(of, c.Resource, c.Name, q.Window)
	most, all := busiest(got)
	switch {
	case got.NoObject():
		return c.nothingThere(q)
	case len(all) == 0:
		return q.Answer(check.False, "no write in "+question.Span(q.Window))
	}
	meant := objects.PathPatterns(c.Only)
	var times []time.Time
	var like, unlike []objects.Written
	for _, x := range all {
		times = append(times, x.At)
		if x.Type == churn.Modified && x.Compared && len(x.Paths) > 0 && objects.AllMatch(meant, x.Paths) &&
			(c.By == "" || x.Manager == question.ExpandArm(c.By, q.Arm)) {
			like = append(like, x)
		} else {
			unlike = append(unlike, x)
		}
	}
	gap, at := churn.LongestGap(times, q.Window.Start, q.Window.End)
	stalled := beyond(times, q.Window, question.Duration(c.Gap))
	rate := float64(len(all)) / question.Length(q.Window).Seconds()
	share := float64(len(like)) / float64(len(all))
	if len(like) == 0 { // show the writes that there are instead
		like = all
	}
	q.Met, q.Detail = check.Of(rate >= c.Rate && stalled <= c.Stalls && share >= c.Share), objects.ExampleOf(of, like)
	q.Say("%d writes to %s in %s: %.2g a second, at most %s apart (from %s), %.3g %% of them only %s, by %s",
		question.N("writes", len(all)), most, question.Span(q.Window), question.N("perSecond", rate),
		question.Rounded("longestGapSeconds", gap, 100*time.Millisecond), question.Clock(at), question.N("percent", 100*share),
		strings.Join(c.Only, ", "), describeManagers(like))
	if stalled > 0 && c.Stalls > 0 {
		q.Add(
			"; %.2g %% of the time lay in gaps beyond %s",
			question.N("stalledPercent", 100*stalled),
			c.Gap,
		)
	}
	q.Differs = question.FirstAndLast(describeGroups(unlike))
	return q.Finding
}

// reach returns for how long a change outside is a cause to write. A loaded agent may take two rounds to follow the
// change.
func (c *Churn) reach() time.Duration { return cmp.Or(question.Duration(c.Within), 45*time.Second) }

// judgeVain judges a check with noneOnly. In the whole phase, no write may change only what a loop changes, or nothing
// at all, and every other write needs a cause outside. The record has to cover the whole phase.
func (c *Churn) judgeVain(
	q *question.Question,
	of []*objects.Recorded,
	doubt error,
) check.Finding {
	got := objects.ActivityOf(of, c.Resource, c.Name, q.Window)
	idle, unprompted, unseen := c.sortWrites(q, got.All)
	q.Met = check.Of(len(idle)+len(unprompted) == 0)
	q.Say(
		"%d of %d writes in %s changed nothing else",
		question.N("idle", len(idle)),
		question.N("writes", len(got.All)),
		question.Span(q.Window),
	)
	if len(unprompted) > 0 {
		q.Add(", and %d more had no cause outside", question.N("unprompted", len(unprompted)))
	}
	if vain := append(idle, unprompted...); len(vain) > 0 { // a write that was seen counts, whatever else is missing
		q.Add(", the first at %s", question.Clock(slices.MinFunc(vain,
			func(a, b objects.Written) int { return a.At.Compare(b.At) }).At))
		q.Differs, q.Detail = question.FirstAndLast(describeGroups(vain)), objects.ExampleOf(of, vain)
		return q.Finding
	}
	if doubt = cmp.Or(doubt, objects.WhyUncovered(of, q.Window, 0), unseen); doubt != nil {
		return q.UnknownAfter(doubt)
	}
	if got.NoObject() {
		return c.nothingThere(q)
	}
	return q.Finding
}

// sortWrites returns as idle the writes that changed nothing but what a loop changes, and as unprompted the other
// writes that have no cause outside. If nobody can tell whether one of these has a cause, unseen says why.
func (c *Churn) sortWrites(
	q *question.Question,
	all []objects.Written,
) (idle, unprompted []objects.Written, unseen error) {
	meant := objects.PathPatterns(c.NoneOnly)
	var others []objects.Written
	for _, x := range all {
		if x.Type == churn.Modified && x.Compared && objects.AllMatch(meant, x.Paths) {
			idle = append(idle, x)
		} else {
			others = append(others, x)
		}
	}
	if len(others) == 0 {
		return idle, nil, nil
	}
	world, unread := c.Window.World(q)
	q.Evidence = question.Union(q.Evidence, objects.PathsOf(world.All)...)
	for _, x := range others {
		own := func(d objects.Written) bool { return d.Manager != "" && d.Manager == x.Manager }
		caused, doubt := world.Caused(x.At, c.reach(), own)
		switch doubt = cmp.Or(unread, doubt); {
		case caused:
		case doubt != nil:
			unseen = doubt
		default:
			unprompted = append(unprompted, x)
		}
	}
	return idle, unprompted, unseen
}

// beyond returns which share of a window lies more than limit after the previous write, or after the window's beginning
// where there is no previous write.
func beyond(times []time.Time, w bundle.Window, limit time.Duration) float64 {
	last, sum := w.Start, time.Duration(0)
	for _, t := range append(slices.Clone(times), w.End) {
		sum += max(0, t.Sub(last)-limit)
		last = t
	}
	return float64(sum) / float64(question.Length(w))
}
