package question_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

var errTorn = errors.New("torn")

// kill is a fault that ended a process at a second; the component had 30 s to be ready again.
type kill struct {
	at, pid, restarts int
	asked             bool // the supervisor was asked for another one, and doesn't count it
}

// counted are looks at one process every two seconds, with a count of restarts.
func counted(pid, restarts, from, to int) []look {
	out := every(pid, from, to)
	for i := range out {
		out[i].restarts = restarts
	}
	return out
}

func TestAsPlanned(t *testing.T) {
	one := []kill{{at: 150, pid: 7}}
	for _, c := range []struct {
		name  string
		ends  []kill
		looks [][]look
		met   check.Truth
		code  check.Code
		seen  string
		parts []int // where each part of the window begins and ends
	}{
		{"nothing ended", nil, [][]look{every(7, 100, 200)}, check.True, "", "process 7 started at tick 1007", []int{100, 200}},
		{"another process, though nothing ended the first", nil, [][]look{every(7, 100, 150), every(8, 152, 200)}, check.False, "", "then process 8", []int{100, 200}},
		{"killed", one, [][]look{every(7, 100, 148), every(0, 152, 158), counted(8, 1, 160, 200)}, check.True, "",
			"in 26 looks; kill ended process 7 at 10:02:30; process 8 started at tick 1008 with 1 restarts in 21 looks", []int{100, 150, 160, 200}},
		{"restarted", []kill{{150, 7, 0, true}}, [][]look{every(7, 100, 156), every(8, 160, 200)}, check.True, "", "kill ended process 7", []int{100, 150, 160, 200}},
		{"restarted, and counted from 0 again", []kill{{150, 7, 3, true}}, [][]look{counted(7, 3, 100, 150), every(8, 160, 200)}, check.True, "", "", []int{100, 150, 160, 200}},
		{"killed twice", []kill{{130, 7, 0, false}, {170, 8, 1, false}}, [][]look{every(7, 100, 130), counted(8, 1, 132, 170), counted(9, 2, 172, 200)},
			check.True, "", "kill ended process 8 at 10:02:50; process 9", []int{100, 130, 132, 170, 172, 200}},
		{"the second kill came before a look", []kill{{130, 7, 0, false}, {132, 8, 1, false}}, [][]look{every(7, 100, 130), counted(9, 2, 134, 200)},
			check.True, "", "kill ended process 8", []int{100, 130, 132, 132, 134, 200}},
		{"the first kill failed", []kill{{130, 7, 0, false}, {150, 7, 0, false}}, [][]look{every(7, 100, 150), counted(8, 1, 152, 200)},
			check.True, "", "kill ended process 7 at 10:02:30", []int{100, 150, 152, 200}},
		{"it ended again, of itself", one, [][]look{every(7, 100, 148), counted(8, 1, 152, 170), counted(9, 2, 172, 200)}, check.False, "",
			"then process 9 started at tick 1009 with 2 restarts: the process was not the same any more at 10:02:52", []int{100, 150, 152, 200}},
		{"it had ended before, of itself", []kill{{150, 8, 1, false}}, [][]look{every(7, 100, 130), counted(8, 1, 132, 150), counted(9, 2, 152, 200)}, check.False, "",
			"then process 8", []int{100, 150, 152, 200}},
		{"it had ended just before, which only the fault saw", []kill{{150, 8, 1, false}}, [][]look{every(7, 100, 148), counted(9, 2, 152, 200)}, check.False, "",
			"then process 8", []int{100, 150, 152, 200}},
		{"one more in between, by the count", one, [][]look{every(7, 100, 148), counted(9, 2, 160, 200)}, check.Unknown, check.OtherProcess,
			"the count of restarts went from 0 to 2, so that there may have been another process in between", []int{100, 150, 160, 200}},
		{"one more in between, by the count of a restart", []kill{{150, 7, 0, true}}, [][]look{every(7, 100, 148), counted(9, 1, 160, 200)}, check.Unknown, check.OtherProcess,
			"the count of restarts went from 0 to 1", []int{100, 150, 160, 200}},
		{"one more in between, in a count that began again", []kill{{150, 7, 1, true}}, [][]look{counted(7, 1, 100, 148), counted(9, 1, 160, 200)}, check.Unknown, check.OtherProcess,
			"the count of restarts went from 1 to 1", []int{100, 150, 160, 200}},
		{"gone for good", one, [][]look{every(7, 100, 148), every(0, 152, 200)}, check.False, "",
			"kill ended process 7 at 10:02:30, and nobody has seen another one since, though it had 30s", []int{100, 150}},
		{"not there yet", []kill{{180, 7, 0, false}}, [][]look{every(7, 100, 178), every(0, 182, 200)}, check.Unknown, check.TooShort,
			"kill ended process 7 at 10:03:00, and nobody has seen another one since", []int{100, 180}},
		{"there after the window", []kill{{180, 7, 0, false}}, [][]look{every(7, 100, 178), every(0, 182, 200), counted(8, 1, 202, 220)}, check.Unknown, check.TooShort,
			"nobody has seen another one", []int{100, 180}},
		{"ended before the window", []kill{{60, 6, 0, false}}, [][]look{every(7, 70, 200)}, check.True, "", "process 7", []int{100, 200}},
		{"nobody looked in the end", one, [][]look{every(7, 100, 148), counted(8, 1, 152, 170)}, check.Unknown, check.Gap, "nobody looked which process it was from 10:02:50", []int{100, 150, 152, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
			st := tr.Stream(bundle.Identity, checktest.Arm)
			for _, l := range slices.Concat(c.looks...) {
				tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(float64(l.at)), PID: l.pid, StartTicks: int64(1000 + l.pid), Restarts: l.restarts}))
			}
			for _, e := range c.ends {
				record(t, tr, e, "")
			}
			w := bundle.Window{Start: tr.At(100), End: tr.At(200)}
			f, parts := question.AsPlanned(tr.W.View(), checktest.Arm, w, question.MaxIdentityGap)
			if f.Met != c.met || f.Code != c.code || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s (%s): %s, want %s (%s): %s", f.Met, f.Code, f.Seen, c.met, c.code, c.seen)
			}
			var got []int
			for _, p := range parts {
				got = append(got, int(p.Start.Sub(tr.At(0)).Seconds()), int(p.End.Sub(tr.At(0)).Seconds()))
			}
			if !slices.Equal(got, c.parts) {
				t.Errorf("its parts are %v, want %v", got, c.parts)
			}
		})
	}
}

