package goroutine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// wraps are the ways in which a log may hold a dump. Each takes the plain dump's lines, without their ends.
var wraps = map[string]func(lines []string) string{
	"CRLF": each(func(l string) string { return l + "\r\n" }),
	"noise": func(lines []string) string {
		return "panic: boom\n\n" + strings.Join(lines, "\n") + "\nexit status 2\n"
	},
	"CRI": each(func(l string) string {
		return "2026-11-21T12:00:00.12345678Z stderr F " + l + "\n"
	}),
	"CRI in parts, amid stdout": each(func(l string) string {
		const t = "2026-11-21T12:00:00.12345678+01:00 "
		n := len(l) / 2
		if strings.HasPrefix(l, "goroutine ") { // too short to be parted, in truth
			return t + "stderr F " + l + "\n" + t + "stdout F goroutine 1 [of another stream]:\n"
		}
		return t + "stderr P " + l[:n] + "\n" + t + "stdout P half\n" + t + "stderr F " + l[n:] + "\n" + t + "stdout F \n"
	}),
	"docker": each(func(l string) string {
		return docker(l+"\n", "stderr") + docker("\n", "stdout")
	}),
	"docker in parts": each(func(l string) string {
		if strings.HasPrefix(l, "goroutine ") {
			return docker(l+"\n", "stderr")
		}
		return docker(l[:len(l)/3], "stderr") + docker(l[len(l)/3:]+"\r\n", "stderr")
	}),
	"timestamps":     each(func(l string) string { return "2026-11-21T12:00:00.123Z " + l + "\n" }),
	"trimmed":        each(func(l string) string { return strings.TrimRight("2026-11-21T12:00:00Z "+l, " ") + "\n" }),
	"Go's log":       each(func(l string) string { return "2026/11/21 12:00:00.000001 " + l + "\n" }),
	"journal, short": each(func(l string) string { return "Nov 21 12:00:00 node-1 kubelet[123]: " + l + "\n" }),
	"journal, short-iso": each(func(l string) string {
		return "2026-11-21T12:00:00+0000 node-1 kubelet[123]: " + l + "\n"
	}),
	"journal, json": each(func(l string) string { return object("MESSAGE", l, "_PID", "1") }),
	"journal, json bytes": each(func(l string) string {
		nums := make([]int, len(l))
		for i := range len(l) {
			nums[i] = int(l[i])
		}
		return object("MESSAGE", nums)
	}),
	"klog, each line": each(func(l string) string { return "E1121 12:00:00.123456    1234 a.go:12] " + l + "\n" }),
	"klog, one message": func(lines []string) string {
		return "E1121 12:00:00.123456    1234 a.go:12] " + strings.Join(lines, "\n") + "\n"
	},
	"klog in CRI in timestamps": each(func(l string) string {
		return "2026-11-21T12:00:00.1Z 2026-11-21T12:00:00Z stderr F E1121 12:00:00.123456 1 a.go:12] " + l + "\n"
	}),
	"one JSON field": func(lines []string) string {
		return object("level", "error", "msg", "goroutine trouble", "stack", "panic: boom\n\n"+strings.Join(lines, "\n")+"\n")
	},
	"one JSON field in CRI": func(lines []string) string {
		return "2026-11-21T12:00:00.1Z stderr F " + object("stack", strings.Join(lines, "\n")+"\n")
	},
}

func each(f func(string) string) func([]string) string {
	return func(lines []string) string {
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(f(l))
		}
		return b.String()
	}
}

