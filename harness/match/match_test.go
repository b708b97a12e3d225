package match_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/kube-relapse/relapse/harness/build/mutate"
	_ "github.com/kube-relapse/relapse/harness/evidence/capture"
	_ "github.com/kube-relapse/relapse/harness/inject/fault"
	_ "github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// loaded are the repository's own scenarios.
var loaded = sync.OnceValues(func() (out []*scenario.Scenario, err error) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	for _, f := range files {
		s, bad := scenario.Load(f)
		out, err = append(out, s), errors.Join(err, bad)
	}
	return out, err
})

func known(t testing.TB) []*scenario.Scenario {
	t.Helper()
	all, err := loaded()
	if err != nil || len(all) < 7 {
		t.Fatalf("%d scenarios, %v", len(all), err)
	}
	return all
}

// shipped are the baselines that are part of the program.
func shipped(t testing.TB) []*healthy.Baseline {
	t.Helper()
	all, err := healthy.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// files lays a folder down.
func files(t testing.TB, of map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range of {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t testing.TB, stdin io.Reader, paths ...string) match.Result {
	t.Helper()
	r, err := match.Run(context.Background(), known(t), shipped(t), paths, stdin)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func of(t testing.TB, r match.Result, name string) match.Incident {
	t.Helper()
	for _, i := range r.Incidents {
		if i.Name == name {
			return i
		}
	}
	t.Fatalf("no answer about %s", name)
	return match.Incident{}
}

// An incident is found in its own vulnerable arm, and in no other arm and no other run.
func TestOwnRuns(t *testing.T) {
	for _, name := range []string{"pleg-deadlock", "fleet-status-churn"} {
		t.Run(name, func(t *testing.T) {
			r := run(t, nil, "../report/testdata/earlier/"+name+".tar.zst")
			if len(r.Problems) > 0 {
				t.Errorf("problems: %v", r.Problems)
			}
			for _, i := range r.Incidents {
				for _, s := range i.Subjects {
					own := i.Name == name && strings.HasSuffix(s.Place, "arm vulnerable")
					if got := s.Met.String(); (got == "met") != own {
						t.Errorf("%s is %s in %s: %s", i.Name, got, s.Place, s.Why)
					}
				}
			}
			i := of(t, r, name)
			if len(i.Subjects) != 2 || i.Word() != "met" || r.Incidents[0].Name != name {
				t.Errorf("it is %s in %d subjects: %s", i.Word(), len(i.Subjects), i.Why)
			}
		})
	}
}

// kubelet is a dump of a kubelet whose relist and sync loop are in these states.
func kubelet(relist, loop string) string {
	return fmt.Sprintf("goroutine 1 [select]:\nk8s.io/kubernetes/cmd/kubelet/app.Run(0x1)\n\t/server.go:1 +0x1\nmain.main()\n\tcmd/kubelet/kubelet.go:1 +0x1\n\n"+
		"goroutine 386 [%s]:\nk8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).relist(0xc42069ea20)\n\t/generic.go:261 +0x74e\n\n"+
		"goroutine 400 [%s]:\ntime.Sleep(0x1)\n\t/time.go:1 +0x1\nk8s.io/kubernetes/pkg/kubelet.(*Kubelet).syncLoop(0x1)\n\t/kubelet.go:1 +0x1\n\n", relist, loop)
}

func apiserver(state string) string {
	return fmt.Sprintf("goroutine 1 [select]:\nk8s.io/kubernetes/cmd/kube-apiserver/app.Run(0x1)\n\t/server.go:1 +0x1\nmain.main()\n\tcmd/kube-apiserver/apiserver.go:1 +0x1\n\n"+
		"goroutine 9 [%s]:\nk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1(0x1)\n\t/store.go:1132 +0x1\n\n", state)
}

const panicText = `I0301 10:00:00.000000       1 server.go:152] "Starting Kubernetes Scheduler" version="%s"
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x10 pc=0x1]

goroutine 233 [running]:
k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*%s).checkAttachableInlineVolume(0x1)
	/csi.go:235 +0x1
`

func node(version, ready, message string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  nodeInfo: {kubeletVersion: %s}
  conditions:
  - {type: Ready, status: "%s", reason: KubeletNotReady, message: '%s', lastHeartbeatTime: "2026-03-01T10:00:00Z", lastTransitionTime: "2026-03-01T09:00:00Z"}
`, version, ready, message)
}

const overdue = `E0301 10:00:00.000000    1 kubelet.go:2000] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 5m1s ago; threshold is 3m0s"` + "\n"

func TestForeign(t *testing.T) {
	const pleg, leak, nilPointer = "pleg-deadlock", "apiserver-goroutine-leak", "scheduler-nil-pointer"
	blocked := kubelet("chan send, 1140 minutes", "sleep")
	for _, c := range []struct {
		name, incident string
		files          map[string]string
		want, why      string
	}{
		{"the incident's own dump", pleg, map[string]string{"a.txt": blocked}, "met", "a.txt: relist-blocked-for-minutes: relist-sends: 1 of 1 dumps show it"},
		{"no minutes are printed", pleg, map[string]string{"a.txt": kubelet("chan send", "sleep")}, "suspected", "relist-in-send"},
		{"the sync loop is elsewhere", pleg, map[string]string{"a.txt": kubelet("chan send, 1140 minutes", "select")}, "suspected", "relist-in-send"},
		{"a healthy dump", pleg, map[string]string{"a.txt": kubelet("select", "select")}, "not met", "0 of 1 dumps show it"},
		{"a cut dump", pleg, map[string]string{"a.txt": strings.TrimSuffix(kubelet("select", "select"), "+0x1\n\n")}, "unknown", "is cut short"},
		{"a cut dump that shows it", pleg, map[string]string{"a.txt": blocked + "goroutine 7 [sel"}, "met", "1 of 1"},
		{"a whole dump beside one that was cut", pleg, map[string]string{"a.txt": kubelet("select", "select") + "goroutine 7 [sel", "b.txt": blocked}, "met", "1 of 1"},
		{"a dump of another program", pleg, map[string]string{"a.txt": apiserver("select")}, "unknown", "nothing here is known to be of kubelet"},
		{"a dump of nobody that is known", pleg, map[string]string{"a.txt": "goroutine 1 [select]:\nmain.main()\n\t/a.go:1 +0x1\n\n"}, "unknown", "nothing here is known"},
		{"in the middle of a log", pleg, map[string]string{"kubelet.log": overdue + "SIGQUIT: quit\n\n" + blocked}, "met", "kubelet.log"},
		{"the log alone", pleg, map[string]string{"node1/kubelet.log": overdue}, "suspected", "kubelet-says-so: 1 such lines among 1"},
		{"a log with other lines", pleg, map[string]string{"kubelet.log": strings.Repeat("I0301 10:00:00.000000 1 a.go:1] fine\n", 9)}, "unknown", "no goroutine dump at debug=2 is there"},
		{"a journal", pleg, map[string]string{"j": `{"__REALTIME_TIMESTAMP":"1772359200000000","SYSLOG_IDENTIFIER":"kubelet","MESSAGE":` + quoted(strings.TrimSpace(overdue)) + "}\n"}, "suspected", "1 such lines"},
		{"a node that is not ready for it", pleg, map[string]string{"n.yaml": node("v1.13.5", "False", "PLEG is not healthy: pleg was last seen active 5m ago; threshold is 3m0s")}, "suspected", "node n1: node-not-ready"},
		{"a version with the fix", pleg, map[string]string{"n.yaml": node("v1.34.4", "False", "PLEG is not healthy: pleg was last seen active 5m"), "a.txt": kubelet("chan send", "sleep")},
			"not met", "the fix is in v1.14.0 and later; this is v1.34.4"},
		{"a version with the fix that shows it all the same", pleg, map[string]string{"n.yaml": node("v1.34.4", "True", ""), "a.txt": blocked}, "suspected", "a regression, another bug of the same shape"},
		{"a fork", pleg, map[string]string{"n.yaml": node("v1.34.4+rke2r1", "True", "")}, "unknown", ""},
		{"the leak", leak, map[string]string{"a": apiserver("chan send, 3 minutes")}, "met", "distributor-blocked-for-minutes"},
		{"the leak in a current version's call", leak, map[string]string{"a": strings.Replace(apiserver("chan send, 3 minutes"), ".func1(", ".func3(", 1)}, "met", "1 of 1 dumps show it"},
		{"a call that deletes", leak, map[string]string{"a": apiserver("chan send, 1 minutes")}, "suspected", "distributor-in-send"},
		{"the leak, below the runtime's frames", leak, map[string]string{"a": strings.Replace(apiserver("chan send, 3 minutes"), "]:\nk8s.io/apiserver",
			"]:\nruntime.gopark(0x1)\n\t/p.go:1 +0x1\nruntime.chansend(0x1)\n\t/p.go:1 +0x1\nk8s.io/apiserver", 1)}, "met", "distributor"},
		{"a panic of an affected version", nilPointer, map[string]string{"kube-scheduler/0.log": fmt.Sprintf(panicText, "v1.26.1", "CSILimits")}, "met", "died-of-it: 1 of 1 logs"},
		{"another panic", nilPointer, map[string]string{"kube-scheduler/0.log": fmt.Sprintf(panicText, "v1.26.1", "Other")}, "unknown", ""},
		{"a log of a fixed version", nilPointer, map[string]string{"kube-scheduler/0.log": strings.SplitAfter(fmt.Sprintf(panicText, "v1.26.2", ""), "\n")[0] + fineLine + "\n"}, "not met", "this is v1.26.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answered(t, run(t, nil, files(t, c.files)), c.incident, c.want, c.why)
		})
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Each input says what it was read as and what it can't hold; evidence names its file and line.
func TestInputs(t *testing.T) {
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	f, _ := w.Create("kubelet.log")
	io.WriteString(f, overdue+kubelet("chan send, 1140 minutes", "sleep"))
	w.Close()
	r := run(t, strings.NewReader(z.String()), "-", files(t, map[string]string{
		"cut.txt": kubelet("select", "select") + "goroutine 7 [sel", "bin": "\x00\x01\x02", "n.yaml": node("v1.13.5", "True", ""),
		"m": "# HELP kubernetes_build_info x\n# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.13.5\"} 1\n",
	}))
	var got []string
	for _, i := range r.Inputs {
		got = append(got, filepath.Base(i.Path)+" as "+i.As+": "+i.Lacks)
	}
	for _, want := range []string{
		"kubelet.log as goroutine dump (debug=2) with 3 goroutines, text of 1 lines: it holds no goroutines but those that a crash prints",
		"cut.txt as goroutine dump (debug=2) with 3 goroutines, cut short: it is of one moment", "n.yaml as resources, 1 of them nodes, pods and warnings: ",
		"m as Prometheus metrics: it is of one moment",
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("the inputs are %q, want %q among them", got, want)
		}
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "no text and no profile") {
		t.Errorf("problems: %v", r.Problems)
	}
	for _, s := range of(t, r, "pleg-deadlock").Subjects[0].Signs {
		want := map[string]string{"relist-blocked-for-minutes": "stdin/kubelet.log:8", "kubelet-says-so": "stdin/kubelet.log:1"}[s.Name]
		if want != "" && (len(s.Where) == 0 || s.Where[0] != want) {
			t.Errorf("%s is at %v, want %s", s.Name, s.Where, want)
		}
	}
}
