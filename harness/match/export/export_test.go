package export_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	_ "github.com/kube-relapse/relapse/harness/build/mutate"
	_ "github.com/kube-relapse/relapse/harness/evidence/capture"
	_ "github.com/kube-relapse/relapse/harness/inject/fault"
	_ "github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/match/export"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func exported(t *testing.T, form string) string {
	t.Helper()
	files, err := filepath.Glob("../../../scenarios/*/scenario.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	var all []*scenario.Scenario
	for _, f := range files {
		s, err := scenario.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	var b bytes.Buffer
	if err := export.Write(&b, all, form); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The expressions of troubleshoot's analyzers find the incident's own text and no healthy one, as Go's regexp, which
// troubleshoot uses, reads them.
func TestTroubleshoot(t *testing.T) {
	text := exported(t, "troubleshoot")
	var doc struct {
		Spec struct {
			Analyzers []struct {
				TextAnalyze struct{ CheckName, FileName, Regex string } `json:"textAnalyze"`
			} `json:"analyzers"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	by := map[string]*regexp.Regexp{}
	for _, a := range doc.Spec.Analyzers {
		re, err := regexp.Compile(a.TextAnalyze.Regex)
		if err != nil {
			t.Errorf("%s: %v", a.TextAnalyze.CheckName, err)
			continue
		}
		by[a.TextAnalyze.CheckName] = re
	}
	dump := func(state string) string {
		return "goroutine 9 [" + state + "]:\nk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(0x1)\n\t/generic.go:261 +0x1\n"
	}
	const panicked = "panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV]\n\ngoroutine 1 [running]:\n"
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"pleg-deadlock, relist-blocked-for-minutes, for-minutes", dump("chan send, 1140 minutes"), true},
		{"pleg-deadlock, relist-blocked-for-minutes, for-minutes", dump("chan send"), false},
		{"pleg-deadlock, relist-in-send, relist-blocked", dump("chan send"), true},
		{"pleg-deadlock, relist-in-send, relist-blocked", dump("select"), false},
		{"scheduler-nil-pointer, died-of-it, died-of-it", panicked + "x/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)\n", true},
		{"scheduler-nil-pointer, died-of-it, died-of-it", panicked + "main.main()\n", false},
	} {
		re := by[c.name]
		if re == nil {
			t.Errorf("there is no analyzer %q", c.name)
		} else if re.MatchString(c.text) != c.want {
			t.Errorf("%s: %s finds something in %q: %t", c.name, re, c.text, !c.want)
		}
	}
	for _, want := range []string{"fleet-status-churn, status-churn: churn (churn) can't be said", "pleg-deadlock: the versions that are affected (<1.14.0)"} {
		if !strings.Contains(text, "# - "+want) {
			t.Errorf("what was lost lacks %q:\n%s", want, text)
		}
	}
}

func TestPrometheus(t *testing.T) {
	text := exported(t, "prometheus")
	var doc struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range doc.Groups[0].Rules {
		got[r.Alert] = r.Expr
	}
	for alert, want := range map[string]string{
		"RelapseServiceWorkersStuckLongestWorkTakesMinutes": `workqueue_longest_running_processor_seconds{name="service"} > 90.0`,
		"RelapsePlegDeadlockNodeNotReady":                   `kube_node_status_condition{condition="Ready",status="false"} == 1`,
	} {
		if got[alert] != want {
			t.Errorf("%s is %q, want %q", alert, got[alert], want)
		}
	}
	if want := `node-not-ready: kube-state-metrics tells neither the reason "KubeletNotReady"`; !strings.Contains(text, want) {
		t.Errorf("what was lost lacks %q:\n%s", want, text)
	}
}
