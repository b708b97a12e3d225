package match_test

import (
	"fmt"
	"strings"
	"testing"
)

// long is a dump of a healthy kubelet of more than n bytes.
func long(n int) string {
	var b strings.Builder
	b.WriteString(kubelet("select", "select"))
	for i := 1000; b.Len() <= n; i++ {
		fmt.Fprintf(&b, "goroutine %d [select]:\nk8s.io/kubernetes/pkg/kubelet.(*podWorkers).managePodLoop(0x%x)\n\t/pod_workers.go:150 +0x1\ncreated by k8s.io/kubernetes/pkg/kubelet.(*podWorkers).UpdatePod\n\t/pod_workers.go:217 +0x1\n\n", i, i)
	}
	return b.String()
}

// A text that says that something was left out, or whose end is in the middle of a stack, rules nothing out, however
// long it is.
func TestWhatWasLeftOut(t *testing.T) {
	short, much := long(1<<10), long(3<<20)
	const header = "goroutine 9 [select]:\nmain.f(0x1)\n\t/a.go:1 +0x1\n"
	for _, c := range []struct{ name, text, want, why string }{
		{"dots below an empty line", short + "...\n", "unknown", "may lack something: something was left out of it"},
		{"a word", short + "[snip]\n", "unknown", "something was left out"},
		{"a word above", "(most goroutines elided)\n\n" + short, "unknown", "something was left out"},
		{"a number", short + "... 812 more\n", "unknown", "something was left out"},
		{"lines that the journal lost", each("Mar  1 10:00:00 n1 kubelet[7]: ", short) + "Mar  1 10:00:01 n1 systemd-journald[3]: Suppressed 4421 messages from kubelet.service\n", "unknown", "something was left out"},
		{"far below", much + "...\n\n" + header, "unknown", "something was left out"},
		{"far below, in a log", each("2026-03-01T10:00:00Z stderr F ", much+"[400 goroutines omitted]\n"), "unknown", "something was left out"},
		{"far below, in brackets", much + "(400 goroutines omitted)\n", "unknown", "something was left out"},
		{"far below, in a quote", each("> ", much+"...\n"), "unknown", "something was left out"},
		{"a header without its end", short + "goroutine 9 [sel\n", "unknown", "is cut short"},
		{"a stack without its end", short + header, "unknown", "its last stack doesn't say what created the goroutine"},
		{"a stack that nobody could print", short + "goroutine 9 [running]:\n\tgoroutine running on other thread; stack unavailable\ncreated by main.f\n\t/a.go:1 +0x1\n", "unknown", "it doesn't show the stack of what runs"},
		{"a header that counts more", "goroutine profile: total 18012\n" + short, "unknown", "the line above it counts 18012 goroutines"},
		{"a profile that counts more", short + "\nI0301 10:00:00.000000 1 a.go:1] fine\n\ngoroutine profile: total 900\n900 @ 0x1\n#\t0x1\tk8s.io/kubernetes/pkg/kubelet.f+0x1\t/a.go:1\n\n", "unknown", "and a profile beside it 900"},
		{"a sentence that says so", "These are the relevant goroutines, because you can't use the others:\n\n" + short, "unknown", "something was left out"},

		{"the outer end of goroutine 1", strings.Replace(short, "main.main()\n\tcmd/kubelet/kubelet.go:1 +0x1\n", "", 1), "unknown", "the stack of goroutine 1 doesn't begin in the program's main function"},

		{"a whole one", short, "not met", "relist-in-send"},
		{"a long one", much, "not met", "relist-in-send"},
		{"frames that the runtime left out", strings.Replace(short, "\t/server.go:1 +0x1\n", "\t/server.go:1 +0x1\n...additional frames elided...\n", 1), "not met", "relist-in-send"},
		{"one that a profile counts", "goroutine profile: total 3\n3 @ 0x1\n#\t0x1\tmain.f+0x1\t/a.go:1\n\n" + short, "not met", "relist-in-send"},
		{"what runs, above a creator", short + header + "created by main.g\n\t/a.go:1 +0x1\n", "not met", "relist-in-send"},
		{"what became generic", strings.Replace(kubelet("chan send, 1140 minutes", "sleep"), "(*GenericPLEG).relist", "(*GenericPLEG[...]).relist[go.shape.int]", 1), "met", "relist-blocked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, map[string]string{"kubelet.txt": c.text})), "pleg-deadlock", c.want, c.why)
		})
	}
}

// What could not be read may hold the incident: then nothing is ruled out, and it is said why.
func TestWhatCouldNotBeRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
		why   string
	}{
		{"all was read", map[string]string{"kubelet.txt": long(0)}, "not met", ""},
		{"bytes beside it", map[string]string{"kubelet.txt": long(0), "kubelet.log": "\x00\x01"}, "unknown", "but not everything could be read: "},
		{"beside a version with the fix", map[string]string{"n.yaml": node("v1.34.4", "True", ""), "pods.json": `{"kind":"PodList","items":[{"kind":"Pod"},{"kind":`}, "unknown", "unexpected EOF"},
		{"a line that is too long", map[string]string{"kubelet.txt": long(0), "kubelet.log": strings.Repeat("x", 3<<20)}, "unknown", "1 lines were over"},
		{"beside what shows it", map[string]string{"kubelet.txt": kubelet("chan send, 1140 minutes", "sleep"), "kubelet.log": "\x00\x01"}, "met", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, c.files))
			answered(t, r, "pleg-deadlock", c.want, c.why)
			if string(r.Answer) != c.want {
				t.Errorf("all in all it is %s", r.Answer)
			}
		})
	}
}
