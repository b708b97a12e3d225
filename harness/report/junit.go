package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// JUnit writes one test case for each arm and one for the verdict. An arm that is as expected passes. An arm that gave
// no answer, or in which relapse failed, is an error. Any other arm is a failure. In an open-ended run, an arm that is
// not as expected in a trial that the rule set aside is skipped.
func JUnit(w io.Writer, of judge.Verdict) error {
	v := viewOf(of, bare(of))
	suite := junit.Testsuite{
		Name: "relapse/" + v.Scenario,
		Time: strconv.FormatFloat(total(of), 'f', 3, 64),
	}
	if !v.StartedAt.IsZero() {
		suite.SetTimestamp(v.StartedAt.UTC())
	}
	for _, r := range v.Rates {
		suite.AddProperty(fmt.Sprintf("rate/%s/%s", r.Pair, r.Arm), plain(r.Sentence))
	}
	for _, t := range v.Trials {
		for _, a := range t.Arms {
			suite.AddTestcase(testcase("relapse."+v.Scenario, a, t.SetAside))
		}
	}
	c := junit.Testcase{
		Name:      "verdict",
		Classname: "relapse." + v.Scenario,
		Status:    string(v.Verdict.Verdict),
	}
	bad := &junit.Result{
		Message: plain(v.LastLine() + ": " + of.Sentence),
		Type:    string(v.Verdict.Verdict),
		Data:    plain(of.Sentence),
	}
	switch v.ExitCode {
	case verdict.ExitOK:
		c.SystemOut = &junit.Output{Data: plain(of.Sentence)}
	case verdict.ExitFailed:
		c.Failure = bad
	default:
		c.Error = bad
	}
	suite.AddTestcase(c)
	var all junit.Testsuites
	all.AddSuite(suite)
	if err := all.WriteXML(w); err != nil {
		return fmt.Errorf("encoding %s: %w", JUnitFile, err)
	}
	return nil
}

func testcase(class string, a armView, setAside bool) junit.Testcase {
	c := junit.Testcase{Name: fmt.Sprintf("%s/%s/%s", a.Trial, a.Pair, a.Name), Classname: class,
		Status: string(a.Outcome)}
	bad := &junit.Result{
		Message: plain(fmt.Sprintf("%s, expected %s: %s", a.Outcome, a.Expected, a.Reason)),
		Type:    string(a.Outcome), Data: plain(checks(a)),
	}
	switch {
	case a.Outcome == a.Expected:
		c.SystemOut = &junit.Output{Data: plain(a.Reason + "\n" + a.Decisive)}
	case setAside:
		c.Skipped = &junit.Result{Message: "set aside: " + bad.Message}
	case a.Outcome == verdict.Inconclusive || a.Outcome == verdict.Error:
		c.Error = bad
	default:
		c.Failure = bad
	}
	return c
}

// plain drops the control characters that XML can't hold; captured logs may have some.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func total(v judge.Verdict) (seconds float64) {
	for _, name := range sortedKeys(v.Timings) { // in one order: sums of floats depend on it
		seconds += v.Timings[name]
	}
	return seconds
}

// checks lists an arm's checks, with what was seen and what was wanted.
func checks(a armView) string {
	var b strings.Builder
	for _, l := range a.Lists {
		for _, r := range l.Rows {
			if !r.Part {
				fmt.Fprintf(
					&b,
					"%s: %s: %s; seen: %s; wanted: %s\n",
					l.Name,
					r.Name,
					r.Met,
					r.Seen,
					r.Wanted,
				)
			}
		}
	}
	return b.String()
}
