package match_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// each puts a prefix before each line of a text.
func each(prefix, text string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix) + "\n"
}

// How long something lasts is told by times of one clock only: a log may be of any zone, and a file as old as its copy.
func TestClocks(t *testing.T) {
	spinning := real(t, "../../internal/checktest/testdata/spinning.debug2")
	const cri, golog = "2026-03-01T10:0%d:00Z stderr F ", "2026/03/01 10:0%d:00 "
	at := func(form string, minute int) string { return each(fmt.Sprintf(form, minute), spinning) }
	for _, c := range []struct {
		name  string
		files map[string]string // a was written at 10:00, b at 10:01
		want  string
	}{
		{"of the files", map[string]string{"a": spinning, "b": spinning + later}, "met"},
		{"of a file and its copy", map[string]string{"a": spinning, "b": spinning}, "suspected"},
		{"of a log that tells its zone", map[string]string{"a": at(cri, 0) + at(cri, 1)}, "met"},
		{"of two such logs", map[string]string{"a": at(cri, 0), "b": at(cri, 1)}, "met"},
		{"of a log without a zone", map[string]string{"a": at(golog, 0) + at(golog, 1)}, "met"},
		{"of two logs without a zone", map[string]string{"a": at(golog, 0), "b": at(golog, 1)}, "suspected"},
		{"of a file and of a log", map[string]string{"a": spinning, "b": at(cri, 1)}, "suspected"},
		{"of two lines in one second", map[string]string{"a": at(cri, 0) + at(cri, 0)}, "suspected"},
		{"of other lines in the log", map[string]string{"a": "2026-03-01T10:00:00Z x\n" + spinning + "2026-03-01T10:01:00Z x\n" + spinning}, "suspected"},
		{"of a file, and of one that went on", map[string]string{"a": spinning, "b": spinning + "\nand then\n"}, "suspected"},
		{"of a file, and of one with two", map[string]string{"a": spinning, "b": spinning + spinning}, "suspected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := files(t, c.files)
			for name := range c.files {
				written := time.Date(2026, 3, 1, 10, int(name[0]-'a'), 0, 0, time.UTC)
				if err := os.Chtimes(filepath.Join(dir, name), written, written); err != nil {
					t.Fatal(err)
				}
			}
			answered(t, run(t, nil, dir), "listener-busy-wait", c.want, "")
		})
	}
	answered(t, run(t, strings.NewReader(spinning+spinning), "-"), "listener-busy-wait", "suspected", "ready-in-the-loop")
}

// A log says whether its lines tell times, and a dump is found in the forms that tools on people's desks give it.
func TestForms(t *testing.T) {
	blocked := kubelet("chan send, 1140 minutes", "sleep")
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(strings.ReplaceAll(blocked, "\n", "\r\n"))) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for _, c := range []struct{ name, text, want, as string }{
		{"UTF-16", string(wide), "met", "goroutine dump (debug=2) with 3 goroutines"},
		{"kubectl's prefix", each("[pod/n1/kubelet] ", overdue+blocked), "met", "text of 1 lines by kubelet"},
		{"a log of another name", overdue + blocked, "met", "text of 1 lines"},
		{"a line without a time", "PLEG is not healthy: pleg was last seen active 5m1s ago; threshold is 3m0s\n", "suspected", "text of 1 lines without times"},
		{"a line with one", overdue, "suspected", "text of 1 lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{"current.txt": c.text}))
			answered(t, r, "pleg-deadlock", c.want, "")
			if len(r.Inputs) != 1 || !strings.HasSuffix(r.Inputs[0].As, c.as) {
				t.Errorf("it was read as %+v, want %q", r.Inputs, c.as)
			}
		})
	}
	// The lines of a log are of the process that left all the dumps in it, so that they are no suspicion of their own.
	answered(t, run(t, nil, files(t, map[string]string{"current.txt": `I0301 10:00:00.000000 1 a.go:1] "Kubelet version" kubeletVersion="v1.34.4"` + "\n" +
		overdue + kubelet("select", "select")})), "pleg-deadlock", "not met", "the fix is in v1.14.0 and later; this is v1.34.4")
}
