package question_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// look is what a look at a process found at a second; 0 is none.
type look struct{ at, pid, restarts int }

// every are looks at one process every two seconds.
func every(pid, from, to int) (out []look) {
	for s := from; s <= to; s += 2 {
		out = append(out, look{at: s, pid: pid})
	}
	return out
}

func TestOneProcess(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks [][]look
		met   check.Truth
		seen  string
	}{
		{"one process", [][]look{every(7, 100, 200)}, check.True, "process 7 started at tick 1007 with 0 restarts in 51 looks"},
		{"one blind look", [][]look{every(7, 100, 150), {{152, 0, 0}}, every(7, 154, 200)}, check.True, "; 1 more found none, which it outlived"},
		{"blind for 20 s", [][]look{every(7, 100, 150), every(0, 152, 172), every(7, 174, 200)}, check.True, "; 11 more found none, which it outlived"},
		{"nobody looked for 40 s", [][]look{every(7, 100, 140), every(7, 180, 200)}, check.True, "in 32 looks"},
		{"looked at near both ends only", [][]look{{{114, 7, 0}, {186, 7, 0}}}, check.True, "in 2 looks"},
		{"looked at before and after only", [][]look{{{70, 7, 0}, {230, 7, 0}}}, check.True, "in 2 looks"},
		{"a count of restarts that changes by itself", [][]look{every(7, 100, 150), {{152, 7, 1}, {154, 7, 0}}, every(7, 156, 200)}, check.True,
			"; the count of restarts went from 0 to 1 at 10:02:32, and the process stayed; the count of restarts went from 1 to 0"},
		{"another process", [][]look{every(7, 100, 150), every(8, 152, 200)}, check.False,
			"process 7 started at tick 1007 with 0 restarts, then process 8 started at tick 1008 with 0 restarts: the process was not the same any more at 10:02:32"},
		{"another process, and the same count of restarts, after a gap", [][]look{every(7, 100, 120), every(8, 190, 200)}, check.False, "any more at 10:03:10"},
		{"another one and the first again, which can't be", [][]look{every(7, 100, 150), {{152, 8, 0}}, every(7, 154, 200)}, check.False, "then process 8"},
		{"gone in the end", [][]look{every(7, 100, 190), every(0, 192, 200)}, check.False, "process 7 started at tick 1007 with 0 restarts, then none at 10:03:12 and after"},
		{"not seen by the last look", [][]look{every(7, 100, 198), {{200, 0, 0}}}, check.Unknown, "but the last look, at 10:03:20, found none"},
		{"not seen by the last look, and there after the end", [][]look{every(7, 100, 198), {{200, 0, 0}, {202, 7, 0}}}, check.True, "; 1 more found none"},
		{"not looked at in the end", [][]look{every(7, 100, 180)}, check.Unknown, "but nobody looked which process it was from 10:03:00.0 to 10:03:20.0"},
		{"not looked at in the end, and there after it", [][]look{every(7, 100, 180), {{260, 7, 0}}}, check.True, "in 42 looks"},
		{"not looked at in the end, and another after it", [][]look{every(7, 100, 180), {{260, 8, 0}}}, check.Unknown, "nobody looked"},
		{"not looked at in the beginning", [][]look{every(7, 120, 200)}, check.Unknown, "but nobody looked which process it was from 10:01:40.0 to 10:02:00.0"},
		{"not looked at in the beginning, and there before it", [][]look{{{60, 7, 0}}, every(7, 120, 200)}, check.True, "in 42 looks"},
		{"none in the beginning", [][]look{every(0, 100, 118), every(7, 120, 200)}, check.Unknown, "from 10:01:40.0 to 10:02:00.0"},
		{"another one before", [][]look{every(8, 60, 98), every(7, 100, 200)}, check.True, "process 7"},
		{"another one after", [][]look{every(7, 100, 200), every(8, 202, 240)}, check.True, "process 7"},
		{"never any", [][]look{every(0, 100, 200)}, check.False, "no process in 51 looks, the first at 10:01:40"},
		{"one look, at none", [][]look{{{150, 0, 0}}}, check.Unknown, "no process at 10:02:30, in the only look"},
		{"no look", [][]look{{}}, check.Unknown, "nobody looked which process it was in 10:01:40.0 to 10:03:20.0"},
		{"no record", nil, check.Unknown, "no identity was recorded for vulnerable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
			if c.looks != nil {
				st := tr.Stream(bundle.Identity, checktest.Arm)
				for _, some := range c.looks {
					for _, l := range some {
						tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(float64(l.at)), PID: l.pid, StartTicks: int64(1000 + l.pid), Restarts: l.restarts}))
					}
				}
			}
			f := question.OneProcess(tr.W.View(), checktest.Arm, bundle.Window{Start: tr.At(100), End: tr.At(200)}, question.MaxIdentityGap)
			if f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s: %s, want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
		})
	}
}

