package campaign

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/kube-relapse/relapse/harness/report"
)

// junit puts the suites of all runs into one file. A unit without a verdict becomes a suite with one error, so that
// it doesn't go missing.
func (s *Summary) junit(out string) ([]byte, error) {
	var all junit.Testsuites
	for _, r := range s.Units {
		if r.Status != Done {
			suite := junit.Testsuite{
				Name: "relapse/" + r.Scenario + "/" + r.Pair,
				Time: fmt.Sprintf("%.3f", r.Seconds),
			}
			said := &junit.Result{Message: fmt.Sprintf("%s: %s", r.Status, r.Why), Type: r.Status}
			one := junit.Testcase{
				Name:      "verdict",
				Classname: "relapse." + r.Scenario,
				Status:    r.Status,
				Error:     said,
			}
			if r.Status == Skipped {
				one.Error, one.Skipped = nil, said
			}
			suite.AddTestcase(one)
			all.AddSuite(suite)
			continue
		}
		path := filepath.Join(out, r.Dir, report.JUnitFile)
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("collecting JUnit files: %w", err)
		}
		var one junit.Testsuites
		if err := xml.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if len(one.Suites) == 0 {
			return nil, fmt.Errorf("reading %s: it has no test suite", path)
		}
		for _, suite := range one.Suites {
			suite.Name += "/" + r.Pair
			all.AddSuite(suite)
		}
	}
	var b bytes.Buffer
	if err := all.WriteXML(&b); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", report.JUnitFile, err)
	}
	return b.Bytes(), nil
}
