// Package report writes the reports of a run's verdict: junit.xml, summary.md, report.md, report.html, a chart of each
// trial and a text for the terminal. All of them follow from the verdict and the bundles alone. Writing them again,
// elsewhere or later, gives the same files byte for byte.
package report

import (
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
)

// The files that Write leaves in a run's directory, beside those that have their own constants.
const (
	JUnitFile  = "junit.xml"
	ReportFile = "report.md"
)

// Trial is one trial, with what report.md and report.html show of its evidence.
type Trial struct {
	judge.Trial
	Streams  []bundle.Artifact // with their coverage
	Failed   []bundle.Artifact // captures that failed and files that are missing or can't be read
	Censuses []Census
	Loads    []Load
	Figures  []Figure
	Clocks   []Clock // of the arms in which the fault phase began
	Lanes    []Lane  // of all arms
	Stacks   []Stacks
	Profiles []Profiles
}

// Read reads what reports show of the evidence of a verdict's trials. A trial without evidence has nothing to show.
func Read(v judge.Verdict) []Trial {
	out := bare(v)
	for i := range out {
		if out[i].Evidence != nil {
			out[i].gather()
			out[i].draw()
		}
	}
	return out
}

// bare returns a verdict's trials for reports that show none of their evidence.
func bare(v judge.Verdict) []Trial {
	var out []Trial
	for _, t := range v.Trials {
		out = append(out, Trial{Trial: t})
	}
	return out
}
