package klog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// record is a line of `journalctl -o json`; the message is JSON already.
func record(second int, pid, ident, message string) string {
	return fmt.Sprintf(`{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"%d","_PID":"%s","_SYSTEMD_UNIT":"%s.service","SYSLOG_IDENTIFIER":"%s","MESSAGE":%s}`+"\n",
		at(12, 0, second, 0).UnixMicro(), pid, ident, ident, message)
}

// shown is what the tests compare of an entry.
func shown(text string) []string {
	var got []string
	for e, err := range klog.ReadJournal(strings.NewReader(text)) {
		if err != nil {
			got = append(got, "error: "+err.Error())
			continue
		}
		s := fmt.Sprintf("%s %d %s %s %q", e.Time.Format("15:04:05"), e.PID, e.Unit, e.Ident, e.Message[:min(len(e.Message), 80)])
		if e.Klog != nil {
			s += fmt.Sprintf(" klog %v %q %q", e.Klog.Severity, e.Klog.Message[:min(len(e.Klog.Message), 20)], e.Klog.Pairs)
		}
		if e.Suppressed > 0 {
			s += fmt.Sprintf(" suppressed %d of %s", e.Suppressed, e.SuppressedFrom)
		}
		if e.Cut {
			s += " cut"
		}
		got = append(got, s)
	}
	return got
}

func TestReadJournal(t *testing.T) {
	const head = `E1121 12:00:00.000001 7 a.go:1] `
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"klog", record(1, "7", "kubelet", `"E1121 12:00:01.000001 7 a.go:1] \"m\" err=\"x\""`),
			[]string{`12:00:01 7 kubelet.service kubelet "E1121 12:00:01.000001 7 a.go:1] \"m\" err=\"x\"" klog E "m" [{"err" "x"}]`}},
		{"bytes", record(1, "7", "kubelet", `[104,105,255]`), []string{`12:00:01 7 kubelet.service kubelet "hi\xff"`}},
		{"several messages in one", record(1, "7", "kubelet", `["one","two"]`), []string{`12:00:01 7 kubelet.service kubelet "one"`}},
		{"left out by journalctl", record(1, "7", "kubelet", `null`), []string{`12:00:01 7 kubelet.service kubelet "" cut`}},
		{"suppressed", record(1, "9", "systemd-journald", `"Suppressed 1234 messages from kubelet.service"`) +
			record(2, "9", "systemd-journald", `"Suppressed 5 messages from /system.slice/kubelet.service"`) +
			record(3, "7", "kubelet", `"Suppressed 6 messages from me"`),
			[]string{`12:00:01 9 systemd-journald.service systemd-journald "Suppressed 1234 messages from kubelet.service" suppressed 1234 of kubelet.service`,
				`12:00:02 9 systemd-journald.service systemd-journald "Suppressed 5 messages from /system.slice/kubelet.service" suppressed 5 of kubelet.service`,
				`12:00:03 7 kubelet.service kubelet "Suppressed 6 messages from me"`}},
		{"value over several records", record(1, "7", "kubelet", `"`+head+`\"m\" err=<"`) + record(2, "8", "other", `"x"`) +
			record(3, "7", "kubelet", `"\tone"`) + record(4, "7", "kubelet", `" > k=1"`) + record(5, "7", "kubelet", `"after"`),
			[]string{`12:00:02 8 other.service other "x"`,
				`12:00:01 7 kubelet.service kubelet "E1121 12:00:00.000001 7 a.go:1] \"m\" err=<\n\tone\n > k=1" klog E "m" [{"err" "one"} {"k" "1"}]`,
				`12:00:05 7 kubelet.service kubelet "after"`}},
		{"value without its end", record(1, "7", "kubelet", `"`+head+`\"m\" err=<"`) + record(2, "7", "kubelet", `"`+head+`next"`) +
			record(3, "7", "kubelet", `"`+head+`\"m\" err=<"`),
			[]string{`12:00:01 7 kubelet.service kubelet "E1121 12:00:00.000001 7 a.go:1] \"m\" err=<" klog E "m" [{"err" ""}] cut`,
				`12:00:02 7 kubelet.service kubelet "E1121 12:00:00.000001 7 a.go:1] next" klog E "next" []`,
				`12:00:03 7 kubelet.service kubelet "E1121 12:00:00.000001 7 a.go:1] \"m\" err=<" klog E "m" [{"err" ""}] cut`}},
		{"no record", "-- No entries --\n\n{\"MESSAGE\":\"x\"}\n{\"__REALTIME_TIMESTAMP\":\"soon\"}\n" + record(1, "x", "kubelet", `"m"`) + record(1, "7", "kubelet", `"m"`)[:60],
			[]string{"error: journal line 1: expected one JSON object: invalid character '-' in numeric literal",
				"error: journal line 3: no __REALTIME_TIMESTAMP among its 1 fields; expected a journal record",
				`error: journal line 4: __REALTIME_TIMESTAMP is "soon"; expected microseconds since 1970`,
				`error: journal line 5: _PID is "x"; expected a number`,
				"error: journal line 6: expected one JSON object: unexpected EOF"}},
		{"too long", record(1, "7", "kubelet", `"`+strings.Repeat("x", klog.MaxLine)+`"`) + record(2, "7", "kubelet", `"m"`),
			[]string{`12:00:01 7 kubelet.service kubelet "" cut`, `12:00:02 7 kubelet.service kubelet "m"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shown(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadJournalFails(t *testing.T) {
	var last error
	n := 0
	for _, err := range klog.ReadJournal(iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(strings.Repeat(record(1, "7", "k", `"m"`), 2000))))) {
		last = err
		n++
	}
	if !errors.Is(last, iotest.ErrTimeout) || !strings.HasPrefix(last.Error(), "reading journal after line ") {
		t.Errorf("after %d entries: %v; want the reader's error", n, last)
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add(record(1, "7", "kubelet", `"E1121 12:00:00.000001 7 a.go:1] \"m\" err=<"`) + record(2, "7", "kubelet", `"\tone"`) + record(3, "7", "kubelet", `" >"`))
	f.Add(record(1, "9", "systemd-journald", `"Suppressed 1234 messages from kubelet.service"`))
	f.Add(record(1, "7", "kubelet", `[104,105,255]`) + "x\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := shown(text)
		if diff := cmp.Diff(got, shown(text)); diff != "" {
			t.Errorf("read twice:\n%s", diff)
		}
		if lines := strings.Count(text, "\n") + 1; len(got) > lines {
			t.Errorf("%d entries of %d lines", len(got), lines)
		}
	})
}
