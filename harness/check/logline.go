package check

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

func init() {
	register(kind{
		Name: "logLine",
		Doc: "A line in the subject's own log, in the window.\n\n" +
			"With equals, a named group of the pattern is read as a duration or a number and compared with a " +
			"constant of the subject: the line must be about this build's own numbers. With exceeds, a group has " +
			"to be larger than another one of the same line. Finding none needs a log without gaps and without " +
			"suppressed lines.",
		Example: "name: says-so\nkind: logLine\nphase: recovery\nspec:\n  pattern: 'pleg was last seen active .* " +
			"threshold is (?P<limit>[0-9hms.]+)'\n  equals:\n    limit: {duration: 3m}\n",
		Meets:   `{"pattern":"threshold is (?P<limit>\\S+)\"","equals":{"limit":{"duration":"3m"}}}`,
		Differs: `{"pattern":"no such line"}`,
		New:     func() Check { return &LogLine{AtLeast: 1} },
	})
}

// LogLine asks for lines in the subject's log.
type LogLine struct {
	Pattern string              `json:"pattern" jsonschema:"a regular expression over the message; case does not matter"`
	Equals  map[string]Quantity `json:"equals,omitempty" jsonschema:"named groups of the pattern and what they must equal"`
	Exceeds map[string]string   `json:"exceeds,omitempty" jsonschema:"named groups that are durations, and which other group each has to exceed"`
	AtLeast int                 `json:"atLeast,omitzero" jsonschema:"how many lines"`
}

// Reads names the journal.
func (c *LogLine) Reads() []bundle.Kind { return []bundle.Kind{bundle.Journal} }

// Needs names the constants of equals.
func (c *LogLine) Needs() (n Needs) {
	for _, group := range slices.Sorted(maps.Keys(c.Equals)) {
		n.Constants = append(n.Constants, c.Equals[group].constants()...)
	}
	return n
}

// Validate refuses a pattern that isn't one, and what any log would meet.
func (c *LogLine) Validate() error {
	re, err := pattern(c.Pattern)
	if err = cmp.Or(err, refuse(c.AtLeast < 1, "atLeast is %d (want at least 1)", c.AtLeast)); err != nil {
		return err
	}
	for _, group := range slices.Sorted(maps.Keys(c.Equals)) {
		if re.SubexpIndex(group) < 0 {
			return fmt.Errorf("equals.%s: the pattern has no group of that name", group)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(c.Exceeds)) {
		if other := c.Exceeds[group]; re.SubexpIndex(group) < 0 || re.SubexpIndex(other) < 0 {
			return fmt.Errorf("exceeds.%s: %s: the pattern lacks one of these groups", group, other)
		}
	}
	return nil
}

// Eval reads the log of the window.
func (c *LogLine) Eval(v bundle.View, s Scope) Finding {
	want, whatever, err := c.expected(v, s.Cell)
	q, ok := ask(c, v, s, fmt.Sprintf("at least %d line like %q", c.AtLeast, c.Pattern)+whatever, err)
	if !ok {
		return q.Finding
	}
	re, _ := pattern(c.Pattern) // Validate has compiled it
	st := readWith(q, bundle.Query{Kind: bundle.Journal, Cell: q.cell}, journal)
	q.Evidence = st.paths
	found, suppressed, total := 0, 0, 0
	for _, e := range st.records {
		if !contains(q.window, e.Time) {
			continue
		}
		if e.Suppressed > 0 {
			suppressed += e.Suppressed
			continue
		}
		total++
		m := re.FindStringSubmatch(e.Message)
		if m == nil {
			continue
		}
		if why := cmp.Or(differs(re, m, want), c.short(re, m)); why != "" {
			q.Differs = append(q.Differs, clock(e.Time)+": "+why)
			continue
		}
		found++
		q.Detail = strings.TrimSpace(e.Message)
	}
	q.Differs = few(q.Differs)
	q.Seen = fmt.Sprintf("%d such lines among %d", found, total)
	switch {
	case found >= c.AtLeast:
		q.Met = Met
	case st.doubt != "":
		return q.unknown(st.doubt)
	case suppressed > 0:
		return q.unknown(fmt.Sprintf("%d such lines, and the journal suppressed %d", found, suppressed))
	default:
		q.Met = NotMet
	}
	return q.Finding
}

// expected is what the groups must equal. A constant that is only assumed can't be compared with; whatever says so,
// as text to add to what is wanted.
func (c *LogLine) expected(v bundle.View, cell string) (want map[string]float64, whatever string, err error) {
	want = map[string]float64{}
	for _, group := range slices.Sorted(maps.Keys(c.Equals)) {
		q := c.Equals[group]
		if q.assumed(v, cell) != "" {
			whatever += fmt.Sprintf(", whatever its %s: the %s of %s is not known", group, q.Constant, cell)
			continue
		}
		if want[group], err = q.value(v, cell); err != nil {
			return nil, whatever, err
		}
	}
	return want, whatever, nil
}

// journal reads all of a journal, from its beginning each time: an entry may go over several lines.
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

// short says which group of a match doesn't exceed the other, "" if all do.
func (c *LogLine) short(re *regexp.Regexp, m []string) string {
	for _, group := range slices.Sorted(maps.Keys(c.Exceeds)) {
		other := c.Exceeds[group]
		a, err := time.ParseDuration(m[re.SubexpIndex(group)])
		b, err2 := time.ParseDuration(m[re.SubexpIndex(other)])
		if err != nil || err2 != nil || a <= b {
			return fmt.Sprintf("%s is %s, which does not exceed the %s of %s", group, m[re.SubexpIndex(group)], other,
				m[re.SubexpIndex(other)])
		}
	}
	return ""
}

// differs says how the groups of a match differ from what is wanted, "" if they don't.
func differs(re *regexp.Regexp, m []string, want map[string]float64) string {
	for _, group := range slices.Sorted(maps.Keys(want)) {
		x, text := want[group], m[re.SubexpIndex(group)]
		if d, err := time.ParseDuration(text); err == nil {
			if float64(d) != x {
				return fmt.Sprintf("%s is %s, not %s", group, text, time.Duration(x))
			}
			continue
		}
		var n float64
		if _, err := fmt.Sscanf(text, "%g", &n); err != nil || n != x {
			return fmt.Sprintf("%s is %s, not %g", group, text, x)
		}
	}
	return ""
}
