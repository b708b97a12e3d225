package match

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// rules say which lines of logs and which metrics are kept: those that some check asks for.
type rules struct {
	wanted   []wanted
	families []string  // of metrics
	watched  []watched // what people are told to watch
	all      bool      // some check wants all lines of logs
	asked    *sieve    // passes lines that may match a pattern, be last words, or announce a version
	sieve    *sieve    // passes the same lines, and those that a dump may begin with
}

// wanted is a pattern, and a text in lower case that every matching line has; the text is "" if there is none.
type wanted struct {
	re      *regexp.Regexp
	literal []byte
}

// compile collects the patterns of all signs, and makes the sieves for them.
func compile(all []*scenario.Scenario) (*rules, error) {
	r := &rules{}
	for _, s := range all {
		for _, sign := range s.Spec.Match.Signs {
			if err := r.addPatterns(sign.Checks); err != nil {
				return nil, fmt.Errorf(
					"scenario %s, sign %s: %w",
					s.Metadata.Name,
					sign.Name,
					err,
				)
			}
		}
	}
	texts := slices.Concat(words, versions, [][]byte{observed})
	for _, w := range r.wanted {
		texts = append(texts, w.literal)
	}
	r.asked = newSieve(texts)
	for _, m := range goroutine.Marks {
		texts = append(texts, bytes.ToLower(m))
	}
	r.sieve = newSieve(texts)
	return r, nil
}

func (r *rules) addPatterns(checks []scenario.Check) error {
	for _, c := range checks {
		if err := r.addPatterns(c.AnyOf); err != nil {
			return err
		}
		if c.Kind == "" {
			continue
		}
		k, err := kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec)
		if err != nil {
			return err
		}
		if slices.Contains(k.Reads(), bundle.MetricSamples) {
			r.families = union(r.families, familiesIn(c.Spec)...)
		}
		if w, ok := k.(interface {
			Watched() (component, resource string)
		}); ok {
			component, resource := w.Watched()
			r.watched = append(r.watched, watched{component, resource})
		}
		if !readsLogs(k) {
			continue
		}
		picker, picks := k.(check.LinePicker)
		r.all = r.all || !picks
		if !picks {
			continue
		}
		for _, pattern := range picker.Lines() {
			if err := r.want(pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// readsLogs reports whether a check reads logs.
func readsLogs(k check.Check) bool {
	return slices.ContainsFunc(k.Reads(), func(kind bundle.Kind) bool { return kind == bundle.Logs || kind == bundle.Journal })
}

// want adds a pattern to those whose lines are kept.
func (r *rules) want(pattern string) error {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	r.wanted = append(r.wanted, wanted{re, []byte(strings.ToLower(literal(parsed)))})
	return nil
}

// literal returns the longest text that everything has that matches, without characters that the wrapping of a log may
// write differently.
func literal(re *syntax.Regexp) (longest string) {
	var parts []string
	switch re.Op {
	case syntax.OpLiteral:
		parts = strings.FieldsFunc(
			string(re.Rune),
			func(c rune) bool { return c == '"' || c == '\\' || c < ' ' || c > '~' },
		)
	case syntax.OpConcat, syntax.OpCapture:
		for _, s := range re.Sub {
			parts = append(parts, literal(s))
		}
	}
	for _, p := range parts {
		if len(p) > len(longest) {
			longest = p
		}
	}
	return longest
}

// matches reports whether a pattern matches the text of a line. folded is the raw line in lower case.
func (r *rules) matches(folded, text []byte) bool {
	for _, w := range r.wanted {
		if bytes.Contains(folded, w.literal) && w.re.Match(text) {
			return true
		}
	}
	return false
}

// fold copies b to to, with ASCII letters in lower case, and returns the copy.
func fold(to, b []byte) []byte {
	to = append(to[:0], b...)
	for i, c := range to {
		if 'A' <= c && c <= 'Z' {
			to[i] = c | 0x20
		}
	}
	return to
}
