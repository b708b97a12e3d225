package match_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// exportForm is what journalctl -o export prints of these messages, those with more than one line as it has them.
func exportForm(program string, messages ...string) string {
	var b strings.Builder
	for i, m := range messages {
		fmt.Fprintf(&b, "__CURSOR=s=1;i=%d\n__REALTIME_TIMESTAMP=%d\n_HOSTNAME=n1\nSYSLOG_IDENTIFIER=%s\n", i, 1772359200000000+i, program)
		if strings.Contains(m, "\n") {
			fmt.Fprintf(&b, "MESSAGE\n%s%s\n\n", binary.LittleEndian.AppendUint64(nil, uint64(len(m))), m)
		} else {
			fmt.Fprintf(&b, "MESSAGE=%s\n\n", m)
		}
	}
	return b.String()
}

// The export form of a journal is read like its others: the dump that a kubelet's abort left is found among its fields.
func TestJournalExport(t *testing.T) {
	blocked := strings.Split("SIGQUIT: quit\n\n"+kubelet("chan send, 1140 minutes", "sleep"), "\n")
	for _, c := range []struct{ name, text, want, why string }{
		{"a dump", exportForm("kubelet", blocked...), "met", "relist-blocked-for-minutes"},
		{"a dump in one record", exportForm("kubelet", strings.Join(blocked, "\n")), "met", "relist-blocked-for-minutes"},
		{"a log", exportForm("kubelet", "x", strings.TrimSpace(overdue)), "suspected", "kubelet-says-so: 1 such lines among 2"},
		{"another program's log", exportForm("containerd", "x", "y"), "unknown", "nothing here is known to be of kubelet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, files(t, map[string]string{"j": c.text}))
			answered(t, r, "pleg-deadlock", c.want, c.why)
			if len(r.Problems) > 0 || len(r.Inputs) != 1 || !strings.HasPrefix(r.Inputs[0].As, "journal in the export form") {
				t.Errorf("%v, problems: %v", r.Inputs, r.Problems)
			}
		})
	}
	r := run(t, nil, files(t, map[string]string{"j": strings.TrimSuffix(exportForm("kubelet", "x"), "\n\n")}))
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "unexpected EOF") {
		t.Errorf("of one that was cut: %v", r.Problems)
	}
}
