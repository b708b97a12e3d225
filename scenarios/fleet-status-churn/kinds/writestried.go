package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "writesTried",
		Doc: "How often one user asked the API server for a write while the world stood still, by the server's audit " +
			"log, with any verb and any answer.\n\n" +
			"A watch doesn't show a write that was refused, or that changed no byte. The audit log has these writes, " +
			"and says who asked for them, so the writes of other arms don't count. The check looks at the quiet " +
			"window that quietWorld finds.\n\n" +
			"With `within`, the check looks at the whole phase instead. It counts the writes before which nothing in " +
			"the world had changed for that long: nobody gave a reason for them, whatever they changed. What the " +
			"writes themselves changed is no reason.\n\n" +
			"The log must cover all of that time, must show other writes of the user, and must have somebody's write " +
			"of each resource. Otherwise, finding no write leaves the answer unknown.",
		Example: "name: no-write-tried\nkind: writesTried\nphase: fault\nspec:\n  user: " +
			"system:serviceaccount:relapse-$$(arm):fleet-agent\n  resources: [bundledeployments.fleet.cattle.io, " +
			"secrets]\n  atMost: 0\n  window:\n    terminating: 1\n",
		Meets: `{"user":"agent-$(arm)","resources":["bundledeployments.fleet.cattle.io"],"atMost":100,` +
			`"window":{"resources":["bundles.fleet.cattle.io"],"still":"2s","for":"1s"}}`,
		Differs: `{"user":"agent-$(arm)","resources":["bundledeployments.fleet.cattle.io"],"within":"500ms",` +
			`"window":{"resources":["bundles.fleet.cattle.io"]}}`,
		New: func() check.Check { return &WritesTried{Window: objects.DefaultQuiet()} },
	})
}

// WritesTried counts the write requests of one user.
type WritesTried struct {
	User      string        `json:"user" jsonschema:"user who writes, by the name that the API server knows; $(arm) stands for the arm's name"`
	Resources []string      `json:"resources" jsonschema:"resources that are written, with their subresources: plural names, each with its API group unless that is the core group"`
	AtMost    int           `json:"atMost,omitzero" jsonschema:"how many writes may be tried, at most (0 or more; default 0)"`
	Within    string        `json:"within,omitempty" jsonschema:"for how long a change of the world is a reason to write: a duration with its unit. If given, the whole phase counts"`
	Window    objects.Quiet `json:"window,omitzero" jsonschema:"the quiet window in which writes are counted; see quietWorld. With within, only its resources and ignore are used"`
}

// Reads names audit events, and the objects that show what stood still.
func (c *WritesTried) Reads() []bundle.Kind { return []bundle.Kind{bundle.Audit, bundle.Objects} }

// Validate refuses an empty user or resource, a negative number, and a bad window or duration.
func (c *WritesTried) Validate() error {
	return errors.Join(
		c.Window.Validate("window."),
		question.Refuse(c.User == "", "user is empty"),
		question.OnlyArm("user", c.User),
		question.Refuse(len(c.Resources) == 0 || slices.Contains(c.Resources, ""),
			"resources is %q (want the plural names of what is written)", c.Resources),
		question.Refuse(c.AtMost < 0, "atMost is %d (want 0 or more)", c.AtMost),
		question.Optional("within", c.Within))
}

func (c *WritesTried) wanted(arm string) string {
	out := fmt.Sprintf(
		"at most %d writes of %s tried by %s",
		c.AtMost,
		strings.Join(c.Resources, ", "),
		question.ExpandArm(c.User, arm),
	)
	if c.Within != "" {
		return out + fmt.Sprintf(" in the whole phase without a change of %s in the %s before",
			strings.Join(c.Window.WithDefaults().Resources, ", "), c.Within)
	}
	return out + fmt.Sprintf(
		" in a window of %s after %s of standstill",
		c.Window.WithDefaults().For,
		c.Window.WithDefaults().Still,
	)
}

// Eval counts the user's write requests in the audit log.
func (c *WritesTried) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted(s.Arm))
	if !ok {
		return q.Finding
	}
	log := auditOf(q)
	q.Evidence = log.Paths
	if len(log.Paths) == 0 {
		return q.Unknown(log.Doubt)
	}
	all, doubt := c.tries(log.Records, question.ExpandArm(c.User, q.Arm))
	doubt = cmp.Or(log.Doubt, doubt)
	if c.Within != "" {
		return c.unprompted(
			q,
			all,
			cmp.Or(doubt, log.uncovered(q.Window, question.Slack(q.Window))),
		)
	}
	still := c.Window.Find(q)
	q.Evidence = append(q.Evidence, still.Paths...)
	if !still.Found() {
		return q.Unknown(still.WhyNotFound())
	}
	var in []try
	for _, t := range all {
		if !t.Time.Before(still.Window.Start) && t.Time.Before(still.Window.End) {
			in = append(in, t)
		}
	}
	q.Say("%d writes were tried in %s", question.N("tries", len(in)), question.Span(still.Window))
	return c.count(q, in, cmp.Or(doubt, log.uncovered(still.Window, 0)))
}

