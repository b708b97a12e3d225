package goroutine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// find passes a text line by line.
func find(text string) (out []*goroutine.Found) {
	var f goroutine.Finder
	unended := !strings.HasSuffix(text, "\n")
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if d := f.Line([]byte(strings.TrimSuffix(l, "\r"))); d != nil {
			out = append(out, d)
		}
	}
	if d := f.End(unended); d != nil {
		out = append(out, d)
	}
	return out
}

// A dump in the middle of a log is the dump that it is by itself, however it is wrapped.
func TestFindWrapped(t *testing.T) {
	for _, name := range []string{"states.debug1", "states.debug2", "panic.system"} {
		plain := fixture(t, name)
		lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
		for wrap, f := range wraps {
			t.Run(name+"/"+wrap, func(t *testing.T) {
				want := read(t, f(lines))
				got := find("I1121 12:00:00.000000 1 a.go:1] a log\n" + f(lines))
				if len(got) != 1 || got[0].Line < 2 {
					t.Fatalf("found %d dumps: %+v", len(got), got)
				}
				if diff := cmp.Diff(want, got[0].Dump); diff != "" {
					t.Errorf("(-by itself +found):\n%s", diff)
				}
			})
		}
	}
}

func TestFind(t *testing.T) {
	one := func(id int) string {
		return fmt.Sprintf("goroutine %d [chan send, 3 minutes]:\nmain.f()\n\t/a.go:12 +0x1f\n\n", id)
	}
	const profile = "goroutine profile: total 1\n1 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n"
	log := strings.Repeat("I1121 12:00:00.000000 1 a.go:1] a line of a log (here)\n", 300)
	for _, c := range []struct{ name, text, want string }{
		{"none", log, ""},
		{"in the middle of a log", log + one(1) + one(2) + log, "301:2"},
		{"the same process again", one(1) + one(2) + one(1) + one(2), "1:2 9:2"},
		{"two panics", "panic: a\n\n" + one(7) + "panic: b\n\n" + one(8), "3:1 9:1"},
		{"far apart", one(1) + log + one(2), "1:1 305:1"},
		{"both formats", profile + one(1) + profile, "1:1 5:1 9:1"},
		{"cut in a line", one(1) + "goroutine 2 [chan send]:\nmain.f()\n\t/a.g", "1:2 cut"},
		{"cut by a log", one(1) + "goroutine 2 [chan send]:\nmain.f()\n" + log, "1:2 cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range find(c.text) {
				s := fmt.Sprintf("%d:%d", d.Line, d.Total)
				if d.Truncated {
					s += " cut"
				}
				got = append(got, s)
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 5e8, time.UTC)
	sharp := at.Truncate(time.Second)
	local := time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("", 3600)) // of the zone that is passed
	short := local.AddDate(-2026, 0, 0)
	for _, c := range []struct {
		line, text, from string
		at               time.Time
	}{
		{"2026-11-21T12:00:00.5Z stderr F E1121 x", "E1121 x", "", at},
		{"2026-11-21T12:00:00.5Z E1121 x", "E1121 x", "", at},
		{"Nov 21 12:00:00 node-1 kubelet[123]: E1121 x", "E1121 x", "kubelet", short},
		{"Nov 21 12:00:00 node-1 docker/kube-scheduler[123]: E1121 x", "E1121 x", "kube-scheduler", short},
		{"Nov 21 12:00:00 node-1 k8s_kube-scheduler_kube-scheduler-n1_kube-system_0a1b_3[123]: E1121 x", "E1121 x", "kube-scheduler", short},
		{"Nov  1 12:00:00.000 node-1 kubelet: E1101 x", "E1101 x", "kubelet", short.AddDate(0, 0, -20)},
		{"Nov 31 12:00:00 node-1 kubelet: x", "x", "kubelet", time.Time{}},
		{"2026-11-21T12:00:00+0000 node-1 rke2: x", "x", "rke2", sharp},
		{"2026-11-21T11:00:00-0100 node-1 rke2: x", "x", "rke2", sharp},
		{"2026/11/21 12:00:00 x", "x", "", local},
		{"2026-11-21 12:00:00,000 x", "x", "", local},
		{"2026-11-21T12:00:00.500Z\tINFO\tx", "INFO\tx", "", at},
		{`time="2026-11-21T12:00:00Z" level=info msg=x`, `time="2026-11-21T12:00:00Z" level=info msg=x`, "", sharp},
		{"level=INFO ts=2026-11-21T12:00:00.5Z msg=x", "level=INFO ts=2026-11-21T12:00:00.5Z msg=x", "", at},
		{`{"level":"info","ts":1795262400.5,"msg":"x"}`, `{"level":"info","ts":1795262400.5,"msg":"x"}`, "", at},
		{`{"ts":1795262400500.0,"msg":"x"}`, `{"ts":1795262400500.0,"msg":"x"}`, "", at},
		{`{"ts":"2026-11-21T12:00:00.500Z","msg":"x"}`, `{"ts":"2026-11-21T12:00:00.500Z","msg":"x"}`, "", at},
		{"[pod/etcd-n1/etcd] 2026-11-21T12:00:00.5Z x", "x", "etcd", at},
		{"[pod/x] y", "[pod/x] y", "", time.Time{}},
		{`{"MESSAGE":"E1121 x","SYSLOG_IDENTIFIER":"kubelet","__REALTIME_TIMESTAMP":"1795262400500000"}`, "E1121 x", "kubelet", at},
		{`{"log":"E1121 x\n","stream":"stderr","time":"2026-11-21T12:00:00.5Z"}`, "E1121 x", "", at},
		{`{"level":"info","msg":"x"}`, `{"level":"info","msg":"x"}`, "", time.Time{}},
		{"just text", "just text", "", time.Time{}},
	} {
		text, p := goroutine.Plain([]byte(c.line), time.FixedZone("", 3600))
		if zoned := !c.at.IsZero() && c.at.Location() == time.UTC; string(text) != c.text || p.From != c.from || !p.Time.Equal(c.at) || p.Zoned != zoned {
			t.Errorf("%s is %q, %+v; want %q from %q at %s", c.line, text, p, c.text, c.from, c.at)
		}
	}
}

// A dump says whether its last stack may go on, and one that ends in a goroutine's header is cut.
func TestEnds(t *testing.T) {
	const one, creator = "goroutine 1 [select]:\nmain.main()\n\t/a.go:1 +0x1\n", "created by main.f\n\t/a.go:2 +0x1\n"
	two := strings.Replace(one, "goroutine 1", "goroutine 2", 1)
	for _, c := range []struct {
		text      string
		open, cut bool
	}{
		{one, false, false}, {one + "\n" + two, true, false}, {one + "\n" + two + "\n", false, false}, {one + "\n" + two + creator, false, false},
		{one + "\n" + two + "\ta log\n", true, false}, {one + "\ngoroutine 2 [sel\n", false, true}, {one + "\ngoroutine 2\n", false, true}, {one + "\ngorout\n", false, true},
		{one + "\ngoroutine 2 is stuck\n", false, false},
	} {
		all := find(c.text)
		if len(all) != 1 || all[0].Open != c.open || all[0].Truncated != c.cut {
			t.Errorf("%q: %+v, want open %t, cut %t", c.text, all, c.open, c.cut)
		}
	}
}
