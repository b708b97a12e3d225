package report_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

const changedText = "--- pkg/kubelet/pleg/generic.go:395\n-select {\n+g.eventChannel <- events[i]\n"

// mutated is a trial whose vulnerable arm lacks a fix, with the change in its bundle.
func mutated() *trial {
	tr := newTrial()
	tr.run.Title, tr.run.Links = "A slow runtime locks kubelet for good", []string{
		"https://github.com/kubernetes/kubernetes/issues/72482", "https://github.com/kubernetes/kubernetes/pull/72709"}
	tr.plan.Subject, tr.run.Others = "kubelet", []string{"pleg-relist-storm", "orphaned-pods"}
	tr.plan.About = "v1.36.3 as it is, and with the fix of PR 72709 taken out of it."
	unselect := scenario.Mutation{Kind: "unselect", Sites: 1, Spec: json.RawMessage(`{"package": "k8s.io/kubernetes/pkg/kubelet/pleg",
		"type": "GenericPLEG", "methods": ["Relist"], "channel": "eventChannel"}`)}
	small := scenario.Mutation{Kind: "setConstant", Sites: 1, Spec: json.RawMessage(`{"package": "k8s.io/kubernetes/pkg/kubelet",
		"name": "plegChannelCapacity", "value": "40"}`)}
	tr.vulnerable.planned.Source.Mutations = []scenario.Mutation{unselect, small}
	tr.fixed.planned.Source.Mutations = []scenario.Mutation{small}
	tr.vulnerable.world.Changes = []string{"built from a copy", "unselect at pkg/kubelet/pleg/generic.go:395", "setConstant at pkg/kubelet/kubelet.go:196"}
	tr.fixed.world.Changes = []string{"built from a copy", "setConstant at pkg/kubelet/kubelet.go:196"}
	tr.vulnerable.more = func(w *bundle.Writer) {
		_, err := w.Write(bundle.Meta{Kind: bundle.SourceDiff, Arm: "vulnerable"}, "diff", strings.NewReader(changedText))
		if err != nil {
			panic(err)
		}
	}
	return tr
}

// Whoever opens a report knows at once which bug it is about, where its fix is, and what each arm was built from.
func TestReportsNameTheBugAndWhatTheArmsAre(t *testing.T) {
	v, err := judge.Run(mutated().write(t))
	must(t, err)
	raw, err := v.JSON()
	must(t, err)
	var stored struct {
		Bug   judge.Bug
		Pairs []judge.Pair
	}
	must(t, json.Unmarshal(raw, &stored))
	if stored.Bug.Title != "A slow runtime locks kubelet for good" || len(stored.Bug.Links) != 2 || len(stored.Pairs) != 1 {
		t.Fatalf("verdict.json has %+v, %+v", stored.Bug, stored.Pairs)
	}
	arm := stored.Pairs[0].Arms[0]
	if arm.Source != "k8s.io/kubernetes v1.34.4" || strings.Join(arm.Changed, ";") != "unselect at pkg/kubelet/pleg/generic.go:395" ||
		!strings.HasPrefix(arm.Does[0], "(*GenericPLEG).Relist sends on eventChannel without a default") || len(arm.Does) != 1 {
		t.Errorf("the vulnerable arm is told as %+v: want what the fixed arm lacks, and nothing else", arm)
	}
	if fixed := stored.Pairs[0].Arms[1]; fixed.String() != "k8s.io/kubernetes v1.34.4" {
		t.Errorf("the fixed arm is told as %s", fixed)
	}
	for name, text := range reports(t, v) {
		for _, want := range []string{"A slow runtime locks kubelet for good", "https://github.com/kubernetes/kubernetes/pull/72709",
			"k8s.io/kubernetes v1.34.4, with unselect at pkg/kubelet/pleg/generic.go:395"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s doesn't say %q:\n%.2000s", name, want, text)
			}
		}
		if others := "Other scenarios of kubelet: pleg-relist-storm, orphaned-pods"; name != report.SummaryFile && !strings.Contains(text, others) {
			t.Errorf("%s doesn't say %q", name, others)
		}
		if whole := name == report.PageFile || name == report.ReportFile; whole != strings.Contains(text, "g.eventChannel &lt;- events[i]") && whole != strings.Contains(text, "g.eventChannel <- events[i]") {
			t.Errorf("%s has the change: %t", name, !whole)
		}
	}
}

// reports are the reports of a verdict for people, by name.
func reports(t *testing.T, v judge.Verdict) map[string]string {
	t.Helper()
	dir := t.TempDir()
	must(t, report.Write(dir, v))
	out := map[string]string{}
	for _, name := range []string{report.PageFile, report.ReportFile, report.SummaryFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		out[name] = string(b)
	}
	var b bytes.Buffer
	must(t, report.Text(&b, v, false))
	out["the terminal"] = b.String()
	return out
}