// placed are looks at a process whose arguments are at an address, on a host that randomises; 0 is not known.
type placed struct {
	from, to, pid int
	address       uint64
	plain         bool // the host randomises nothing
}

// A process that replaces itself by execve keeps its id and its start time.
func TestOneProcessByItsArguments(t *testing.T) {
	const here, there = 0x7ffd_1000, 0x7fff_2000
	for _, c := range []struct {
		name  string
		looks []placed
		met   check.Truth
		seen  string
	}{
		{"the same all along", []placed{{100, 200, 7, here, false}}, check.True, "process 7 started at tick 1007 with 0 restarts in 51 looks"},
		{"it replaced itself", []placed{{100, 150, 7, here, false}, {152, 200, 7, there, false}}, check.False,
			"then process 7 started at tick 1007 with 0 restarts, whose arguments are at another address, as after execve: the process was not the same any more at 10:02:32"},
		{"it replaced itself after looks that didn't know", []placed{{100, 120, 7, here, false}, {122, 150, 7, 0, false}, {152, 200, 7, there, false}}, check.False, "any more at 10:02:32"},
		{"some looks didn't know", []placed{{100, 130, 7, here, false}, {132, 150, 7, 0, false}, {152, 200, 7, here, false}}, check.True, "in 51 looks"},
		{"another one", []placed{{100, 150, 7, here, false}, {152, 200, 8, there, false}}, check.False,
			"then process 8 started at tick 1008 with 0 restarts: the process was not the same any more"},
		{"no look knew", []placed{{100, 200, 7, 0, false}}, check.Unknown, "but the address of its arguments could not be read, so that it may have replaced itself by execve"},
		{"none knew in the beginning", []placed{{100, 130, 7, 0, false}, {132, 200, 7, here, false}}, check.Unknown, "but the address of its arguments is not known from 10:01:40.0 to 10:02:12.0"},
		{"none knew in the end", []placed{{100, 150, 7, here, false}, {152, 200, 7, 0, false}}, check.Unknown, "but the address of its arguments is not known from 10:02:30.0 to 10:03:20.0"},
		{"the host gives everyone the same addresses", []placed{{100, 200, 7, here, true}}, check.Unknown, "but its host has no address randomisation, or it is not known"},
		{"it replaced itself before", []placed{{60, 98, 7, here, false}, {100, 200, 7, there, false}}, check.True, "in 51 looks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
			st := tr.Stream(bundle.Identity, checktest.Arm)
			for _, l := range c.looks {
				args := bundle.Arguments{Address: l.address, Randomize: 2}
				if l.plain {
					args.Randomize = 0
				}
				for s := l.from; s <= l.to; s += 2 {
					tr.Must(st.JSON(bundle.IdentitySample{Time: tr.At(float64(s)), PID: l.pid, StartTicks: int64(1000 + l.pid), Arguments: &args}))
				}
			}
			f := question.OneProcess(tr.W.View(), checktest.Arm, bundle.Window{Start: tr.At(100), End: tr.At(200)}, question.MaxIdentityGap)
			if f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s: %s, want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
		})
	}
}
