package pasted_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// dump is a dump as a program prints it, with a frame that the runtime left out and a creator.
const dump = `goroutine 1 [chan receive, 40 minutes]:
k8s.io/kubernetes/cmd/kubelet/app.Run(0xc21f80a4e8, {0x1, 0x2})
	/go/src/k8s.io/kubernetes/cmd/kubelet/app/server.go:990 +0x19f
main.main()
	/go/src/k8s.io/kubernetes/cmd/kubelet/kubelet.go:43 +0x264

goroutine 412 [chan send, 217 minutes]:
k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(0xc37924dede, 0xc21b69567e)
	/go/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:261 +0x93
created by k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Start in goroutine 1
	/go/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:130 +0x1f6

goroutine 500 [select]:
k8s.io/kubernetes/pkg/kubelet.(*podWorkers).managePodLoop(...)
	/go/src/k8s.io/kubernetes/pkg/kubelet/pod_workers.go:10
`

// dumps returns all dumps that package goroutine finds in what was read.
func dumps(t pasted.Text) (out []*goroutine.Dump) {
	var f goroutine.Finder
	take := func(d *goroutine.Found) {
		if d != nil {
			out = append(out, d.Dump)
		}
	}
	for _, l := range t.Lines {
		take(f.Line(l.Text))
	}
	take(f.End(false))
	return out
}

func each(text string, f func(i int, line string) string) string {
	var b strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		b.WriteString(f(i, l))
	}
	return b.String()
}

func before(format string) func(string) string {
	return func(text string) string {
		return each(text, func(i int, l string) string {
			if strings.Contains(format, "%") {
				return fmt.Sprintf(format, i+1) + l + "\n"
			}
			return format + l + "\n"
		})
	}
}

func jsonOf(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// lined writes values as JSON, one on each line.
func lined(all []any) string {
	var b strings.Builder
	for _, v := range all {
		one, _ := json.Marshal(v)
		b.Write(append(one, '\n'))
	}
	return b.String()
}

func reversed(text string) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	slices.Reverse(all)
	return strings.Join(all, "\n") + "\n"
}

// rows makes an export with one record for each line, the newest first.
func rows(text string, row func(at, line string) any) (out []any) {
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		out = append([]any{row(fmt.Sprintf("2026-02-11T08:00:%02dZ", i), l)}, out...)
	}
	return out
}

// grepped is a line as grep prints it for the pattern "goroutine", with what follows.
func grepped(i int, l string) string {
	sep := "-"
	if strings.Contains(l, "goroutine") {
		sep = ":"
	}
	return fmt.Sprintf("%d%s%s\n", i+1, sep, l)
}

func wideText(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// A dump is the same however it was pasted, and what was done to it is said.
func TestForms(t *testing.T) {
	want := dumps(pasted.Read([]byte(dump)))
	if len(want) != 1 || want[0].Total != 3 {
		t.Fatalf("the dump itself is %+v", want)
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			text := form(dump)
			got := pasted.Read([]byte(text))
			if diff := cmp.Diff(want, dumps(got)); diff != "" {
				t.Errorf("(-want +got):\n%s\nread as %q, done %v", diff, joined(got), got.Did)
			}
			asItIs := len(dumps(pasted.Text{Lines: plain(text)})) == 1 && cmp.Equal(want, dumps(pasted.Text{Lines: plain(text)}))
			if asItIs != (len(got.Did) == 0) {
				t.Errorf("plainly read it is right: %t, but this was done: %q", asItIs, got.Did)
			}
			if got.Part != "" {
				t.Errorf("it lacks something: %s", got.Part)
			}
		})
	}
}

func plain(text string) (out []pasted.Line) {
	for _, l := range strings.Split(text, "\n") {
		out = append(out, pasted.Line{Text: []byte(strings.TrimRight(l, "\r"))})
	}
	return out
}

func joined(t pasted.Text) string {
	var b strings.Builder
	for _, l := range t.Lines {
		b.WriteString(string(l.Text) + "\n")
	}
	return b.String()
}

