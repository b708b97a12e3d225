package check_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

const killSpec = `{"container":"kube-apiserver","func":"registry.(*Store).DeleteCollection","state":"chan send","inFlight":["restfulDeleteCollection"],` +
	`"heapFunc":"registry.(*Store).DeleteCollection","snapshots":3}`

func TestKilledForMemory(t *testing.T) {
	st := []bundle.Kind{bundle.Statuses}
	snaps := func(n int) []bundle.Kind {
		return append(append([]bundle.Kind{bundle.Statuses}, pairs(n)...), times(n, bundle.Heap)...)
	}
	killed := func(grown ...int) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(260, "bbb", "aaa", 255, "OOMKilled", 137))
			tr.grow(arm, grown...)
		}
	}
	growth := []int{80, 20, 60, 130, 40, 120, 180, 60, 180, 240, 80, 240}
	run(t, []question{
		{
			name: "it grew, and was killed", fill: killed(growth...), met: check.True, evidence: snaps(4), detail: "[chan send",
			seen: "kube-apiserver (aaa) ended at 10:04:15 with reason OOMKilled, exit code 137; before it 20 leaked and 60.0 MiB at 10:01:20, 40 leaked and 120.0 MiB at 10:02:10,",
		},
		{
			name: "seen late, because the API server couldn't say so before", met: check.True, evidence: snaps(3), detail: "chan send", seen: "exit code 137",
			fill: func(tr *trial) {
				tr.phases()
				s := tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(340, "bbb", "aaa", 255, "Error", 137))
				s.Gap(tr.at(250), tr.at(340), "connection refused")
				tr.grow(arm, growth[:9]...)
			},
		},
		{
			name: "seen to end, and not yet to begin anew", met: check.True, evidence: snaps(4), detail: "chan send", seen: "ended at 10:04:16 with reason OOMKilled",
			fill: func(tr *trial) {
				tr.phases()
				gone := tr.ran(256, "aaa", 0)
				gone.State, gone.Reason, gone.ExitCode = "terminated", "OOMKilled", 137
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), gone)
				tr.grow(arm, growth...)
			},
		},
		{name: "two levels are too few", fill: killed(growth[:6]...), met: check.Unknown, seen: "2 of 2 quiet snapshots show growth, and a kill that the leak doesn't explain", evidence: snaps(2), detail: "chan send"},
		{name: "no snapshot", fill: killed(), met: check.Unknown, seen: "before it no snapshot with a heap profile: 0 of 0", evidence: st},
		{
			name: "goroutines without memory", fill: killed(80, 20, 60, 130, 40, 60, 180, 60, 59), met: check.Unknown, seen: "1 of 3 quiet snapshots show growth", evidence: snaps(3), detail: "chan send",
			differs: []string{"10:02:10: 40 leaked, but 60.0 MiB retained, no more than before", "60 leaked, but 59.0 MiB"},
		},
		{name: "memory without goroutines", fill: killed(80, 20, 60, 130, 20, 120, 180, 20, 180), met: check.Unknown, seen: "1 of 3 quiet snapshots show growth", evidence: snaps(3), detail: "chan send"},
		{name: "nothing leaked", fill: killed(80, 0, 60, 130, 0, 120, 180, 0, 180), met: check.Unknown, seen: "1 of 3 quiet snapshots show growth", evidence: snaps(3)},
		{
			name: "goroutines that went away were not leaked", met: check.Unknown, seen: "goroutines of 10:02:10 were gone by 10:03:00", detail: "chan send",
			fill: killed(80, 20, 60, 130, 40, 120, 180, 30, 180), evidence: append(append([]bundle.Kind{bundle.Statuses}, pairs(3)...), times(2, bundle.Heap)...),
		},
		{
			name: "calls in flight are no leak", met: check.Unknown, seen: "0 of 0 quiet snapshots", evidence: append([]bundle.Kind{bundle.Statuses}, pairs(3)...),
			differs: []string{"serve calls in flight", "serve calls in flight", "serve calls in flight"},
			fill: func(tr *trial) {
				killed()(tr)
				for i, second := range []float64{80, 130, 180} {
					s := leaks(second, 20*(i+1))
					s.extra = "handler"
					tr.shoot(arm, s)
					tr.heap(arm, second, int64(60*(i+1)))
				}
			},
		},
		{
			name: "what grew after the kill is another process's", fill: killed(80, 20, 60, 130, 40, 120, 270, 60, 180), met: check.Unknown,
			seen: "2 of 2 quiet snapshots", evidence: snaps(2), detail: "chan send",
		},
		{
			name: "a heap profile of another occasion", met: check.Unknown, seen: "0 of 3 quiet snapshots", evidence: append([]bundle.Kind{bundle.Statuses}, pairs(3)...),
			differs: []string{"there is no heap profile within 5s of it", "no heap", "no heap"},
			fill: func(tr *trial) {
				killed()(tr)
				for i, second := range []float64{80, 130, 180} {
					tr.shoot(arm, leaks(second, 20*(i+1)))
					tr.heap(arm, second+9, int64(60*(i+1)))
				}
			},
		},
		{
			name: "a cut dump", met: check.Unknown, seen: "is cut short", detail: "chan send", evidence: snaps(4),
			fill: func(tr *trial) {
				killed(growth...)(tr)
				s := leaks(250, 80)
				s.lacks = "~2"
				tr.shoot(arm, s)
			},
		},
		{
			name: "ended otherwise", met: check.False, seen: "with reason Error, exit code 1: that is no kill for memory", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(260, "bbb", "aaa", 255, "Error", 1))
				tr.grow(arm, growth...)
			},
		},
		{
			name: "killed twice, and the first end was not seen", met: check.Unknown, seen: "was another container at 10:04:20, and how the one before ended was not seen", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(260, "ccc", "bbb", 255, "OOMKilled", 137))
				tr.grow(arm, growth...)
			},
		},
		{
			name: "an older kill is not of this one", met: check.False, seen: "kube-apiserver ran on as bbb", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.after(1, "bbb", "aaa", -30, "OOMKilled", 137))
				tr.grow(arm, growth...)
			},
		},
		{
			name: "no kill", met: check.False, seen: "kube-apiserver ran on as aaa", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0))
				tr.grow(arm, growth...)
			},
		},
		{
			name: "no kill in a gap either, because it was the same one afterwards", met: check.False, seen: "kube-apiserver ran on as aaa", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0)).Gap(tr.at(200), tr.at(230), "connection refused")
				tr.grow(arm, growth...)
			},
		},
		{
			name: "no kill, as far as was watched", met: check.Unknown, seen: "containers.status of vulnerable does not cover", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0)).Gap(tr.at(200), tr.at(394), "connection refused")
				tr.grow(arm, growth...)
			},
		},
		{
			name: "killed after the phase", met: check.Unknown, seen: "that was after the phase: kube-apiserver (aaa) ended at 10:05:00", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(310, "bbb", "aaa", 300, "OOMKilled", 137))
				tr.grow(arm, growth...)
			},
		},
		{
			name: "another container's kill", met: check.False, seen: "kube-apiserver ran on", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				e := tr.after(260, "eee", "ddd", 255, "OOMKilled", 137)
				e.Container, e.Pod = "etcd", "etcd-a"
				tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), e)
			},
		},
		{
			name: "the other arm's kill", met: check.Unknown, seen: "no status of kube-apiserver was recorded by 10:00:40",
			fill: func(tr *trial) {
				tr.phases()
				tr.statuses(other, 0, 394, tr.ran(1, "aaa", 0), tr.after(260, "bbb", "aaa", 255, "OOMKilled", 137))
				tr.grow(other, growth...)
			},
		},
		{
			name: "it didn't run when the phase began", met: check.Unknown, seen: "kube-apiserver was waiting at 10:00:40", evidence: st,
			fill: func(tr *trial) {
				tr.phases()
				s := tr.ran(1, "aaa", 0)
				s.State = "waiting"
				tr.statuses(arm, 0, 394, s, tr.after(260, "bbb", "aaa", 255, "OOMKilled", 137))
			},
		},
		{name: "one snapshot shows no growth", spec: `{"snapshots":1}`, fill: killed(), met: check.Unknown, seen: "snapshots is 1 (want at least 2"},
		{name: "no container", spec: `{"container":""}`, fill: killed(), met: check.Unknown, seen: "container is empty"},
		{name: "no heap function", spec: `{"heapFunc":""}`, fill: killed(), met: check.Unknown, seen: "heapFunc is empty"},
		{name: "no function", spec: `{"func":""}`, fill: killed(), met: check.Unknown, seen: "func is empty"},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "killedForMemory", check.Scope{Arm: arm, Phase: check.Fault}, over(t, killSpec, q.spec)
		q.wanted = "and then a kill of"
	})
	run(t, []question{{
		name: "in the baseline it ran on", fill: killed(growth...), met: check.False, seen: "that was after the phase: kube-apiserver (aaa) ended at 10:04:15", evidence: st,
	}}, func(q *question) {
		q.kind, q.scope, q.spec, q.wanted = "killedForMemory", check.Scope{Arm: arm, Phase: check.Baseline}, killSpec, "kill of"
	})
}

