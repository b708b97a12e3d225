package metrics_test

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// cpuProfiles records CPU profiles of testdata, at a second of the trial each: yielding is of a server on
// dynamiclistener v0.3.3 that nobody has called, with 680 of 720 ms in the scheduler over 5.02 s, resting of one on
// v0.3.5.
func cpuProfiles(list ...any) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		tr.Phases()
		for i := 0; i < len(list); i += 2 {
			second, name := float64(list[i].(int)), list[i+1].(string)
			if name == "failed" {
				tr.Fail(bundle.CPU, checktest.Arm, second, "another profile is being made")
				continue
			}
			_, err := tr.W.Write(bundle.Meta{Kind: bundle.CPU, Arm: checktest.Arm, Time: tr.At(second)}, "pb.gz", bytes.NewReader(tr.Testdata(name)))
			tr.Must(err)
		}
	}
}

func TestCPUShare(t *testing.T) {
	const yielding, resting = "yielding.cpu.pb.gz", "resting.cpu.pb.gz"
	checktest.Run(t, []checktest.Question{
		{Name: "it yields all the time", Fill: cpuProfiles(120, yielding, 140, yielding), Met: check.True, Evidence: checktest.Times(2, bundle.CPU),
			Seen: "91.7% of the 1.44s of CPU time in 2 profiles over 10s"},
		{Name: "another function", Spec: `{"funcs":["sha256.block"],"above":"50%"}`, Fill: cpuProfiles(120, yielding), Met: check.False,
			Evidence: checktest.Times(1, bundle.CPU), Seen: "0% of the 720ms"},
		{Name: "what a function calls counts", Spec: `{"funcs":["runtime.mcall"],"above":"94%"}`, Fill: cpuProfiles(120, yielding), Met: check.True,
			Evidence: checktest.Times(1, bundle.CPU), Seen: "94.4% of the 720ms"},
		{Name: "one of several functions is enough, and none counts twice", Spec: `{"funcs":["runtime.goschedImpl","runtime.gosched_m"],"above":"91.7%"}`,
			Fill: cpuProfiles(120, yielding), Met: check.False, Evidence: checktest.Times(1, bundle.CPU), Seen: "91.7% of the 720ms"},
		{Name: "at rest", Fill: cpuProfiles(120, resting, 140, resting), Met: check.False, Evidence: checktest.Times(2, bundle.CPU), Seen: "0% of the 100ms"},
		{Name: "too few", Fill: cpuProfiles(120, yielding), Met: check.Unknown, Code: check.TooFew, Evidence: checktest.Times(1, bundle.CPU), Seen: "in 1 profiles over 5s: too few to answer by"},
		{Name: "one ends after the phase", Fill: cpuProfiles(120, yielding, 287, yielding), Met: check.Unknown, Evidence: checktest.Times(2, bundle.CPU), Seen: "in 1 profiles"},
		{Name: "a capture that failed is none", Fill: cpuProfiles(120, yielding, 130, "failed"), Met: check.Unknown, Evidence: checktest.Times(1, bundle.CPU),
			Seen: "in 1 profiles", Differs: []string{"the CPU profile of 10:02:10 failed: another profile is being made"}},
		{Name: "no profile of the CPU", Fill: cpuProfiles(120, yielding, 130, yielding, 140, "spinning.debug2"), Met: check.Unknown, Evidence: checktest.Times(2, bundle.CPU),
			Seen: "reading "},
		{Name: "nobody profiled", Fill: cpuProfiles(), Met: check.Unknown, Seen: "in 0 profiles over 0s: too few"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec = "cpuShare", cmp.Or(q.Spec, `{"funcs":["runtime.gosched_m"],"above":"50%","profiles":2}`)
		q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
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
		checktest.Refused(t, "cpuShare", spec, want)
	}
}
