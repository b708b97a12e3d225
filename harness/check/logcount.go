package check

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "logCount",
		Doc: "How many lines of a component's log match a pattern, in the window.\n\n" +
			"The lines come from the log's files on the node, including rotated files. If too few lines are found, " +
			"or no more than atMost, the answer is unknown unless the log has no gaps.",
		Example: "name: deletes-failed\nkind: logCount\nphase: fault\nspec:\n  component: kube-apiserver\n  pattern: " +
			"Delete object in DeleteCollection failed\n  atLeast: 10\n",
		Meets:   `{"component":"kubelet","pattern":"skipping pod","atLeast":1}`,
		Differs: `{"component":"kubelet","pattern":"no such line","atLeast":1}`,
		New:     func() Check { return &LogCount{} },
	})
}

// LogLines chooses lines of a component's log.
type LogLines struct {
	Component string `json:"component" jsonschema:"component whose log is read, such as kube-apiserver"`
	Pattern   string `json:"pattern" jsonschema:"regular expression that a line must match; case does not matter"`
}

// LogCount asks how many lines of a component's log match.
type LogCount struct {
	LogLines
	AtLeast int  `json:"atLeast,omitzero" jsonschema:"how many lines must match, at least (0 or more). Give atLeast, atMost or both"`
	AtMost  *int `json:"atMost,omitempty" jsonschema:"how many lines may match, at most; 0 allows none. Default: no limit"`
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
	_, err := c.compile()
	return err
}

// reads returns the kinds of artifacts that hold the lines, or none if l is nil.
func (l *LogLines) reads() []bundle.Kind {
	if l == nil {
		return nil
	}
	return []bundle.Kind{bundle.Logs}
}

// compile returns the compiled pattern, or an error if the pattern or the component is wrong.
func (l LogLines) compile() (*regexp.Regexp, error) {
	re, err := pattern(l.Pattern)
	return re, cmp.Or(err, refuse(l.Component == "", "component is empty"))
}

// Eval counts the matching lines in the window.
func (c *LogCount) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	l := c.find(q)
	q.Evidence, q.Seen = l.paths, fmt.Sprintf("%d such lines among %d of %s", len(l.found), l.total, c.Component)
	if len(l.found) > 0 {
		first, last := l.found[0], l.found[len(l.found)-1]
		q.Detail = first.Text
		q.Seen += ", from " + clock(first.Time) + " to " + clock(last.Time)
	}
	switch {
	case c.AtMost != nil && len(l.found) > *c.AtMost:
		q.Met = False
	case c.AtMost == nil && len(l.found) >= c.AtLeast:
		q.Met = True
	case l.doubt != "":
		q.Seen += "; " + l.doubt
	default:
		q.Met = Of(len(l.found) >= c.AtLeast)
	}
	return q.Finding
}

func (c *LogCount) wanted() string {
	number := fmt.Sprintf("at least %d", c.AtLeast)
	if c.AtMost != nil {
		number = fmt.Sprintf("%d to %d", c.AtLeast, *c.AtMost)
	}
	return fmt.Sprintf("%s lines of %s like %q", number, c.Component, c.Pattern)
}

// logged is what a component's log says about a window.
type logged struct {
	found []bundle.LogLine // matching lines, in order
	total int              // all lines of the window
	paths []string
	// why lines of the window may be missing; "" if none is
	doubt string
}

// find returns the lines of the window that match.
func (l LogLines) find(q *question) (out logged) {
	re, err := l.compile()
	if err != nil {
		return logged{doubt: err.Error()}
	}
	st := componentLog(q, l.Component)
	out.paths, out.doubt, out.total = st.paths, st.doubt, st.skipped
	for _, r := range st.records {
		if !contains(q.window, r.Time) {
			continue
		}
		out.total++
		if re.MatchString(r.Text) {
			out.found = append(out.found, r)
		}
	}
	return out
}

// Lines returns the pattern of the lines that are counted.
func (c *LogCount) Lines() Lines { return Lines{Patterns: []string{c.Pattern}} }
