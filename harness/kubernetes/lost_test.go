package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/report"
)

func TestARunWhoseTrialsWereAllLostIsInconclusive(t *testing.T) {
	r, client, _ := farRun(t)
	add(t, client, "0", pod("a", corev1.PodFailed, 1, `{"why":"the disk is full"}`))
	for i, name := range []string{"b", "c"} {
		killed := pod(name, corev1.PodFailed, 137, "")
		killed.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
		add(t, client, []string{"1", "2"}[i], killed)
	}
	if err := r.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := harness.Conclude(harness.Options{Report: report.Write}, r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "3 of 3 trials left no evidence; 001: its recorder ended with exit code 1: the disk is full, which may be the incident's own doing; " +
		"002, 003: its recorder ended with exit code 137 (OOMKilled), which may be the incident's own doing; nothing is known of any arm"
	if v.LastLine() != "relapse: Inconclusive (exit 3)" || !strings.HasPrefix(v.Sentence, want) || v.Scenario != "x" {
		t.Errorf("%s: %s of %q, want\n%s", v.LastLine(), v.Sentence, v.Scenario, want)
	}
	for _, name := range []string{report.JUnitFile, report.ReportFile, report.SummaryFile, report.PageFile} {
		written, err := os.ReadFile(filepath.Join(r.Dir.Path(), name))
		if err != nil || !strings.Contains(string(written), "3 of 3 trials left no evidence") || strings.Contains(string(written), "0001-01-01") {
			t.Errorf("%s doesn't say it, or has the time of no trial: %v\n%s", name, err, written)
		}
	}
	again, err := judge.Run(r.Dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(r.Dir.Path(), judge.VerdictFile))
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := again.JSON(); err != nil || string(raw) != string(written) {
		t.Errorf("judged again, it is %s, %v; want %s", raw, err, written)
	}
	if err := ledger.RemoveIfEmpty(r.Dir.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir.Path(), judge.VerdictFile)); err != nil {
		t.Errorf("the verdict didn't outlive the Job: %v", err)
	}
}