// A kill says when it was, so that the process is judged up to there, or not at all where the leak doesn't explain it.
// Any other end is the subject's own failure, of which this has nothing to say.
func TestKilledForMemoryEnds(t *testing.T) {
	for _, c := range []struct {
		code  int32
		grown []int
		want  check.Truth
		end   int // s
	}{
		{137, []int{80, 20, 60, 130, 40, 120, 180, 60, 180}, check.True, 255},
		{137, []int{80, 20, 60}, check.Unknown, 255},
		{2, []int{80, 20, 60, 130, 40, 120, 180, 60, 180}, check.False, 0},
	} {
		tr := newTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		tr.phases()
		tr.statuses(arm, 0, 394, tr.ran(1, "aaa", 0), tr.after(260, "bbb", "aaa", 255, "Error", c.code))
		tr.grow(arm, c.grown...)
		k, err := kinds.Decode[check.Check](kinds.Check, "killedForMemory", json.RawMessage(killSpec))
		tr.must(err)
		var end time.Time
		if c.end > 0 {
			end = tr.at(float64(c.end))
		}
		if f := k.Eval(tr.w.View(), check.Scope{Arm: arm, Phase: check.Fault}); f.Met != c.want || !f.Ended.Equal(end) {
			t.Errorf("with exit code %d after %v: %+v, want %s and the end at %s", c.code, c.grown, f, c.want, end)
		}
	}
}
