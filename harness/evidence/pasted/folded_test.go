package pasted_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// folded is a text as `fold -w` prints it: a tab takes it to the next eighth column.
func folded(text string, width int) string {
	return each(text, func(_ int, l string) string {
		var b strings.Builder
		column := 0
		for _, c := range []byte(l) {
			next := column + 1
			if c == '\t' {
				next = (column/8 + 1) * 8
			}
			if next > width {
				b.WriteByte('\n')
				if next = 1; c == '\t' {
					next = 8
				}
			}
			b.WriteByte(c)
			column = next
		}
		return b.String() + "\n"
	})
}

const unbroken = "joined the lines that a terminal had broken"

// A log that was broken at some column is put together, and a log with long lines stays as it is.
func TestFoldedLogs(t *testing.T) {
	klog := strings.Repeat(`E0301 10:00:00.123456       1 job_controller.go:600] "Unhandled Error" err="Job.batch \"backup\" is invalid: status.ready: Invalid value: 2: more ready pods than active"`+"\n"+
		`I0301 10:00:01.123456       1 controller.go:1] "Synced" job="default/backup"`+"\n", 6)
	stamped := before("2026-02-11T08:00:00.%09dZ stderr F ")(klog)
	for name, text := range map[string]string{"klog": klog, "in a container's log": stamped} {
		for _, width := range []int{80, 100, 132} {
			t.Run(fmt.Sprint(name, " ", width), func(t *testing.T) {
				got := pasted.Read([]byte(folded(text, width)))
				var lines strings.Builder
				for _, l := range got.Lines {
					lines.Write(l.Text)
					lines.WriteByte('\n')
				}
				if lines.String() != text || !slices.Contains(got.Did, unbroken) {
					t.Errorf("%v:\n%s", got.Did, lines.String())
				}
			})
		}
	}
	for name, text := range map[string]string{
		"not folded": klog,
		// Two lines are as long as any, and what comes below them begins lines of its own.
		"as long as each other": strings.Repeat("I0301 10:00:00.123456       1 controller.go:1] "+strings.Repeat("x", 30)+"\nshort\n", 3),
	} {
		t.Run(name, func(t *testing.T) {
			if got := pasted.Read([]byte(text)); slices.Contains(got.Did, unbroken) && name == "not folded" || len(got.Lines) == 0 {
				t.Errorf("%v: %v", got.Did, got.Lines)
			}
		})
	}
}

// What a collector of logs puts before each line doesn't hide what a text is.
func TestCollectedTexts(t *testing.T) {
	manual := "If you see that your node is NotReady, you will see something like this:\n\n" + dump + "\nThen you should restart it.\n"
	source := "package x\n\nconst crash = `\n" + dump + "`\n"
	for name, form := range map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"times":    before("2026-02-11T08:00:00.%09dZ "),
		"CRI":      before("2026-02-11T08:00:00.%09dZ stderr F "),
		"journald": before("Feb 11 08:00:%02d n1 viewer[7]: "),
		"a pod's": func(s string) string {
			return each(s, func(_ int, l string) string { return "[pod/docs-0/web] " + l + "\n" })
		},
		"docker": func(s string) string {
			return each(s, func(_ int, l string) string {
				return strings.TrimSpace(lined([]any{map[string]any{"log": l + "\n", "stream": "stderr", "time": "2026-02-11T08:00:00Z"}})) + "\n"
			})
		},
		"numbered": before("%6d\t"),
		"quoted":   before("> "),
	} {
		t.Run(name, func(t *testing.T) {
			got := pasted.Read([]byte(form(manual)))
			if !got.Teaches || !got.Lines[0].Prose || got.Lines[4].Prose {
				t.Errorf("it teaches: %t; its first line explains: %t, and that of a stack: %t", got.Teaches, got.Lines[0].Prose, got.Lines[4].Prose)
			}
			if own := pasted.Read([]byte(form("SIGQUIT: quit\n\n" + dump))); own.Teaches {
				t.Error("a dump alone explains something")
			}
			if got := pasted.Read([]byte(form(source))); !strings.HasPrefix(string(got.Begin), "package x\n\nconst crash") {
				t.Errorf("it begins with %q", got.Begin)
			}
		})
	}
	// A program's own times stand before its messages, and its messages explain nothing.
	own := before("2026/02/11 08:00:%02d ")("if you see this, your nodes are fine\nstarted\nready\n")
	if got := pasted.Read([]byte(own)); got.Teaches {
		t.Error("a program's log was taken for a manual")
	}
}

// A report of tests is told by what its tools write for programs.
func TestReportsOfTests(t *testing.T) {
	for want, text := range map[string]string{
		"<testsuite ":                   `<?xml version="1.0"?><testsuite name="x"><testcase name="y"><failure>` + dump + "</failure></testcase></testsuite>",
		`"Action":"output","Package":"`: `{"Time":"2026-02-11T08:00:00Z","Action":"output","Package":"x","Output":"=== RUN   TestX\n"}` + "\n" + dump,
		"":                              dump,
	} {
		if got := pasted.Read([]byte(text)).Tests; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
