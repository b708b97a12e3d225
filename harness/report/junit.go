package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// JUnit writes one test case for each arm and one for the verdict. An arm that is as expected passes; one that gave no answer, and
// whatever of ours failed, is an error; anything else is a failure. What the rule of an
// open-ended run set aside is skipped.
func JUnit(w io.Writer, v Verdict) error {
	suite := junit.Testsuite{Name: "relapse/" + v.Scenario, Time: strconv.FormatFloat(total(v), 'f', 3, 64)}
	if !v.StartedAt.IsZero() {
		suite.SetTimestamp(v.StartedAt.UTC())
	}
	for _, r := range v.Rates {
		suite.AddProperty(fmt.Sprintf("rate/%s/%s", r.Pair, r.Arm), plain(r.Sentence))
	}
	aside := map[string]bool{}
	for _, t := range v.Trials {
		aside[t.ID] = v.Until != nil && setAside(t.Trial)
	}
	for _, a := range v.Arms {
		c := junit.Testcase{Name: fmt.Sprintf("%s/%s/%s", a.Trial, a.Pair, a.Name), Classname: "relapse." + v.Scenario, Status: string(a.Outcome)}
		bad := &junit.Result{Message: plain(fmt.Sprintf("%s, expected %s: %s", a.Outcome, a.Expected, a.Reason)), Type: string(a.Outcome), Data: plain(unmet(a))}
		switch {
		case a.Outcome == a.Expected:
			c.SystemOut = &junit.Output{Data: plain(a.Reason + "\n" + a.Decisive)}
		case aside[a.Trial]:
			c.Skipped = &junit.Result{Message: "set aside: " + bad.Message}
		case a.Outcome == verdict.Inconclusive || a.Outcome == verdict.Error:
			c.Error = bad
		default:
			c.Failure = bad
		}
		suite.AddTestcase(c)
	}
	c := junit.Testcase{Name: "verdict", Classname: "relapse." + v.Scenario, Status: string(v.Verdict)}
	bad := &junit.Result{Message: plain(v.LastLine() + ": " + v.Sentence), Type: string(v.Verdict), Data: plain(v.Sentence)}
	switch v.ExitCode {
	case verdict.ExitOK:
		c.SystemOut = &junit.Output{Data: plain(v.Sentence)}
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

// plain drops the control characters that XML can't hold, which captured logs may have.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func total(v Verdict) (seconds float64) {
	for _, name := range sortedKeys(v.Timings) { // in one order: sums of floats depend on it
		seconds += v.Timings[name]
	}
	return seconds
}

// unmet lists an arm's checks with what was seen and wanted.
func unmet(a verdict.Arm) string {
	var b strings.Builder
	for _, l := range lists(a) {
		for _, f := range l.findings {
			fmt.Fprintf(&b, "%s: %s: %s; seen: %s; wanted: %s\n", l.name, f.Name, f.Met, f.Seen, f.Wanted)
		}
	}
	return b.String()
}

// list is one list of an arm's checks by its name.
type list struct {
	name     string
	findings []check.Finding
}

func lists(a verdict.Arm) []list {
	return []list{{"identity", a.Identity}, {"steady", a.Steady}, {"baseline", a.Baseline}, {"exposure", a.Exposure},
		{"signature", a.Signature}, {"healed", a.Healed}}
}
