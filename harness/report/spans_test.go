package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
)

// traceOf is a trace of n seconds as the component writes it.
func traceOf(id, n int) string {
	return fmt.Sprintf(`I0304 05:06:47.000000       1 trace.go:205] Trace[%[1]d]: "Delete" url:/api/v1/namespaces/n%[1]d/configmaps,client:::1 (04-Mar-2026 05:06:40.000) (total time: %[2]d000ms):
Trace[%[1]d]: ---"About to delete collection from database" 20ms (05:06:40.020)
Trace[%[1]d]: ["GuaranteedUpdate etcd3" type:*core.ConfigMap %[2]d000ms (05:06:40.020)
Trace[%[1]d]:  ---"Transaction committed" %[2]d000ms (05:06:46.020)]
Trace[%[1]d]: [%[2]d.5s] [%[2]d.5s] END
`, id, n)
}

// Of many traces the slowest are shown, as the component's account of where its time went.
func TestSlowestTracesAreShown(t *testing.T) {
	tr := newTrial()
	tr.vulnerable.more = func(w *bundle.Writer) {
		s, err := w.Stream(bundle.Meta{Kind: bundle.Logs, Cell: "vulnerable", Component: "kube-apiserver", Time: t0}, "jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range []int{3, 9, 1, 7, 8, 2, 6} {
			for line := range strings.Lines(traceOf(i, n)) {
				if err := s.JSON(bundle.LogLine{Time: at(10 + i), File: "kube-system_apiserver/0.log", Text: strings.TrimSuffix(line, "\n")}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	_, files := judgeAndWrite(t, tr.write(t))
	md := files[report.ReportFile]
	row := "| vulnerable | kube-apiserver | %d.5s | Delete | /api/v1/namespaces/n%d/configmaps | 05:06:40.000 | GuaranteedUpdate etcd3: Transaction committed, %ds |\n"
	want := ""
	for _, s := range []struct{ took, id int }{{9, 1}, {8, 4}, {7, 3}, {6, 6}, {3, 0}} {
		want += fmt.Sprintf(row, s.took, s.id, s.took)
	}
	if !strings.Contains(md, want+"\n- kube-apiserver of vulnerable logged 7 traces\n") {
		t.Errorf("report.md lacks\n%s:\n%s", want, md)
	}
}

func TestInformationIsShownAsSuch(t *testing.T) {
	tr := newTrial()
	tr.plan.Info = []plan.Check{{Name: "is well too", Kind: "testHolds", Spec: tr.plan.Healed[0].Spec}}
	v, files := judgeAndWrite(t, tr.write(t))
	if v.Verdict != "Validated" {
		t.Errorf("verdict %s, want Validated", v.Verdict)
	}
	var text bytes.Buffer
	if err := report.Text(&text, v, false); err != nil {
		t.Fatal(err)
	}
	if want := "information (decides nothing): fixed: is well too is met: well\n"; !strings.Contains(text.String(), want) {
		t.Errorf("the text lacks %q:\n%s", want, text.String())
	}
	if want := "| information (decides nothing) | is well too | unknown | no snapshot | well |"; !strings.Contains(files[report.ReportFile], want) {
		t.Errorf("report.md lacks %q:\n%s", want, files[report.ReportFile])
	}
}
