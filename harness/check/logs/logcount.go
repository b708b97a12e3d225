package logs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "logCount",
		Doc: "How many lines of a component's log match a pattern, in the window.\n\n" +
			"The lines come from the log's files on the node, including rotated files. If too few lines are found, " +
			"or no more than atMost, the answer is unknown unless the log has no gaps.\n\n" +
			"With within, so many lines must lie in some stretch of that length: a number of lines says nothing without the time " +
			"that they took. Lines that don't tell their time, as in what somebody pasted, never make the " +
			"check true then. If the pattern has a group named each, lines count together only where that " +
			"group has the same text, " +
			"such as the name of an object.",
		Example: "name: deletes-failed\nkind: logCount\nphase: fault\nspec:\n  component: kube-apiserver\n  pattern: " +
			"Delete object in DeleteCollection failed\n  atLeast: 10\n",
		Meets:   `{"component":"kubelet","pattern":"skipping pod","atLeast":1}`,
		Differs: `{"component":"kubelet","pattern":"no such line","atLeast":1}`,
		New:     func() check.Check { return &LogCount{} },
	})
}

// LogLines chooses lines of a component's log.
type LogLines struct {
	Component string `json:"component" refers:"log" derives:"subject" jsonschema:"component whose log is read, such as kube-apiserver"`
	Pattern   string `json:"pattern" jsonschema:"regular expression that a line must match; case does not matter"`
}

// LogCount asks how many lines of a component's log match.
type LogCount struct {
	LogLines
	AtLeast int    `json:"atLeast,omitzero" jsonschema:"how many lines must match, at least (0 or more). Default: 1, if atMost isn't given"`
	AtMost  *int   `json:"atMost,omitempty" jsonschema:"how many lines may match, at most; 0 allows none. Default: no limit"`
	Within  string `json:"within,omitempty" jsonschema:"with atLeast: the stretch in which so many lines must lie, a duration with its unit. Default: the whole window"`
}

// Reads names component logs.
func (c *LogCount) Reads() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Validate refuses a pattern that any line would match, and limits that every log or no log would satisfy.
func (c *LogCount) Validate() error {
	switch {
	case c.AtLeast < 0:
		return fmt.Errorf("atLeast is %d (want 0 or more)", c.AtLeast)
	case c.AtMost == nil && c.AtLeast == 0:
		return fmt.Errorf("neither atLeast nor atMost is given")
	case c.AtMost != nil && *c.AtMost < c.AtLeast:
		return fmt.Errorf("atMost is %d and atLeast is %d", *c.AtMost, c.AtLeast)
	}
	if c.Within != "" && (c.AtLeast == 0 || c.AtMost != nil) {
		return fmt.Errorf("within says nothing without atLeast, or with atMost")
	}
	_, err := c.Compile()
	return cmp.Or(err, question.Chooses("pattern", c.Pattern), question.Optional("within", c.Within))
}

// Implied asks for a line where no limit is given.
func (*LogCount) Implied(given map[string]any) map[string]any {
	if given["atLeast"] != nil || given["atMost"] != nil {
		return nil
	}
	return map[string]any{"atLeast": 1}
}

// Vacuous reports whether a log without any line meets the check.
func (c *LogCount) Vacuous() bool { return c.AtLeast == 0 }

// Reads returns the kinds of artifacts that hold the lines, or none if l is nil.
func (l *LogLines) Reads() []bundle.Kind {
	if l == nil {
		return nil
	}
	return []bundle.Kind{bundle.Logs}
}

// Compile returns the compiled pattern, or an error if the pattern or the component is wrong.
func (l LogLines) Compile() (*regexp.Regexp, error) {
	re, err := question.Pattern(l.Pattern)
	return re, cmp.Or(err, question.Refuse(l.Component == "", "component is empty"))
}

