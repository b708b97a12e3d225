package kinds_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

const killSpec = `{"container":"kube-apiserver","func":"registry.(*Store).DeleteCollection","state":"chan send","inFlight":["restfulDeleteCollection"],` +
	`"heapFunc":"registry.(*Store).DeleteCollection","snapshots":3}`

func TestKilledForMemory(t *testing.T) {
	st := []bundle.Kind{bundle.Statuses}
	snaps := func(n int) []bundle.Kind {
		return append(append([]bundle.Kind{bundle.Statuses}, checktest.Pairs(n)...), checktest.Times(n, bundle.Heap)...)
	}
	killed := func(grown ...int) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(260, "bbb", "aaa", 255, "OOMKilled", 137))
			tr.Grow(checktest.Arm, grown...)
		}
	}
	growth := []int{80, 20, 60, 130, 40, 120, 180, 60, 180, 240, 80, 240}
	checktest.Run(t, []checktest.Question{
		{
			Name: "it grew, and was killed", Fill: killed(growth...), Met: check.True, Evidence: snaps(4), Detail: "[chan send",
			Seen: "kube-apiserver (aaa) ended at 10:04:15 with reason OOMKilled, exit code 137; before it 20 leaked and 60.0 MiB at 10:01:20, 40 leaked and 120.0 MiB at 10:02:10,",
		},
		{
			Name: "seen late, because the API server couldn't say so before", Met: check.True, Evidence: snaps(3), Detail: "chan send", Seen: "exit code 137",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				s := tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(340, "bbb", "aaa", 255, "Error", 137))
				s.Gap(tr.At(250), tr.At(340), "connection refused")
				tr.Grow(checktest.Arm, growth[:9]...)
			},
		},
		{
			Name: "seen to end, and not yet to begin anew", Met: check.True, Evidence: snaps(4), Detail: "chan send", Seen: "ended at 10:04:16 with reason OOMKilled",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				gone := tr.Ran(256, "aaa", 0)
				gone.State, gone.Reason, gone.ExitCode = "terminated", "OOMKilled", 137
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), gone)
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{Name: "two levels are too few", Fill: killed(growth[:6]...), Met: check.Unknown, Seen: "2 of 2 quiet snapshots show growth, and a kill that the leak doesn't explain", Evidence: snaps(2), Detail: "chan send"},
		{Name: "no snapshot", Fill: killed(), Met: check.Unknown, Seen: "before it no snapshot with a heap profile: 0 of 0", Evidence: st},
		{
			Name: "goroutines without memory", Fill: killed(80, 20, 60, 130, 40, 60, 180, 60, 59), Met: check.Unknown, Seen: "1 of 3 quiet snapshots show growth", Evidence: snaps(3), Detail: "chan send",
			Differs: []string{"10:02:10: 40 leaked, but 60.0 MiB retained, no more than before", "60 leaked, but 59.0 MiB"},
		},
		{Name: "memory without goroutines", Fill: killed(80, 20, 60, 130, 20, 120, 180, 20, 180), Met: check.Unknown, Seen: "1 of 3 quiet snapshots show growth", Evidence: snaps(3), Detail: "chan send"},
		{Name: "nothing leaked", Fill: killed(80, 0, 60, 130, 0, 120, 180, 0, 180), Met: check.Unknown, Seen: "1 of 3 quiet snapshots show growth", Evidence: snaps(3)},
		{
			Name: "goroutines that went away were not leaked", Met: check.Unknown, Seen: "goroutines of 10:02:10 were gone by 10:03:00", Detail: "chan send",
			Fill: killed(80, 20, 60, 130, 40, 120, 180, 30, 180), Evidence: append(append([]bundle.Kind{bundle.Statuses}, checktest.Pairs(3)...), checktest.Times(2, bundle.Heap)...),
		},
		{
			Name: "calls in flight are no leak", Met: check.Unknown, Seen: "0 of 0 quiet snapshots", Evidence: append([]bundle.Kind{bundle.Statuses}, checktest.Pairs(3)...),
			Differs: []string{"serve calls in flight", "serve calls in flight", "serve calls in flight"},
			Fill: func(tr *checktest.Trial) {
				killed()(tr)
				for i, second := range []float64{80, 130, 180} {
					s := checktest.Leaks(second, 20*(i+1))
					s.Extra = "handler"
					tr.Shoot(checktest.Arm, s)
					tr.Heap(checktest.Arm, second, int64(60*(i+1)))
				}
			},
		},
		{
			Name: "what grew after the kill is another process's", Fill: killed(80, 20, 60, 130, 40, 120, 270, 60, 180), Met: check.Unknown,
			Seen: "2 of 2 quiet snapshots", Evidence: snaps(2), Detail: "chan send",
		},
		{
			Name: "a heap profile of another occasion", Met: check.Unknown, Seen: "0 of 3 quiet snapshots", Evidence: append([]bundle.Kind{bundle.Statuses}, checktest.Pairs(3)...),
			Differs: []string{"there is no heap profile within 5s of it", "no heap", "no heap"},
			Fill: func(tr *checktest.Trial) {
				killed()(tr)
				for i, second := range []float64{80, 130, 180} {
					tr.Shoot(checktest.Arm, checktest.Leaks(second, 20*(i+1)))
					tr.Heap(checktest.Arm, second+9, int64(60*(i+1)))
				}
			},
		},
		{
			Name: "a cut dump", Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Detail: "chan send", Evidence: snaps(4),
			Fill: func(tr *checktest.Trial) {
				killed(growth...)(tr)
				s := checktest.Leaks(250, 80)
				s.Lacks = "~2"
				tr.Shoot(checktest.Arm, s)
			},
		},
		{
			Name: "ended otherwise", Met: check.False, Seen: "with reason Error, exit code 1: that is no kill for memory", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(260, "bbb", "aaa", 255, "Error", 1))
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "killed twice, and the first end was not seen", Met: check.Unknown, Seen: "was another container at 10:04:20, and how the one before ended was not seen", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(260, "ccc", "bbb", 255, "OOMKilled", 137))
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "an older kill is not of this one", Met: check.False, Seen: "kube-apiserver ran on as bbb", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.After(1, "bbb", "aaa", -30, "OOMKilled", 137))
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "no kill", Met: check.False, Seen: "kube-apiserver ran on as aaa", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0))
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "no kill in a gap either, because it was the same one afterwards", Met: check.False, Seen: "kube-apiserver ran on as aaa", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0)).Gap(tr.At(200), tr.At(230), "connection refused")
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "no kill, as far as was watched", Met: check.Unknown, Code: check.Gap, Seen: "containers.status of vulnerable does not cover", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0)).Gap(tr.At(200), tr.At(394), "connection refused")
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "killed after the phase", Met: check.Unknown, Seen: "that was after the phase: kube-apiserver (aaa) ended at 10:05:00", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(310, "bbb", "aaa", 300, "OOMKilled", 137))
				tr.Grow(checktest.Arm, growth...)
			},
		},
		{
			Name: "another container's kill", Met: check.False, Seen: "kube-apiserver ran on", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				e := tr.After(260, "eee", "ddd", 255, "OOMKilled", 137)
				e.Container, e.Pod = "etcd", "etcd-a"
				tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), e)
			},
		},
		{
			Name: "the other arm's kill", Met: check.Unknown, Seen: "no status of kube-apiserver was recorded by 10:00:40",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Statuses(checktest.Other, 0, 394, tr.Ran(1, "aaa", 0), tr.After(260, "bbb", "aaa", 255, "OOMKilled", 137))
				tr.Grow(checktest.Other, growth...)
			},
		},
		{
			Name: "it didn't run when the phase began", Met: check.Unknown, Seen: "kube-apiserver was waiting at 10:00:40", Evidence: st,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				s := tr.Ran(1, "aaa", 0)
				s.State = "waiting"
				tr.Statuses(checktest.Arm, 0, 394, s, tr.After(260, "bbb", "aaa", 255, "OOMKilled", 137))
			},
		},
		{Name: "one snapshot shows no growth", Spec: `{"snapshots":1}`, Fill: killed(), Met: check.Unknown, Code: check.BadCheck, Seen: "snapshots is 1 (want at least 2"},
		{Name: "no container", Spec: `{"container":""}`, Fill: killed(), Met: check.Unknown, Code: check.BadCheck, Seen: "container is empty"},
		{Name: "no heap function", Spec: `{"heapFunc":""}`, Fill: killed(), Met: check.Unknown, Code: check.BadCheck, Seen: "heapFunc is empty"},
		{Name: "no function", Spec: `{"func":""}`, Fill: killed(), Met: check.Unknown, Code: check.BadCheck, Seen: "func is empty"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "killedForMemory", check.Scope{Arm: checktest.Arm, Phase: check.Fault}, checktest.Over(t, killSpec, q.Spec)
		q.Wanted = "and then a kill of"
	})
	checktest.Run(t, []checktest.Question{{
		Name: "in the baseline it ran on", Fill: killed(growth...), Met: check.False, Seen: "that was after the phase: kube-apiserver (aaa) ended at 10:04:15", Evidence: st,
	}}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec, q.Wanted = "killedForMemory", check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, killSpec, "kill of"
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
		tr := checktest.NewTrial(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		tr.Phases()
		tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "aaa", 0), tr.After(260, "bbb", "aaa", 255, "Error", c.code))
		tr.Grow(checktest.Arm, c.grown...)
		k, err := kinds.Decode[check.Check](kinds.Check, "killedForMemory", json.RawMessage(killSpec))
		tr.Must(err)
		var end time.Time
		if c.end > 0 {
			end = tr.At(float64(c.end))
		}
		if f := k.Eval(tr.W.View(), check.Scope{Arm: checktest.Arm, Phase: check.Fault}); f.Met != c.want || !f.Ended.Equal(end) {
			t.Errorf("with exit code %d after %v: %+v, want %s and the end at %s", c.code, c.grown, f, c.want, end)
		}
	}
}
