package check_test

import (
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// called records what a load says of itself: a round at each second, of 20 calls.
func called(name string, codes map[string]int, rounds ...float64) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		sum := bundle.Load{Name: name, Objects: 1, Codes: codes}
		for i, s := range rounds {
			sum.Rounds = append(sum.Rounds, bundle.LoadRound{Round: i + 1, Start: tr.at(s), Calls: 20})
		}
		_, err := tr.w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.at(280)}, sum)
		tr.must(err)
	}
}

// cut is a round of a load that began 5 s into the fault: calls open, deleting and failed, and how many objects it left; -1 is unknown.
func cut(open, deleting, failed, left int) string {
	of := fmt.Sprintf(`"open":%d,"deleting":%d,"failed":%d`, open, deleting, failed)
	if left >= 0 {
		of += fmt.Sprintf(`,"left":%d`, left)
	}
	return `{"round":1,"start":"2026-03-01T10:00:45Z","began":"2026-03-01T10:00:47Z","calls":20,"cut":{` + of + `}}`
}

// succeeded is a round of which so many calls, all of which deleted, were answered with success, and all others with a
// failure; -1 objects left is unknown.
func succeeded(calls, failed, left int) string {
	of := fmt.Sprintf(`"open":20,"deleting":20,"failed":%d,"succeeded":%d`, failed, calls)
	if left >= 0 {
		of += fmt.Sprintf(`,"left":%d`, left)
	}
	return fmt.Sprintf(`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20,"codes":{"200":%d,"504":%d},"cut":{%s}}`, calls, failed, of)
}

// loadedWith records a load's summary with its rounds, of 1000 objects.
func (tr *trial) loadedWith(arm, name string, rounds ...string) {
	tr.t.Helper()
	_, err := tr.w.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.at(280)}, "json",
		strings.NewReader(fmt.Sprintf(`{"name":%q,"objects":1000,"rounds":[%s]}`, name, strings.Join(rounds, ","))))
	tr.must(err)
}

// workProbe writes a probe's record: each step takes a second, and the last of a probe that isn't done was never seen.
func (tr *trial) workProbe(arm string, seconds float64, p bundle.ProbeRecord, steps ...string) {
	tr.t.Helper()
	p.Work, p.Start, p.End = "a pod on worker", tr.at(seconds), tr.at(seconds+float64(len(steps)))
	if p.Name == "" {
		p.Name = "pod"
	}
	for i, s := range steps {
		st := bundle.ProbeStep{Try: 1, Step: s, Asked: tr.at(seconds + float64(i))}
		if rest, again := strings.CutPrefix(s, "again "); again {
			st.Try, st.Step = 2, rest
		}
		if i < len(steps)-1 || p.Ended == bundle.ProbeDone {
			st.Seen = tr.at(seconds + float64(i) + 1)
		}
		p.Steps = append(p.Steps, st)
	}
	_, err := tr.w.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Arm: arm, Time: p.Start}, p)
	tr.must(err)
}

// answered writes a health endpoint's answers every two seconds of from..to, each after half a second.
func (tr *trial) answered(st *bundle.Stream, path string, from, to float64, code int) {
	tr.t.Helper()
	for s := from; s <= to; s += 2 {
		one := bundle.HealthSample{Time: tr.at(s), Done: tr.at(s + 0.5), Path: path, Code: code}
		switch code {
		case 0:
			one.Text = "timeout"
		case 200:
		default:
			one.Text = "etcd not ready"
		}
		tr.must(st.JSON(one))
	}
}

// probed writes a probe of etcd every two seconds of from..to, each taking half a second.
func (tr *trial) probed(st *bundle.Stream, from, to float64, p control.EtcdProbe) {
	tr.t.Helper()
	for s := from; s <= to; s += 2 {
		p.At = tr.at(s)
		tr.must(st.JSON(bundle.Stamped[control.EtcdProbe]{Time: tr.at(s + 0.5), Value: p}))
	}
}