// What was lost is said, and what is left is read.
func TestParts(t *testing.T) {
	const first, relist = "goroutine 412 [chan send, 217 minutes]:\n", "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(0xc37924dede)\n"
	const second = "goroutine 413 [chan send, 3 minutes]:\n"
	for _, c := range []struct{ name, text, want, part string }{
		{"grep -A1", first + relist + "--\n" + second + relist, "2 in chan send, 1 frames", "frames have lost their lines of files"},
		{"grep -n -A1", "7:" + first + "8-" + relist + "--\n17:" + second + "18-" + relist, "2 in chan send, 1 frames", "frames have lost their lines of files"},
		{"functions alone", first + relist + "main.main()\n\n" + second + relist, "1 in chan send, 2 frames", "frames have lost their lines of files"},
		{"no header", relist + "\t/go/generic.go:261 +0x1\nmain.main()\n\t/go/main.go:1\n", "1 in unknown, 2 frames", "a goroutine has lost its header"},
		{"a panic without header", "panic: boom\n\n" + relist + "\t/go/generic.go:261 +0x1\n", "1 in running, 1 frames", "a goroutine has lost its header"},
		{"something left out", first + relist + "\t/go/generic.go:261 +0x1\n...\nmain.main()\n\t/go/main.go:1\n", "1 in chan send, 2 frames", "something was left out of it"},
		{"something left out between goroutines", first + relist + "\t/go/generic.go:261 +0x1\n\n...\n", "1 in chan send, 1 frames", "something was left out of it"},
		{"a word for it", "[snip]\n" + first + relist + "\t/go/generic.go:261 +0x1\n", "1 in chan send, 1 frames", "something was left out of it"},
		{"a sentence above", "These are the relevant goroutines, because the rest isn't of use to you:\n\n" + first + relist + "\t/go/generic.go:261 +0x1\n", "1 in chan send, 1 frames", "something was left out of it"},
		{"counts without header", "3 @ 0x1 0x2\n#\t0x2\tmain.main+0x1\t/go/main.go:1\n", "3 in , 1 frames", "the profile has lost its header"},
		{"a profile with spaces for tabs", "goroutine profile: total 3\n3 @ 0x1 0x2\n#   0x2   main.main+0x1   /go/main.go:1\n", "3 in , 1 frames", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := pasted.Read([]byte(c.text))
			all := dumps(got)
			if len(all) != 1 {
				t.Fatalf("%d dumps in %q", len(all), joined(got))
			}
			g := all[0].Groups[0]
			if s := fmt.Sprintf("%d in %s, %d frames", g.Count, g.State, len(g.Frames)); s != c.want || got.Part != c.part || len(got.Did) == 0 {
				t.Errorf("it is %s (%s), want %s (%s); read as %q, done %v", s, got.Part, c.want, c.part, joined(got), got.Did)
			}
		})
	}
}

// What says that something is left out is told from what programs print between stacks.
func TestLeftOut(t *testing.T) {
	for _, line := range []string{"...", "…", "[...]", "(...)", "<snip>", "[snip]", "-- snip --", "--", "--- 8< ---", "(goroutines elided)", "[1,200 more goroutines]", "... 31 more",
		"+ 48 others", "and 300 similar stacks", "[truncated]", "Output truncated at 64 KiB", "[Message clipped]", "120 goroutines like this one", "and so on", "[removed]", "--More--", "{... 312 lines hidden ...}", "...skipping...", "Output truncated at 65536", "What was cut out:", "2026-03-01T10:00:00Z stderr F (400 goroutines omitted)",
		"Mar  1 10:00:00 n1 systemd-journald[1]: Suppressed 1234 messages from kubelet.service", "rsyslogd: imjournal: 20 messages lost due to rate-limiting"} {
		if !pasted.LeftOut([]byte(line)) {
			t.Errorf("%q says nothing", line)
		}
	}
	for _, line := range []string{"", "...additional frames elided...", "...23 frames elided...", "rax    0x0", "exit status 2", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x10 pc=0x1]",
		"goroutine running on other thread; stack unavailable", "SIGQUIT: quit", "PC=0x1 m=0 sigcode=0", "a/etc/kubernetes: fine", "```",
		`I0301 10:00:00.000000       1 a.go:1] "Output truncated" lines=3`, `E0301 10:00:00.000000       1 b.go:1] 3 more errors`} {
		if pasted.LeftOut([]byte(line)) {
			t.Errorf("%q says that something is left out", line)
		}
	}
}

// What programs wrote is left as it is.
func TestLeftAlone(t *testing.T) {
	files, err := filepath.Glob("../goroutine/testdata/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	texts := map[string]string{
		"a log": "I0301 10:00:00.000000    1234 a.go:251] \"started\" pod=\"kube-system/coredns\"\nE0301 10:00:01.000000    1234 b.go:1] f.g(x)\n\nW0301 10:00:02.000000    1234 c.go:1] >x\n",
		"a race": "==================\nWARNING: DATA RACE\nWrite at 0x00c0 by goroutine 9:\n  runtime.mapassign()\n      internal/runtime/maps/map.go:2 +0x0\n\n" +
			"Goroutine 9 (running) created at:\n  main.main()\n      main.go:8 +0x9e\n==================\n",
		"the runtime's stack": "fatal error: stack overflow\n\nruntime stack:\nruntime.throw({0x1, 0x1})\n\t/go/panic.go:1 +0x1\nruntime.newstack()\n\t/go/stack.go:1 +0x1\n\n" + dump,
		"a panic in a panic":  "panic: a [recovered]\n\tpanic: b\n[signal SIGSEGV: segmentation violation]\n\n" + dump,
		"lines of JSON":       `{"level":"info","ts":1,"msg":"x"}` + "\n" + `{"level":"info","ts":2,"msg":"goroutine 1 [select]:\nmain.main()\n\t/a.go:1 +0x1\n"}` + "\n",
		"a line of JSON":      `{"level":"info","ts":1,"msg":"x"}` + "\n",
		"logs among a stack":  strings.Replace(dump, "main.main()\n", "main.main()\nI0301 10:00:00.000000 1 a.go:1] a.b(c)\n", 1),
		"a cut dump":          strings.TrimSuffix(dump, ":10\n"),
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && !strings.HasSuffix(f, ".gz") {
			texts[filepath.Base(f)] = string(b)
		}
	}
	for name, text := range texts {
		if got := pasted.Read([]byte(text)); len(got.Did) > 0 || joined(got) != strings.TrimSuffix(text, "\n")+"\n" {
			t.Errorf("%s: done %q\n%s", name, got.Did, cmp.Diff(strings.Split(text, "\n"), strings.Split(joined(got), "\n")))
		}
	}
}