// Eval counts the matching lines in the window.
func (c *LogCount) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	l := c.Find(q)
	q.Evidence = l.Paths
	q.Say(
		"%d such lines among %d of %s",
		question.N("linesLikeIt", len(l.Found)),
		question.N("lines", l.total),
		c.Component,
	)
	if len(l.Found) > 0 {
		first, last := l.Found[0], l.Found[len(l.Found)-1]
		q.Detail = first.Text
		q.Add(", from %s to %s", question.Clock(first.Time), question.Clock(last.Time))
	}
	n, most := len(l.Found), len(l.Found)
	if c.Within != "" && n > 0 {
		of := ""
		n, most, of = c.densest(l.Found)
		q.Add("; at most %d within %s%s", question.N("linesWithin", n), c.Within, of)
	}
	switch {
	case c.AtMost != nil && len(l.Found) > *c.AtMost:
		q.Met = check.False
	case c.AtMost == nil && n >= c.AtLeast:
		q.Met = check.True
	case l.Doubt != nil:
		q.Doubt(l.Doubt)
	case n < c.AtLeast && most >= c.AtLeast:
		q.DoubtBy(check.NotConclusive, "; when the others were written isn't known")
	default:
		q.Met = check.Of(n >= c.AtLeast)
	}
	return q.Finding
}

// densest returns n, the largest number of lines, which are in order of time, in a stretch of
// Within. With a group named each the lines are those of one text, which of names. most is that
// number if all lines of such a text that don't tell their time lay in its stretch, too.
func (c *LogCount) densest(found []bundle.LogLine) (n, most int, of string) {
	re, _ := c.Compile() // Validate has compiled it
	group := re.SubexpIndex("each")
	times, untimed := map[string][]time.Time{}, map[string]int{}
	largest := map[string]int{}
	within := question.Duration(c.Within)
	for _, l := range found {
		name := ""
		if group > 0 {
			name = re.FindStringSubmatch(l.Text)[group]
		}
		if l.Untimed {
			untimed[name]++
		} else {
			all := append(times[name], l.Time)
			for l.Time.Sub(all[0]) > within {
				all = all[1:]
			}
			times[name], largest[name] = all, max(largest[name], len(all))
			if len(all) > n {
				n, of = len(all), name
			}
		}
		most = max(most, largest[name]+untimed[name])
	}
	if of != "" {
		of = " of " + of
	}
	return n, most, of
}

func (c *LogCount) wanted() string {
	number := fmt.Sprintf("at least %d", c.AtLeast)
	if c.Within != "" {
		number += " within " + c.Within
	}
	if c.AtMost != nil {
		number = fmt.Sprintf("%d to %d", c.AtLeast, *c.AtMost)
	}
	return fmt.Sprintf("%s lines of %s like %q", number, c.Component, c.Pattern)
}

// FoundLines is what a component's log says about a window.
type FoundLines struct {
	Found []bundle.LogLine // matching lines, in order
	total int              // all lines of the window
	Paths []string
	// why lines of the window may be missing; nil if none is
	Doubt error
}

// Find returns the lines of the window that match.
func (l LogLines) Find(q *question.Question) (out FoundLines) {
	re, err := l.Compile()
	if err != nil {
		return FoundLines{Doubt: check.Doubt(check.BadCheck, "%w", err)}
	}
	st := ComponentLog(q, l.Component)
	out.Paths, out.Doubt, out.total = st.Paths, st.Doubt, st.skipped
	for _, r := range st.Records {
		if !question.Contains(q.Window, r.Time) {
			continue
		}
		out.total++
		if re.MatchString(r.Text) {
			out.Found = append(out.Found, r)
		}
	}
	// Logs of several nodes are recorded one after the other, and those of several containers
	// side by side.
	slices.SortStableFunc(out.Found, func(a, b bundle.LogLine) int {
		return a.Time.Compare(b.Time)
	})
	return out
}

// Lines returns the pattern of the lines that are counted.
func (c *LogCount) Lines() []string { return []string{c.Pattern} }
