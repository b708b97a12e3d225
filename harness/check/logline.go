package check

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "logLine",
		Doc: "A line in the subject's own log, in the window.\n\n" +
			"With equals, a named group of the pattern is read as a duration or a number and compared with a constant of the subject: the line must be " +
			"about this build's own numbers. With exceeds, a group has to be larger than another one of the same line. Finding none needs a log without gaps and without suppressed lines.",
		Example: "name: says-so\nkind: logLine\nphase: recovery\nspec:\n  pattern: 'pleg was last seen active .* threshold is (?P<limit>[0-9hms.]+)'\n  equals:\n    limit: {duration: 3m}\n",
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

// NeedsConstants names the constants of equals.
func (c *LogLine) NeedsConstants() []string {
	var out []string
	for _, q := range c.Equals {
		out = append(out, q.constants()...)
	}
	return out
}

// Validate refuses a pattern that isn't one, and what any log would meet.
func (c *LogLine) Validate() error {
	re, err := regexp.Compile("(?i)" + c.Pattern)
	switch {
	case err != nil:
		return fmt.Errorf("pattern: %w", err)
	case c.Pattern == "":
		return fmt.Errorf("pattern is empty, which every line would match")
	case c.AtLeast < 1:
		return fmt.Errorf("atLeast is %d (want at least 1)", c.AtLeast)
	}
	for group := range c.Equals {
		if re.SubexpIndex(group) < 0 {
			return fmt.Errorf("equals.%s: the pattern has no group of that name", group)
		}
	}
	for group, other := range c.Exceeds {
		if re.SubexpIndex(group) < 0 || re.SubexpIndex(other) < 0 {
			return fmt.Errorf("exceeds.%s: %s: the pattern lacks one of these groups", group, other)
		}
	}
	return nil
}

// Eval reads the log of the window.
func (c *LogLine) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("at least %d line like %q", c.AtLeast, c.Pattern)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	re := regexp.MustCompile("(?i)" + c.Pattern)
	want := map[string]float64{}
	for group, q := range c.Equals {
		if q.assumed(v, s.Cell) != "" { // what is not known can't be compared with
			wanted += fmt.Sprintf(", whatever its %s: the %s of %s is not known", group, q.Constant, s.Cell)
			continue
		}
		x, err := q.value(v, s.Cell)
		if err != nil {
			return unknown(wanted, err.Error(), nil)
		}
		want[group] = x
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	f := Finding{Wanted: wanted}
	found, suppressed, total := 0, 0, 0
	doubt := c.scan(v, s.Cell, w, &f, func(e klog.Entry) {
		if e.Suppressed > 0 {
			suppressed += e.Suppressed
			return
		}
		total++
		m := re.FindStringSubmatch(e.Message)
		if m == nil {
			return
		}
		if why := cmp.Or(differs(re, m, want), c.short(re, m)); why != "" {
			f.Differs = append(f.Differs, e.Time.UTC().Format("15:04:05")+": "+why)
			return
		}
		found++
		f.Detail = strings.TrimSpace(e.Message)
	})
	f.Differs = few(f.Differs)
	f.Seen = fmt.Sprintf("%d such lines among %d", found, total)
	switch {
	case found >= c.AtLeast:
		f.Met = Met
	case doubt != "":
		return unknown(wanted, doubt, f.Evidence)
	case suppressed > 0:
		return unknown(wanted, fmt.Sprintf("%d such lines, and the journal suppressed %d", found, suppressed), f.Evidence)
	default:
		f.Met = NotMet
	}
	return f
}

// scan hands the entries of the window to yield and returns why the log can't be relied on for it, if so.
func (c *LogLine) scan(v bundle.View, cell string, w bundle.Window, f *Finding, yield func(klog.Entry)) (doubt string) {
	st := readWith(v, bundle.Journal, cell, w, func(a bundle.Artifact) (out []klog.Entry, err error) {
		rc, err := v.Open(a) // from its beginning each time: an entry may go over several lines
		if err != nil {
			return nil, err
		}
		defer rc.Close()
		for e, err := range klog.ReadJournal(rc) {
			if err != nil {
				return out, err
			}
			out = append(out, e)
		}
		return out, nil
	})
	f.Evidence = st.paths
	for _, e := range st.records {
		if !e.Time.Before(w.Start) && !e.Time.After(w.End) {
			yield(e)
		}
	}
	return st.doubt
}

// short says which group of a match doesn't exceed the other, "" if all do.
func (c *LogLine) short(re *regexp.Regexp, m []string) string {
	for group, other := range c.Exceeds {
		a, err := time.ParseDuration(m[re.SubexpIndex(group)])
		b, err2 := time.ParseDuration(m[re.SubexpIndex(other)])
		if errors.Join(err, err2) != nil || a <= b {
			return fmt.Sprintf("%s is %s, which does not exceed the %s of %s", group, m[re.SubexpIndex(group)], other, m[re.SubexpIndex(other)])
		}
	}
	return ""
}

// differs says how the groups of a match differ from what is wanted, "" if they don't.
func differs(re *regexp.Regexp, m []string, want map[string]float64) string {
	for group, x := range want {
		text := m[re.SubexpIndex(group)]
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
