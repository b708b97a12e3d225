package question

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Refuse returns an error with the formatted text if bad is true, else nil.
func Refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// CountTrue returns how many of the values are true.
func CountTrue(fields ...bool) (n int) {
	for _, is := range fields {
		if is {
			n++
		}
	}
	return n
}

// OnlyArm refuses a text with a placeholder other than $(arm), because nothing would replace it.
func OnlyArm(field, text string) error {
	return Refuse(
		strings.Contains(strings.ReplaceAll(text, "$(arm)", ""), "$("),
		"%s is %q (want no placeholder but $(arm))",
		field,
		text,
	)
}

// Positive refuses a text that is no duration above 0.
func Positive(field, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s is %q (want a duration with its unit: 3m)", field, text)
	}
	return Refuse(d <= 0, "%s is %s (want above 0)", field, text)
}

// Optional refuses what Positive refuses, but allows an empty text.
func Optional(field, text string) error {
	if text == "" {
		return nil
	}
	return Positive(field, text)
}

// Duration parses a duration that Validate has accepted; an empty text is 0.
func Duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// unlikely is a line that no log has. A pattern that matches it, and an empty line, matches any.
const unlikely = "\x00\x01 nobody logs this \x02\x03"

// Chooses refuses what Pattern refuses, and a pattern of which a part matches every line by mistake, as in a|b|. Whoever
// means every line writes .*
func Chooses(field, text string) error {
	re, err := Pattern(text)
	if err != nil || text == ".*" || !re.MatchString("") || !re.MatchString(unlikely) {
		return err
	}
	return fmt.Errorf("%s is %q, which every line would match (want a text that only the wanted lines have, or .* for every line)",
		field, text)
}

// State refuses a wait state that no version of Go prints, also not in a dump of an old program.
func State(field, state string, also ...string) error {
	known := slices.Concat(also, goroutine.States)
	if state == "" || slices.Contains(known, state) {
		return nil
	}
	return fmt.Errorf("%s is %q, which no dump prints (want one of %s%s)", field, state,
		strings.Join(known, ", "), scenario.Meant(state, known))
}

// Pattern compiles a regular expression over a line of a log; case does not matter.
func Pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, errors.New("pattern is empty, which every line would match")
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return re, nil
}

// Percent reads a share as a fraction: 5% is 0.05.
func Percent(field, text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%s is %q (want a share: 5%%)", field, text)
	}
	return n / 100, nil
}

// ExpandArm returns text with each $(arm) replaced by the arm's name.
func ExpandArm(text, arm string) string { return strings.ReplaceAll(text, "$(arm)", arm) }
