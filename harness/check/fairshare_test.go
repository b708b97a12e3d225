package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestLittleCPUProvesNothingWhereNoMoreCouldBeHad(t *testing.T) {
	kinds := []bundle.Kind{bundle.Identity, bundle.Host}
	pinned := func(float64) bundle.CPULimits { return bundle.CPULimits{Known: true, Cores: 1} }
	run(t, []question{
		{name: "at rest", fill: loaded(3, 1.5, limited(0.02, free)), met: check.True, evidence: kinds, seen: "a second in"},
		{name: "nobody recorded the host", fill: limited(0.02, free), met: check.Unknown, evidence: kinds[:1], seen: "nobody knows how much it could have got: no record of the host"},
		{name: "nobody recorded the host, and it is busy", fill: limited(0.3, free), met: check.False, evidence: kinds[:1], seen: "0.18"},
		{name: "throttled", fill: loaded(3, 1.5, limited(0.02, quota(120, 200))), met: check.Unknown, evidence: kinds[:1],
			seen: "it was throttled in 200 of 2540 periods, by a quota of 0.5 CPUs, and may have wanted more"},
		{name: "throttled, and busy all the same", fill: loaded(3, 1.5, limited(0.3, quota(120, 200))), met: check.False, evidence: kinds[:1], seen: "0.18"},
		{name: "throttled before", fill: loaded(3, 1.5, limited(0.02, quota(0, 30))), met: check.True, evidence: kinds, seen: "a second in"},
		{name: "a quota that was not reached", fill: loaded(3, 1.5, limited(0.02, quota(500, 600))), met: check.True, evidence: kinds, seen: "a second in"},
		{name: "its limits can't be read", fill: loaded(3, 1.5, limited(0.02, func(float64) bundle.CPULimits { return bundle.CPULimits{Cores: 2} })), met: check.Unknown,
			evidence: kinds[:1], seen: "its limits could not be read"},
		{name: "many tasks at each look, and idle cores in between", fill: loaded(24, 0.65, limited(0.02, free)), met: check.True, evidence: kinds, seen: "a second in"},
		{name: "many tasks, and no core was idle", fill: loaded(24, 0.01, limited(0.02, free)), met: check.Unknown, evidence: kinds,
			seen: "with 24 tasks for 2 cores one that always wants a CPU may get no more than 0.083 of it"},
		{name: "many tasks, and the idle core is not its own", fill: loaded(24, 0.65, limited(0.02, pinned)), met: check.Unknown, evidence: kinds,
			seen: "with 24 tasks for 1 cores one that always wants a CPU may get no more than 0.042 of it"},
		{name: "many tasks, and nobody knows which cores it may run on", fill: loaded(24, 0.65, looksOf(0.002, 0.02, nil)), met: check.Unknown, evidence: kinds, seen: "no more than 0.083 of it"},
	}, func(q *question) {
		q.kind, q.spec, q.scope, q.wanted = "processCPU", `{"atMost":0.1}`, check.Scope{Arm: arm, Phase: check.Fault}, "the process's CPU time growing by at most 0.1 a second"
	})
}

func TestABundleWithoutAFormatNeedNotHaveTheHost(t *testing.T) {
	if f := asOlder(t, "processCPU", `{"atMost":0.1}`, looksOf(0.002, 0.02, nil)); f.Met != check.True {
		t.Errorf("it is %s: %s", f.Met, f.Seen)
	}
}

func TestWhatIsThrottledIsSlowByItself(t *testing.T) {
	slow := func(limits func(float64) bundle.CPULimits) func(*trial) {
		return func(tr *trial) {
			limited(0.02, limits)(tr)
			st := tr.stream(bundle.MetricSamples, arm)
			tr.series(st, "took_seconds_count", 0, 400, func(s float64) float64 { return s })
			tr.series(st, "took_seconds_sum", 0, 400, func(s float64) float64 { return 2 * s })
		}
	}
	one := []bundle.Kind{bundle.MetricSamples}
	run(t, []question{
		{name: "slow", fill: slow(free), met: check.True, evidence: one, seen: "2s"},
		{name: "throttled", fill: slow(quota(120, 200)), met: check.Unknown, evidence: one, seen: "it was throttled in 200 of 2540 periods"},
	}, func(q *question) {
		q.kind, q.spec, q.scope = "metricMean", `{"metric":"took_seconds","above":{"duration":"1s"},"atLeast":3}`, check.Scope{Arm: arm, Phase: check.Fault}
		q.wanted = "took_seconds"
	})
}