// Lines keep their numbers, and prose is told from what was logged.
func TestProse(t *testing.T) {
	const overdue = "PLEG is not healthy: pleg was last seen active 3m1.1s ago; threshold is 3m0s"
	const klog = `E0301 10:00:00.000000    1 kubelet.go:2000] "Skipping pod synchronization" err="` + overdue + `"`
	for _, c := range []struct {
		name, text string
		prose      bool
	}{
		{"a manual", "If the node says `" + overdue + "`, look at the runtime first.\n", true},
		{"a blog", "# PLEG\n\nThis error means that relisting takes too long:\n\n```\n" + overdue + "\n```\n", true},
		{"a manual in a fence", "- Troubleshooting\n\n  ```\n  If the node says `" + overdue + "`, look at the runtime first.\n  ```\n", true},
		{"a sentence that quotes", "Sometimes kubelet prints \"" + overdue + "\" when the disk is slow.\n", true},
		{"the message", overdue + "\n", false},
		{"a log in an issue", "This is what you see when it hangs:\n\n```\n" + klog + "\n```\n", false},
		{"a log without fences", "Could you look at this?\n\n" + klog + "\n", false},
		{"kubectl describe", "  Ready   False   Mon, 11 Feb 2026 08:00:00   KubeletNotReady   " + overdue + "\n", false},
	} {
		for _, l := range pasted.Read([]byte(c.text)).Lines {
			if bytes.Contains(l.Text, []byte(overdue)) && l.Prose != c.prose {
				t.Errorf("%s: prose is %t in %q", c.name, l.Prose, l.Text)
			}
		}
	}
	got := pasted.Read([]byte("a\n\n> goroutine 1 [select]:\n> main.main()\n>   /a.go:1 +0x1\n"))
	if n := len(got.Lines); n != 5 || got.Lines[4].N != 5 || string(got.Lines[4].Text) != "\t/a.go:1 +0x1" {
		t.Errorf("the lines are %+v", got.Lines)
	}
}

// FuzzRead holds Read to its contract on any input: it ends, gives the same each time, and what it gives is left as it
// is when it is read again, as far as dumps go.
func FuzzRead(f *testing.F) {
	for _, form := range forms {
		f.Add([]byte(form(dump)))
	}
	f.Add([]byte("7:goroutine 1 [a]:\n8-main.main()\n--\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 64<<10 {
			return
		}
		one, two := pasted.Read(in), pasted.Read(in)
		if diff := cmp.Diff(one, two); diff != "" {
			t.Fatal(diff)
		}
		for _, l := range one.Lines {
			if l.N < 1 || bytes.IndexByte(l.Text, '\n') >= 0 {
				t.Fatalf("an impossible line: %+v", l)
			}
		}
		for _, d := range dumps(one) {
			if d.Total < 0 {
				t.Errorf("an impossible dump: %+v", d)
			}
		}
	})
}

// However hostile a text is, reading it takes time in proportion to its length.
func TestHostile(t *testing.T) {
	const n = 1 << 19
	for name, text := range map[string]string{
		"empty lines":    "goroutine 1 [a]:\n" + strings.Repeat("\n", n),
		"indented heads": strings.Repeat("x\n goroutine 1 [a]:\n", n/20),
		"many prefixes":  each(strings.Repeat("x\n", n/40), func(i int, _ string) string { return fmt.Sprintf("%c%dz goroutine 1 [a]:\nmain.main()\n", 'a'+i%26, i) }),
		"counts":         strings.Repeat("1 @ 0x1\n", n/8),
		"one line":       strings.Repeat("goroutine 1 ", n/12),
		"entries":        strings.Repeat("---\ninsertId: a\ntextPayload: &a [*a, *a]\n", n/40),
		"one entry":      "---\ntextPayload: " + strings.Repeat("[", n),
		"children":       strings.Repeat("time=1 level=a msg=\"\\", n/25) + " component=a stream=b",
		"broken lines":   strings.Repeat(strings.Repeat("a.b(", 25)+"\n", n/100),
		"open tags":      strings.Repeat("<p </", n/5),
		"indents":        strings.Repeat(" main.main()\n", n/13) + " goroutine 1 [a]:\n main.main()\n",
	} {
		began := cpuTime(t)
		pasted.Read([]byte(text))
		short := cpuTime(t) - began
		began = cpuTime(t)
		pasted.Read([]byte(text + text))
		if twice := cpuTime(t) - began; twice > 3*short+5*time.Second {
			t.Errorf("%s: %s for %d bytes, %s for twice as many", name, short, len(text), twice)
		}
		t.Log(name, short)
	}
}