// unprompted counts the writes of the whole phase for which the world gave no reason.
func (c *WritesTried) unprompted(q *question.Question, all []try, doubt error) check.Finding {
	world, unread := c.Window.World(q)
	q.Evidence = append(q.Evidence, objects.PathsOf(world.All)...)
	own := func(d objects.Written) bool {
		return slices.ContainsFunc(all, func(t try) bool { return t.explains(d) })
	}
	var vain []try
	n := 0
	for _, t := range all {
		if !question.Contains(q.Window, t.Time) {
			continue
		}
		n++
		caused, unseen := world.Caused(t.Time, question.Duration(c.Within), own)
		switch unseen = cmp.Or(unread, unseen); {
		case caused:
		case unseen != nil:
			doubt = cmp.Or(doubt, unseen)
		default:
			vain = append(vain, t)
		}
	}
	q.Say(
		"%d of %d writes that were tried in %s had no reason",
		question.N("unprompted", len(vain)),
		question.N("tries", n),
		question.Span(q.Window),
	)
	if len(vain) > 0 {
		q.Add(", the first at %s", question.Clock(vain[0].Time))
	}
	return c.count(q, vain, doubt)
}

// count returns the finding over the writes that count. Too many writes decide, even if the log may lack more of them.
func (c *WritesTried) count(q *question.Question, these []try, doubt error) check.Finding {
	switch {
	case len(these) > c.AtMost:
		q.Met, q.Differs = check.False, question.FirstAndLast(kindsOf(these))
	case doubt != nil:
		return q.UnknownAfter(doubt)
	default:
		q.Met = check.True
	}
	return q.Finding
}

// try is one write request, with the earliest time and the last answer that the log has of the request.
type try struct{ bundle.AuditEvent }

// explains reports whether this request may have caused a change that a watch showed.
func (t try) explains(d objects.Written) bool {
	late := d.At.Sub(t.Time)
	return t.Code < 300 && t.Resource == d.Resource && t.Namespace == d.Namespace &&
		(t.Name == d.Name || t.Name == "") && late > -objects.RecorderLag && late < objects.RecorderLag
}

// writeVerbs are the verbs in the audit log that ask for a change. A server-side apply is a patch there.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}

// tries returns a user's requests for writes of the resources, in order of time. doubt says why the log may lack some
// of them.
func (c *WritesTried) tries(events []bundle.AuditEvent, user string) (out []try, doubt error) {
	unseen := slices.Clone(c.Resources)
	at := map[string]int{}
	for _, e := range events {
		if e.Error != "" {
			doubt = cmp.Or(
				doubt,
				check.Doubt(check.Unreadable, "a line of the audit log is no event: %s", e.Error),
			)
			continue
		}
		if !slices.Contains(c.Resources, e.Resource) || !slices.Contains(writeVerbs, e.Verb) {
			continue
		}
		unseen = slices.DeleteFunc(unseen, func(r string) bool { return r == e.Resource })
		if e.User != user {
			continue
		}
		if i, known := at[e.ID]; known {
			out[i].Code = cmp.Or(e.Code, out[i].Code)
			out[i].Time = question.EarlierOf(out[i].Time, e.Time)
			continue
		}
		at[e.ID] = len(out)
		out = append(out, try{e})
	}
	slices.SortStableFunc(out, func(a, b try) int { return a.Time.Compare(b.Time) })
	switch {
	case len(unseen) > 0:
		doubt = cmp.Or(
			doubt,
			check.Doubt(
				check.NotRecorded,
				"the audit log has nobody's write of %s",
				strings.Join(unseen, ", "),
			),
		)
	case len(out) == 0:
		doubt = cmp.Or(
			doubt,
			check.Doubt(check.NotRecorded, "the audit log has not one write by %s", user),
		)
	}
	return out, doubt
}

// kindsOf counts requests by verb, resource and answer, the most frequent first.
func kindsOf(all []try) []string {
	count := map[string]int{}
	for _, t := range all {
		answer := "without an answer"
		if t.Code != 0 {
			answer = fmt.Sprintf("answered %d", t.Code)
		}
		what := strings.TrimSuffix(t.Resource+"/"+t.Subresource, "/")
		count[fmt.Sprintf("%s of %s, %s", t.Verb, what, answer)]++
	}
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(count),
		func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) }) {
		out = append(out, fmt.Sprintf("%d × %s", count[k], k))
	}
	return out
}

// auditLog holds the recorded audit logs of all API servers that serve an arm.
type auditLog struct {
	question.Stream[bundle.AuditEvent]
	arts []bundle.Artifact
}

// auditOf reads the arm's own audit logs or, where its cluster is shared, those of the cluster.
func auditOf(q *question.Question) (out auditLog) {
	for _, arm := range []string{q.Arm, bundle.Shared} {
		if out.arts = q.View.Artifacts(bundle.Query{Kind: bundle.Audit, Arm: arm}); len(out.arts) > 0 {
			break
		}
	}
	if len(out.arts) == 0 {
		out.Doubt = check.Doubt(
			check.NotRecorded,
			"no %s was recorded for %s or %s",
			bundle.Audit,
			q.Arm,
			bundle.Shared,
		)
	}
	for _, a := range out.arts {
		var all []bundle.AuditEvent
		err := error(nil)
		if a.Missing || a.Error != "" {
			err = question.CaptureError(a)
		} else if all, err = question.Records[bundle.AuditEvent](q.View, a); err == nil {
			out.Paths = append(out.Paths, a.Path)
		}
		if err != nil {
			out.Doubt = fmt.Errorf("the audit log: %w", err)
		}
		out.Records = append(out.Records, all...)
	}
	return out
}

// uncovered says why the logs don't cover a window, nil if they do. Each API server has a separate log, and none can
// stand in for another.
func (l auditLog) uncovered(w bundle.Window, slack time.Duration) error {
	for _, a := range l.arts {
		if !a.Coverage.Covers(w.Start, w.End, slack) {
			return check.Doubt(
				check.Gap,
				"the audit log does not cover %s%s",
				question.Span(w),
				question.DescribeGaps([]bundle.Artifact{a}, w),
			)
		}
	}
	return nil
}
