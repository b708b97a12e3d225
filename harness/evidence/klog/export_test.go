package klog_test

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// binaryField is a field as the export form has it where its value has newlines.
func binaryField(name, value string) string {
	return name + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

func TestFromExport(t *testing.T) {
	const head = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1772359200000000\n_HOSTNAME=n1\nSYSLOG_IDENTIFIER=kubelet\n_PID=7\n"
	whole := head + "MESSAGE=a=b \"c\"\n\n" + head + binaryField("MESSAGE", "one\ntwo\n\nthree") + "_SYSTEMD_UNIT=kubelet.service\n\n"
	for _, c := range []struct {
		name, in string
		messages []string
		err      string
	}{
		{"records", whole, []string{`a=b "c"`, "one\ntwo\n\nthree"}, ""},
		{"none", "", nil, ""},
		{"cut behind a field", whole + head + "MESSAGE=x\n", []string{`a=b "c"`, "one\ntwo\n\nthree", "x"}, "unexpected EOF"},
		{"cut in a value", whole[:len(whole)-40], []string{`a=b "c"`, ""}, "unexpected EOF"},
		{"no field", head + "what is this\nand that, which goes on for long\n\n", []string{""}, `journal line 6: "what is this" is followed by neither`},
		{"long", head + binaryField("MESSAGE", strings.Repeat("x", klog.MaxLine+9)) + "\n" + whole, []string{strings.Repeat("x", klog.MaxLine/8), `a=b "c"`, "one\ntwo\n\nthree"}, "1 values were over 131072 bytes long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pr, pw := io.Pipe()
			var failed error
			go func() {
				_, failed = io.Copy(pw, klog.FromExport(strings.NewReader(c.in)))
				pw.Close()
			}()
			var got []string
			for e, err := range klog.ReadJournal(pr) {
				if err != nil {
					t.Error(err)
				}
				if e.Ident != "kubelet" || e.PID != 7 || e.Time.UnixMicro() != 1772359200000000 {
					t.Errorf("an entry of %q, %d, %s", e.Ident, e.PID, e.Time)
				}
				got = append(got, e.Message)
			}
			if len(got) != len(c.messages) {
				t.Fatalf("%d messages, want %d", len(got), len(c.messages))
			}
			for i, want := range c.messages {
				if want != got[i] {
					t.Errorf("message %d is %.80q, want %.80q", i, got[i], want)
				}
			}
			if (failed == nil) != (c.err == "") || failed != nil && !strings.Contains(failed.Error(), c.err) {
				t.Errorf("it ends with %v, want %q", failed, c.err)
			}
		})
	}
}
