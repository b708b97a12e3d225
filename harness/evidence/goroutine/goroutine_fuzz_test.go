package goroutine_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// FuzzRead holds Read to its contract on any input: it doesn't panic, gives the same each time, its counts add up, and
// what it read can be written and read again.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"states.debug1", "states.debug2", "panic.system", "panic.ancestors"} {
		plain := fixture(f, name)
		f.Add([]byte(plain))
		lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
		for _, wrap := range wraps {
			f.Add([]byte(wrap(lines[:min(len(lines), 12)])))
		}
	}
	f.Add([]byte("goroutine profile: total 1\n1 @ 0x4\n#\t0x4\r\t\n")) // an address alone, and not at the end of its line
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := goroutine.Read(bytes.NewReader(in))
		again, err2 := goroutine.Read(bytes.NewReader(in))
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(d, again) {
			t.Fatalf("read twice: %v, %v\n%s", err, err2, cmp.Diff(d, again))
		}
		if err != nil {
			return
		}
		switch n := counted(d); {
		case d.Format == goroutine.Stacks && (n != d.Total || n == 0):
			t.Errorf("%d goroutines in groups, %d in all", n, d.Total)
		case d.Format == goroutine.Profile && n != d.Total && !d.Truncated:
			t.Errorf("counted %d of %d, and not truncated", n, d.Total)
		}
		for _, g := range d.Groups {
			if d.Format == goroutine.Stacks && len(g.IDs) != g.Count || g.Locked > g.Count || g.MinWait > g.MaxWait {
				t.Errorf("an impossible group: %+v", g)
			}
		}
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
		back, err := goroutine.Read(&b)
		if err != nil {
			t.Fatalf("reading what was written: %v", err)
		}
		if !reflect.DeepEqual(d.Groups, back.Groups) || d.Total != back.Total {
			t.Errorf("written and read again (-first +second):\n%s", cmp.Diff(d, back))
		}
	})
}

func FuzzRaces(f *testing.F) {
	f.Add("==================\nWARNING: DATA RACE\nWrite at 0x00c0 by goroutine 9:\n  runtime.mapassign()\n      internal/runtime/maps/map.go:2 +0x0\n\n" +
		"Previous read at 0x00c0 by main goroutine:\n  main.main()\n      main.go:9 +0xc4\n\nGoroutine 9 (running) created at:\n  main.main()\n      main.go:8 +0x9e\n==================\n")
	f.Fuzz(func(t *testing.T, in string) {
		lines := strings.Split(in, "\n")
		races, _ := goroutine.Races(lines)
		for i, r := range races {
			if r.First < 0 || r.First >= len(lines) || i > 0 && r.First <= races[i-1].First || len(r.Sides) != 2 {
				t.Errorf("an impossible race: %+v", r)
			}
			for _, s := range r.Sides {
				if len(s.Frames) == 0 || !s.Has(s.Frames[0].Func) && strings.Contains(s.Frames[0].Func, ".") && goroutine.Declared(s.Frames[0].Func) == s.Frames[0].Func {
					t.Errorf("a side that has not its own first function: %+v", s)
				}
			}
		}
	})
}

func FuzzRecoveries(f *testing.F) {
	f.Add(strings.Join(recoveredLog(f), "\n"))
	f.Add(plainRecovery)
	f.Add(printed + "I1125 on")
	f.Add(inJSON)
	f.Fuzz(func(t *testing.T, in string) {
		lines := strings.Split(in, "\n")
		found, _ := goroutine.Recoveries(lines)
		for i, r := range found {
			if r.First < 0 || r.First >= len(lines) || i > 0 && r.First <= found[i-1].First || !strings.Contains(lines[r.First], "goroutine ") || len(r.At().Frames) >= len(r.Frames) {
				t.Errorf("an impossible panic: %+v", r)
			}
		}
	})
}