// record writes down a kill, of the component whose process is recorded or of another one.
func record(t *testing.T, tr *checktest.Trial, e kill, component string) {
	t.Helper()
	of := tr.W.View().Artifacts(bundle.Query{Kind: bundle.Identity, Arm: checktest.Arm})[0]
	if component == "" {
		component = of.Component
	}
	_, err := tr.W.WriteJSON(bundle.Meta{Kind: bundle.EndedProcess, Arm: checktest.Arm, Node: of.Node, Component: component, Time: tr.At(float64(e.at))},
		bundle.EndedByFault{Time: tr.At(float64(e.at)), Fault: "kill", PID: e.pid, StartTicks: int64(1000 + e.pid), Restarts: e.restarts, Counted: !e.asked, ReadySeconds: 30})
	tr.Must(err)
}

// A record that can't be read may explain a change, and one of another component doesn't.
func TestAsPlannedByOtherRecords(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(*checktest.Trial)
		met  check.Truth
		code check.Code
		seen string
	}{
		{"another component's", func(tr *checktest.Trial) { record(t, tr, kill{at: 150, pid: 7}, "another") }, check.False, "", "then process 8"},
		{"one that was withdrawn", func(tr *checktest.Trial) {
			record(t, tr, kill{at: 150, pid: 7}, "")
			of := tr.W.View().Artifacts(bundle.Query{Kind: bundle.EndedProcess, Arm: checktest.Arm})[0].Meta
			of.Time = tr.At(151)
			_, err := tr.W.WriteJSON(of, bundle.EndedByFault{Time: of.Time, Fault: "kill", PID: 7, StartTicks: 1007, Withdrawn: true})
			tr.Must(err)
		}, check.False, "", "then process 8"},
		{"a capture that failed", func(tr *checktest.Trial) {
			of := tr.W.View().Artifacts(bundle.Query{Kind: bundle.Identity, Arm: checktest.Arm})[0]
			of.Kind = bundle.EndedProcess
			tr.W.Fail(of.Meta, errTorn)
		}, check.Unknown, check.Unreadable, "process.ended of vulnerable: the capture failed: torn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
			st := tr.Stream(bundle.Identity, checktest.Arm)
			for _, l := range slices.Concat(every(7, 100, 148), counted(8, 1, 152, 200)) {
				tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(float64(l.at)), PID: l.pid, StartTicks: int64(1000 + l.pid), Restarts: l.restarts}))
			}
			c.put(tr)
			f, _ := question.AsPlanned(tr.W.View(), checktest.Arm, bundle.Window{Start: tr.At(100), End: tr.At(200)}, question.MaxIdentityGap)
			if f.Met != c.met || f.Code != c.code || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s (%s): %s, want %s (%s): %s", f.Met, f.Code, f.Seen, c.met, c.code, c.seen)
			}
		})
	}
}
