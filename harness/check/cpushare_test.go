package check_test

import (
	"bytes"
	"cmp"
	"os"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// cpuProfiles records CPU profiles of testdata, at a second of the trial each: yielding is of a server on dynamiclistener v0.3.3 that nobody has called,
// with 680 of 720 ms in the scheduler over 5.02 s, resting of one on v0.3.5.
func cpuProfiles(list ...any) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		for i := 0; i < len(list); i += 2 {
			second, name := float64(list[i].(int)), list[i+1].(string)
			if name == "failed" {
				tr.fail(bundle.CPU, arm, second, "another profile is being made")
				continue
			}
			b, err := os.ReadFile("testdata/" + name)
			tr.must(err)
			_, err = tr.w.Write(bundle.Meta{Kind: bundle.CPU, Arm: arm, Time: tr.at(second)}, "pb.gz", bytes.NewReader(b))
			tr.must(err)
		}
	}
}

func TestCPUShare(t *testing.T) {
	const yielding, resting = "yielding.cpu.pb.gz", "resting.cpu.pb.gz"
	run(t, []question{
		{name: "it yields all the time", fill: cpuProfiles(120, yielding, 140, yielding), met: check.True, evidence: times(2, bundle.CPU),
			seen: "91.7% of the 1.44s of CPU time in 2 profiles over 10s"},
		{name: "another function", spec: `{"funcs":["sha256.block"],"above":"50%"}`, fill: cpuProfiles(120, yielding), met: check.False,
			evidence: times(1, bundle.CPU), seen: "0% of the 720ms"},
		{name: "what a function calls counts", spec: `{"funcs":["runtime.mcall"],"above":"94%"}`, fill: cpuProfiles(120, yielding), met: check.True,
			evidence: times(1, bundle.CPU), seen: "94.4% of the 720ms"},
		{name: "one of several functions is enough, and none counts twice", spec: `{"funcs":["runtime.goschedImpl","runtime.gosched_m"],"above":"91.7%"}`,
			fill: cpuProfiles(120, yielding), met: check.False, evidence: times(1, bundle.CPU), seen: "91.7% of the 720ms"},
		{name: "at rest", fill: cpuProfiles(120, resting, 140, resting), met: check.False, evidence: times(2, bundle.CPU), seen: "0% of the 100ms"},
		{name: "too few", fill: cpuProfiles(120, yielding), met: check.Unknown, evidence: times(1, bundle.CPU), seen: "in 1 profiles over 5s: too few to answer by"},
		{name: "one ends after the phase", fill: cpuProfiles(120, yielding, 287, yielding), met: check.Unknown, evidence: times(2, bundle.CPU), seen: "in 1 profiles"},
		{name: "a capture that failed is none", fill: cpuProfiles(120, yielding, 130, "failed"), met: check.Unknown, evidence: times(1, bundle.CPU),
			seen: "in 1 profiles", differs: []string{"the CPU profile of 10:02:10 failed: another profile is being made"}},
		{name: "no profile of the CPU", fill: cpuProfiles(120, yielding, 130, yielding, 140, "spinning.debug2"), met: check.Unknown, evidence: times(2, bundle.CPU),
			seen: "reading "},
		{name: "nobody profiled", fill: cpuProfiles(), met: check.Unknown, seen: "in 0 profiles over 0s: too few"},
	}, func(q *question) {
		q.kind, q.spec = "cpuShare", cmp.Or(q.spec, `{"funcs":["runtime.gosched_m"],"above":"50%","profiles":2}`)
		q.scope = check.Scope{Arm: arm, Phase: check.Fault}
	})
}

func TestCPUShareRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"above":"50%"}`:                           `funcs is [] (want at least one, none of them empty)`,
		`{"funcs":[""],"above":"50%"}`:              `funcs is [""] (want at least one, none of them empty)`,
		`{"funcs":["f"]}`:                           `above is "" (want a share: 5%)`,
		`{"funcs":["f"],"above":"100%"}`:            `above is 100% (want 0% or more, and less than 100%)`,
		`{"funcs":["f"],"above":"5%","profiles":0}`: `profiles is 0 (want at least 1)`,
	} {
		refused(t, "cpuShare", spec, want)
	}
}
