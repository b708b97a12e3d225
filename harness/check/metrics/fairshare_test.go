package metrics_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestLittleCPUProvesNothingWhereNoMoreCouldBeHad(t *testing.T) {
	kinds := []bundle.Kind{bundle.Identity, bundle.Host}
	pinned := func(float64) bundle.CPULimits { return bundle.CPULimits{Known: true, Cores: 1} }
	checktest.Run(t, []checktest.Question{
		{Name: "at rest", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.02, checktest.Free)), Met: check.True, Evidence: kinds, Seen: "a second in"},
		{Name: "nobody recorded the host", Fill: checktest.Limited(0.02, checktest.Free), Met: check.Unknown, Code: check.NotRecorded, Evidence: kinds[:1], Seen: "nobody knows how much it could have got: no record of the host"},
		{Name: "nobody recorded the host, and it is busy", Fill: checktest.Limited(0.3, checktest.Free), Met: check.False, Evidence: kinds[:1], Seen: "0.18"},
		{Name: "throttled", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.02, checktest.Quota(120, 200))), Met: check.Unknown, Code: check.Starved, Evidence: kinds[:1],
			Seen: "it was throttled in 200 of 2540 periods, by a quota of 0.5 CPUs, and may have wanted more"},
		{Name: "throttled, and busy all the same", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.3, checktest.Quota(120, 200))), Met: check.False, Evidence: kinds[:1], Seen: "0.18"},
		{Name: "throttled before", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.02, checktest.Quota(0, 30))), Met: check.True, Evidence: kinds, Seen: "a second in"},
		{Name: "a quota that was not reached", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.02, checktest.Quota(500, 600))), Met: check.True, Evidence: kinds, Seen: "a second in"},
		{Name: "its limits can't be read", Fill: checktest.OnHost(3, 1.5, checktest.Limited(0.02, func(float64) bundle.CPULimits { return bundle.CPULimits{Cores: 2} })), Met: check.Unknown,
			Evidence: kinds[:1], Seen: "its limits could not be read"},
		{Name: "many tasks at each look, and idle cores in between", Fill: checktest.OnHost(24, 0.65, checktest.Limited(0.02, checktest.Free)), Met: check.True, Evidence: kinds, Seen: "a second in"},
		{Name: "many tasks, and no core was idle", Fill: checktest.OnHost(24, 0.01, checktest.Limited(0.02, checktest.Free)), Met: check.Unknown, Evidence: kinds,
			Code: check.Starved, Figures: map[string]float64{"tasks": 24, "cores": 2},
			Seen: "with 24 tasks for 2 cores one that always wants a CPU may get no more than 0.083 of it"},
		{Name: "many tasks, and the idle core is not its own", Fill: checktest.OnHost(24, 0.65, checktest.Limited(0.02, pinned)), Met: check.Unknown, Evidence: kinds,
			Seen: "with 24 tasks for 1 cores one that always wants a CPU may get no more than 0.042 of it"},
		{Name: "many tasks, and nobody knows which cores it may run on", Fill: checktest.OnHost(24, 0.65, checktest.LooksOf(0.002, 0.02, nil)), Met: check.Unknown, Evidence: kinds, Seen: "no more than 0.083 of it"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Scope, q.Wanted = "processCPU", `{"atMost":0.1}`, check.Scope{Arm: checktest.Arm, Phase: check.Fault}, "the process's CPU time growing by at most 0.1 a second"
	})
}

func TestABundleWithoutAFormatNeedNotHaveTheHost(t *testing.T) {
	if f := checktest.AsOlder(t, "processCPU", `{"atMost":0.1}`, checktest.LooksOf(0.002, 0.02, nil)); f.Met != check.True {
		t.Errorf("it is %s: %s", f.Met, f.Seen)
	}
}

func TestWhatIsThrottledIsSlowByItself(t *testing.T) {
	slow := func(limits func(float64) bundle.CPULimits) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			checktest.Limited(0.02, limits)(tr)
			st := tr.Stream(bundle.MetricSamples, checktest.Arm)
			tr.Series(st, "took_seconds_count", 0, 400, func(s float64) float64 { return s })
			tr.Series(st, "took_seconds_sum", 0, 400, func(s float64) float64 { return 2 * s })
		}
	}
	one := []bundle.Kind{bundle.MetricSamples}
	checktest.Run(t, []checktest.Question{
		{Name: "slow", Fill: slow(checktest.Free), Met: check.True, Evidence: one, Seen: "2s"},
		{Name: "throttled", Fill: slow(checktest.Quota(120, 200)), Met: check.Unknown, Code: check.Starved, Evidence: one, Seen: "it was throttled in 200 of 2540 periods"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Scope = "metricMean", `{"metric":"took_seconds","above":{"duration":"1s"},"atLeast":3}`, check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Wanted = "took_seconds"
	})
}
