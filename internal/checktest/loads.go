package checktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Called records what a load says of itself: a round at each second, of 20 calls, with so many answers of each code.
func Called(name string, codes map[string]int, rounds ...float64) func(*Trial) {
	return func(tr *Trial) {
		var calls []bundle.Call
		for _, text := range slices.Sorted(maps.Keys(codes)) {
			code, _ := strconv.Atoi(text) // none is 0
			calls = append(calls, slices.Repeat([]bundle.Call{{Code: code}}, codes[text])...)
		}
		sum := bundle.Load{Name: name, Objects: 1, Codes: codes}
		for i, s := range rounds {
			sum.Rounds = append(
				sum.Rounds,
				bundle.LoadRound{Round: i + 1, Start: tr.At(s), Calls: 20},
			)
		}
		tr.Calls(sum, calls...)
	}
}

// Calls records the phases, a load's calls and its summary. Each call of a record begins at a second: Done is the time
// that it takes, from the beginning of the trial.
func (tr *Trial) Calls(sum bundle.Load, calls ...bundle.Call) {
	tr.T.Helper()
	tr.Phases()
	st := tr.Stream(bundle.Calls, Arm)
	for i, one := range calls {
		one.Load, one.Round = sum.Name, 1
		if took := one.Done.Sub(tr.Start); !one.Done.IsZero() {
			one.Time = tr.At(100 + float64(i))
			one.Done = one.Time.Add(took)
		}
		tr.Must(st.JSON(one))
	}
	_, err := tr.W.WriteJSON(
		bundle.Meta{Kind: bundle.LoadSummary, Arm: Arm, Time: tr.At(280)},
		sum,
	)
	tr.Must(err)
}

// Cut is a round of a load that began 5 s into the fault: calls open, deleting and failed, and how many objects it
// left; -1 is unknown.
func Cut(open, deleting, failed, left int) string {
	of := fmt.Sprintf(`"open":%d,"deleting":%d,"failed":%d`, open, deleting, failed)
	if left >= 0 {
		of += fmt.Sprintf(`,"left":%d`, left)
	}
	return `{"round":1,"start":"2026-03-01T10:00:45Z","began":"2026-03-01T10:00:47Z","calls":20,"cut":{` + of + `}}`
}

// Succeeded is a round of which so many calls, all of which deleted, were answered with success, and all others with a
// failure; -1 objects left is unknown.
func Succeeded(calls, failed, left int) string {
	of := fmt.Sprintf(`"open":20,"deleting":20,"failed":%d,"succeeded":%d`, failed, calls)
	if left >= 0 {
		of += fmt.Sprintf(`,"left":%d`, left)
	}
	return fmt.Sprintf(
		`{"round":1,"start":"2026-03-01T10:00:45Z","calls":20,"codes":{"200":%d,"504":%d},"cut":{%s}}`,
		calls,
		failed,
		of,
	)
}

// LoadedWith records a load's summary with its rounds, of 1000 objects.
func (tr *Trial) LoadedWith(arm, name string, rounds ...string) {
	tr.T.Helper()
	_, err := tr.W.Write(
		bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: tr.At(280)},
		"json",
		strings.NewReader(
			fmt.Sprintf(
				`{"name":%q,"objects":1000,"rounds":[%s]}`,
				name,
				strings.Join(rounds, ","),
			),
		),
	)
	tr.Must(err)
}

// WorkProbe writes a probe's record: each step takes a second, and the last of a probe that isn't done was never seen.
func (tr *Trial) WorkProbe(arm string, seconds float64, p bundle.ProbeRecord, steps ...string) {
	tr.T.Helper()
	p.Work, p.Start, p.End = "a pod on worker", tr.At(seconds), tr.At(seconds+float64(len(steps)))
	if p.Name == "" {
		p.Name = "pod"
	}
	for i, s := range steps {
		st := bundle.ProbeStep{Try: 1, Step: s, Asked: tr.At(seconds + float64(i))}
		if rest, again := strings.CutPrefix(s, "again "); again {
			st.Try, st.Step = 2, rest
		}
		if i < len(steps)-1 || p.Ended == bundle.ProbeDone {
			st.Seen = tr.At(seconds + float64(i) + 1)
		}
		p.Steps = append(p.Steps, st)
	}
	_, err := tr.W.WriteJSON(bundle.Meta{Kind: bundle.WorkProbe, Arm: arm, Time: p.Start}, p)
	tr.Must(err)
}

// Answered writes a health endpoint's answers every two seconds of from..to, each after half a second.
func (tr *Trial) Answered(st *bundle.Stream, path string, from, to float64, code int) {
	tr.T.Helper()
	for s := from; s <= to; s += 2 {
		one := bundle.HealthSample{Time: tr.At(s), Done: tr.At(s + 0.5), Path: path, Code: code}
		switch code {
		case 0:
			one.Text = "timeout"
		case 200:
		default:
			one.Text = "etcd not ready"
		}
		tr.Must(st.JSON(one))
	}
}

// Probed writes a probe of etcd every two seconds of from..to, each taking half a second.
func (tr *Trial) Probed(st *bundle.Stream, from, to float64, p control.ConnectionProbe) {
	tr.T.Helper()
	for s := from; s <= to; s += 2 {
		p.At = tr.At(s)
		tr.Must(st.JSON(bundle.Stamped[control.ConnectionProbe]{Time: tr.At(s + 0.5), Value: p}))
	}
}
