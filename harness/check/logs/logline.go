package logs

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

func init() {
	check.Register(check.Kind{
		Name: "logLine",
		Doc: "The subject's log has a line that matches a pattern, in the window.\n\n" +
			"With exceeds, a named group of the pattern is a duration that must be larger than another group of the " +
			"same line. If no such line is found, the answer is unknown unless the log has no gaps and no suppressed " +
			"lines.",
		Example: "name: says-so\nkind: logLine\nphase: recovery\nspec:\n  pattern: 'last seen active (?P<age>\\S+) ago; " +
			"threshold is (?P<limit>[0-9hms.]+)'\n  exceeds: {age: limit}\n",
		Meets:   `{"pattern":"active (?P<age>\\S+) ago; threshold is (?P<limit>[0-9hms.]+)","exceeds":{"age":"limit"}}`,
		Differs: `{"pattern":"no such line"}`,
		New:     func() check.Check { return &LogLine{AtLeast: 1} },
	})
}

// LogLine asks for lines in the subject's log.
type LogLine struct {
	Pattern string            `json:"pattern" jsonschema:"regular expression that the message must match; case does not matter"`
	Exceeds map[string]string `json:"exceeds,omitempty" jsonschema:"maps a named group of the pattern, a duration, to the group that this duration must exceed"`
	AtLeast int               `json:"atLeast,omitzero" jsonschema:"how many lines there must be, at least (1 or more)"`
}

// Reads names the journal.
func (c *LogLine) Reads() []bundle.Kind { return []bundle.Kind{bundle.Journal} }

// Validate refuses a bad pattern, a group that the pattern lacks, and a count that any log would reach.
func (c *LogLine) Validate() error {
	re, err := question.Pattern(c.Pattern)
	err = cmp.Or(err, question.Chooses("pattern", c.Pattern))
	if err = cmp.Or(err, question.Refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast)); err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(c.Exceeds)) {
		if other := c.Exceeds[group]; re.SubexpIndex(group) < 0 || re.SubexpIndex(other) < 0 {
			return fmt.Errorf(
				"exceeds.%s: %s: the pattern lacks one of these groups",
				group,
				other,
			)
		}
	}
	return nil
}

// Eval counts the matching lines of the subject's journal in the window.
func (c *LogLine) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("at least %d line like %q", c.AtLeast, c.Pattern))
	if !ok {
		return q.Finding
	}
	re, _ := question.Pattern(c.Pattern) // Validate has compiled it
	st := subjectJournal(q)
	q.Evidence = st.Paths
	found, total := 0, st.skipped
	for _, e := range st.Records {
		if !question.Contains(q.Window, e.Time) || e.Suppressed > 0 {
			continue
		}
		total++
		m := re.FindStringSubmatch(e.Message)
		if m == nil {
			continue
		}
		if why := c.short(re, m); why != "" {
			q.Differs = append(q.Differs, question.Clock(e.Time)+": "+why)
			continue
		}
		found++
		q.Detail = strings.TrimSpace(e.Message)
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Say("%d such lines among %d", question.N("linesLikeIt", found), question.N("lines", total))
	switch {
	case found >= c.AtLeast:
		q.Met = check.True
	case st.Doubt != nil:
		return q.Unknown(fmt.Errorf("%d such lines, and %w", found, st.Doubt))
	default:
		q.Met = check.False
	}
	return q.Finding
}

// journal reads a whole journal. It starts at the beginning each time, because an entry may span several lines.
func journal(v bundle.View, a bundle.Artifact) (out []klog.Entry, err error) {
	rc, err := v.Open(a)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	defer rc.Close()
	for e, err := range klog.ReadJournal(rc) {
		if err != nil {
			return out, fmt.Errorf("reading %s: %w", a.Path, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// short says which group of a match doesn't exceed the group that it should, "" if all do.
func (c *LogLine) short(re *regexp.Regexp, m []string) string {
	for _, group := range slices.Sorted(maps.Keys(c.Exceeds)) {
		other := c.Exceeds[group]
		a, err := time.ParseDuration(m[re.SubexpIndex(group)])
		b, err2 := time.ParseDuration(m[re.SubexpIndex(other)])
		if err != nil || err2 != nil || a <= b {
			return fmt.Sprintf(
				"%s is %s, which does not exceed the %s of %s",
				group,
				m[re.SubexpIndex(group)],
				other,
				m[re.SubexpIndex(other)],
			)
		}
	}
	return ""
}

// Lines returns the pattern that a line has to match.
func (c *LogLine) Lines() []string { return []string{c.Pattern} }