func object(kv ...any) string {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func docker(log, stream string) string {
	return object("log", log, "stream", stream, "time", "2026-11-21T12:00:00.1Z")
}

func TestWrapped(t *testing.T) {
	for _, name := range []string{"states.debug1", "states.debug2", "panic.system", "panic.ancestors"} {
		plain := fixture(t, name)
		want := read(t, plain)
		lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
		for wrap, f := range wraps {
			t.Run(name+"/"+wrap, func(t *testing.T) {
				if diff := cmp.Diff(want, read(t, f(lines))); diff != "" {
					t.Errorf("(-plain +wrapped):\n%s", diff)
				}
			})
		}
	}
}

func TestNoDump(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `no goroutine dump: empty input; expected "goroutine profile: total N" (debug=1) or "goroutine N [state]:" (debug=2)`},
		{"an HTTP error", "Unauthorized\n", `no goroutine dump in 1 lines: line 1 is "Unauthorized"; expected `},
		{"debug=0", "\x1f\x8b\x08\x00\n", `no goroutine dump: line 1 starts with gzip's magic, as debug=0 does; expected `},
		{"one line that is too long", object("stack", "goroutine 1 [running]:\n"+strings.Repeat("x", 1<<20)),
			`no goroutine dump in 1 lines, of which some are over 1048576 bytes and were cut: line 1 is "{\"stack\"`},
		{"two profiles", "goroutine profile: total 0\n\ngoroutine profile: total 0\n",
			`line 3: another goroutine dump begins; expected one dump in the input`},
		{"both formats", "x\ngoroutine profile: total 0\n\ngoroutine 1 [running]:\n",
			`line 4: another goroutine dump begins; expected one dump in the input`},
		{"both formats, the other way", "goroutine 1 [running]:\nmain.main()\n\t/a.go:1\n\ngoroutine profile: total 0\n",
			`line 5: another goroutine dump begins; expected one dump in the input`},
		{"a header of another kind", "goroutine profiles\ngoroutine x [y]:\ngoroutine 1[y]:\ngoroutine 1 []:\ngoroutine 1 foo [y]:\n",
			`no goroutine dump in 5 lines: line 1 is "goroutine profiles"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := goroutine.Read(strings.NewReader(c.text))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || d != nil {
				t.Errorf("got %+v, %v; want the error %q", d, err, c.want)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	const frame = "main.f(0x1)\n\t/a.go:12 +0x1f\n"
	for _, c := range []struct {
		name, text string
		want       bool
		count      int
	}{
		{"whole", "goroutine 1 [running]:\n" + frame, false, 1},
		{"whole, two", "goroutine 1 [running]:\n" + frame + "\ngoroutine 2 [select]:\n" + frame + "created by main.g in goroutine 1\n\t/a.go:3 +0x1\n", false, 2},
		{"on another thread", "goroutine 1 [running]:\n\tgoroutine running on other thread; stack unavailable\n", false, 1},
		{"after a function", "goroutine 1 [running]:\n" + frame + "main.g()\n", true, 1},
		{"after a header", "goroutine 1 [running]:\n" + frame + "\ngoroutine 2 [select]:\n", true, 2},
		{"after created by", "goroutine 1 [running]:\n" + frame + "created by main.g in goroutine 1\n", true, 1},
		{"in a line", "goroutine 1 [running]:\n" + frame + "main.g()\n\t/a.go:1", true, 1},
		{"in a header", "goroutine 1 [running]:\n" + frame + "\ngoroutine 2 [sel", true, 1},
		{"in a part of a CRI line", "2026-11-21T12:00:00Z stderr F goroutine 1 [running]:\n2026-11-21T12:00:00Z stderr F main.f()\n" +
			"2026-11-21T12:00:00Z stderr P \t/a.go:12 +\n", true, 1},
		{"profile, whole", "goroutine profile: total 3\n3 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n", false, 3},
		{"profile, fewer than its total", "goroutine profile: total 4\n3 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n", true, 3},
		{"profile, more than its total", "goroutine profile: total 2\n3 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n", true, 3},
		{"profile, without a stack", "goroutine profile: total 3\n3 @ 0x1\n", true, 3},
		{"profile, a goroutine that has not run yet", "goroutine profile: total 3\n3 @ 0x1\n\n", false, 3},
		{"profile, header only", "goroutine profile: total 3\n", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := read(t, c.text); d.Truncated != c.want || counted(d) != c.count {
				t.Errorf("truncated %t, counted %d; want %t, %d", d.Truncated, counted(d), c.want, c.count)
			}
		})
	}
}

func TestRuntimeLimit(t *testing.T) {
	const limit = 64 << 20
	one := "goroutine 7 [select]:\nmain.f()\n\t/a.go:12 +0x1f\n\n"
	text := strings.Repeat(one, limit/len(one)-1)
	last := limit - len(text) // the last goroutine's path fills what is left
	text += one[:len(one)-1]
	text = text[:len(text)-len("/a.go:12 +0x1f\n")] + "/" + strings.Repeat("a", last-len(one)) + "/a.go:12 +0x1f\n"
	for extra, want := range map[string]bool{"": true, "\n": false} {
		if d := read(t, text+extra); d.Truncated != want {
			t.Errorf("%d bytes: truncated %t; want %t", len(text+extra), d.Truncated, want)
		}
	}
	if len(text) != limit {
		t.Errorf("the test's dump has %d bytes; want %d", len(text), limit)
	}
}

func TestWaitsAndMarks(t *testing.T) {
	text := ""
	for i, in := range []string{"chan send", "chan send, 2 minutes", "chan send (scan), 58 minutes, locked to thread", "chan send (leaked) (durable)"} {
		text += fmt.Sprintf("goroutine %d gp=0xc%d m=nil [%s]:\nk8s.io/a/pleg.(*G[...]).Relist({0x1, 0x%d}, ...)\n\t/a b:3/x.go:12 +0x%d fp=0x1 sp=0x2 pc=0x3\n"+
			"W1121 some other line (here)\n...2 frames elided...\nnon-Go function at pc=0x%d\ncreated by a.f in goroutine %d\n\t/a.go:1 +0x1\n\n", i, i, in, i, i, i, i)
	}
	want := &goroutine.Dump{Format: goroutine.Stacks, Total: 4, Groups: []goroutine.Group{{
		State: "chan send", Count: 4, IDs: []uint64{0, 1, 2, 3}, MaxWait: 58 * 60e9, Locked: 1,
		Frames: []goroutine.Frame{{Func: "k8s.io/a/pleg.(*G[...]).Relist", File: "/a b:3/x.go", Line: 12},
			{Func: "...2 frames elided..."}, {Func: "non-Go function"}},
		CreatedBy: "a.f", CreatedAt: goroutine.Frame{File: "/a.go", Line: 1},
	}}}
	d := read(t, text)
	if diff := cmp.Diff(want, d); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	if err := d.Groups[0].Write(&b); err != nil {
		t.Fatal(err)
	}
	const shown = "# 4 goroutines, waiting 0 to 58 minutes: 0 1 2 3\ngoroutine 0 [chan send, 58 minutes, locked to thread]:\n" +
		"k8s.io/a/pleg.(*G[...]).Relist(...)\n\t/a b:3/x.go:12\n...2 frames elided...\nnon-Go function\ncreated by a.f\n\t/a.go:1\n"
	if diff := cmp.Diff(shown, b.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestMatch(t *testing.T) {
	d := read(t, "goroutine 1 [select]:\nruntime.gopark()\n\t/p.go:1\nk8s.io/k/pkg/kubelet/pleg.(*GenericPLEG).Relist(0x1)\n\t/a.go:12 +0x1f\n")
	for _, c := range []struct {
		m    goroutine.Match
		want int
	}{
		{goroutine.Match{}, 1},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist"}, 1},
		{goroutine.Match{Func: "kubelet/pleg.(*GenericPLEG).Relist"}, 1},
		{goroutine.Match{Func: "k8s.io/k/pkg/kubelet/pleg.(*GenericPLEG).Relist"}, 1},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).relist"}, 0},
		{goroutine.Match{Func: "PLEG.(*GenericPLEG).relist", FoldCase: true}, 1},
		{goroutine.Match{Func: "eg.(*GenericPLEG).Relist"}, 0},
		{goroutine.Match{Func: "Relist"}, 0},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist.func1"}, 0},
		{goroutine.Match{Func: "pleg.(*GenericPLEG)"}, 0},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist", State: "select"}, 1},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist", State: "chan send"}, 0},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist", Depth: 1}, 0},
		{goroutine.Match{Func: "pleg.(*GenericPLEG).Relist", Depth: 9}, 1},
	} {
		if got := d.Count(c.m); got != c.want || len(d.Find(c.m)) != c.want {
			t.Errorf("%+v chooses %d; want %d", c.m, got, c.want)
		}
	}
}

func TestMatchClosures(t *testing.T) {
	const store = "k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection"
	for name, want := range map[string]bool{
		store: true, store + ".func1": true, store + ".func2.1": true, store + ".func3.gowrap1": true, store + ".gowrap2": true, store + ".deferwrap1": true,
		store + "-range1": true, store + ".func1-range1": true, store + "-fm": true,
		store + "Now": false, store + "Now.func1": false, store + ".function": false,
		"k8s.io/apiserver/pkg/registry.func1/registry.(*Store).DeleteCollection.func1":      true, // an import path is no closure
		"k8s.io/apiserver/pkg/registry/generic/registry.(*Store).Delete.func1":              false,
		"k8s.io/apiserver/pkg/endpoints/handlers.DeleteCollection.func1.1":                  false,
		"k8s.io/apiserver/pkg/registry/generic/registry.(*DryRunnableStorage).Delete.func1": false,
	} {
		d := read(t, "goroutine 7 [chan send]:\n"+name+"(0x1)\n\t/store.go:1132 +0x1f\n")
		m := goroutine.Match{Func: "registry.(*Store).DeleteCollection", State: "chan send", Depth: 1, Closures: true}
		if got := d.Count(m) == 1; got != want || m.Chooses(d.Groups[0]) != want {
			t.Errorf("%s is found: %t; want %t", name, got, want)
		}
		if m.Closures = false; d.Count(m) == 1 != (name == store) {
			t.Errorf("%s, without its closures, is found: %d", name, d.Count(m))
		}
	}
}

// A line's first words are no host and no program's name, where the time before them is a container's or they are the
// runtime's.
func TestPlainWithoutAProgram(t *testing.T) {
	for _, c := range []struct{ line, text, from string }{
		{"2026-02-11T08:00:01.000000001Z fatal error: concurrent map writes", "fatal error: concurrent map writes", ""},
		{"2026-02-11T08:00:01.5Z fatal error: all goroutines are asleep - deadlock!", "fatal error: all goroutines are asleep - deadlock!", ""},
		{"2026-02-11T09:00:01.123456789+01:00 Failed watch: EOF", "Failed watch: EOF", ""},
		{"2026-02-11T08:00:01+0000 fatal error: concurrent map writes", "fatal error: concurrent map writes", ""},
		{"2026-02-11T08:00:01+0000 panic: assignment: to a nil map", "panic: assignment: to a nil map", ""},
		{"2026-02-11T08:00:01.123456+01:00 n1 kubelet[812]: started", "started", "kubelet"},
		{"2026-02-11T08:00:01.123456Z n1 kubelet[812]: started", "started", "kubelet"},
		{"2026-02-11T08:00:01+0000 n1 kernel: eth0 is up", "eth0 is up", "kernel"},
		{"Feb 11 08:00:01 n1 kernel: eth0 is up", "eth0 is up", "kernel"},
	} {
		text, p := goroutine.Plain([]byte(c.line), time.UTC)
		if string(text) != c.text || p.From != c.from || p.Time.IsZero() && c.line[0] == '2' {
			t.Errorf("%q is %q by %q at %s; want %q by %q", c.line, text, p.From, p.Time, c.text, c.from)
		}
	}
}
