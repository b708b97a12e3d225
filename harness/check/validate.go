package check

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// refuse returns an error with the formatted text if bad is true, else nil.
func refuse(bad bool, format string, args ...any) error {
	if !bad {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// countTrue returns how many of the values are true.
func countTrue(fields ...bool) (n int) {
	for _, is := range fields {
		if is {
			n++
		}
	}
	return n
}

// nameList returns a list with the name, or nil if the name is empty.
func nameList(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// onlyArm refuses a text with a placeholder other than $(arm), because nothing would replace it.
func onlyArm(field, text string) error {
	return refuse(strings.Contains(strings.ReplaceAll(text, "$(arm)", ""), "$("), "%s is %q (want no placeholder but $(arm))",
		field, text)
}

// positive refuses a text that is no duration above 0.
func positive(field, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%s is %q (want a duration with its unit: 3m)", field, text)
	}
	return refuse(d <= 0, "%s is %s (want above 0)", field, text)
}

// optional refuses what positive refuses, but allows an empty text.
func optional(field, text string) error {
	if text == "" {
		return nil
	}
	return positive(field, text)
}

// duration parses a duration that Validate has accepted; an empty text is 0.
func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// pattern compiles a regular expression over a line of a log; case does not matter.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, errors.New("pattern is empty, which every line would match")
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	return re, nil
}

// percent reads a share as a fraction: 5% is 0.05.
func percent(field, text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%s is %q (want a share: 5%%)", field, text)
	}
	return n / 100, nil
}

// ofArm returns text with each $(arm) replaced by the arm's name.
func ofArm(text, arm string) string { return strings.ReplaceAll(text, "$(arm)", arm) }
