package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
)

const pods = `apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: api-1
    namespace: kube-system
  spec:
    containers:
    - image: registry.k8s.io/kube-apiserver:v1.22.2
      name: kube-apiserver
  status:
    containerStatuses:
    - name: kube-apiserver
      restartCount: 7
      lastState:
        terminated:
          exitCode: 137
          reason: OOMKilled
          finishedAt: "2026-03-01T10:00:00Z"
- apiVersion: v1
  kind: Event
  type: Warning
  reason: BackOff
  message: Back-off restarting failed container
  count: 12
  involvedObject: {kind: Pod, namespace: kube-system, name: api-1}
kind: List
`

// Resources tell versions, restarts and warnings, whether they come in lists, one after the other, in YAML or in JSON.
func TestResources(t *testing.T) {
	asJSON := `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"api-1","namespace":"kube-system"},` +
		`"spec":{"containers":[{"name":"kube-apiserver","image":"registry.k8s.io/kube-apiserver:v1.22.2"}]},"status":{"containerStatuses":` +
		`[{"name":"kube-apiserver","restartCount":7,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-03-01T10:00:00Z"}}}]}}]}` + "\n" +
		`{"kind":"Event","type":"Warning","reason":"BackOff","count":12,"message":"Back-off restarting failed container","regarding":{"kind":"Pod","namespace":"kube-system","name":"api-1"}}`
	for name, text := range map[string]string{"a list in YAML": pods, "JSON": asJSON,
		"documents in YAML": strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(strings.SplitN(pods, "items:\n", 2)[1], "kind: List\n"), "\n  ", "\n"), "- apiVersion", "---\napiVersion")} {
		t.Run(name, func(t *testing.T) {
			r := run(t, strings.NewReader(text), "-")
			if got := fmt.Sprintf("%+v", r.Unexplained.Restarts); got != "[{Container:kube-apiserver Place:pod kube-system/api-1 Restarts:7 Reason:OOMKilled ExitCode:137 At:2026-03-01 10:00:00 +0000 UTC Path:stdin}]" {
				t.Errorf("restarts: %s", got)
			}
			if got := fmt.Sprintf("%+v", r.Unexplained.Warnings); !strings.HasPrefix(got, "[{Reason:BackOff About:pod kube-system/api-1 Count:12 Message:Back-off") {
				t.Errorf("warnings: %s", got)
			}
			i := of(t, r, "apiserver-goroutine-leak")
			if len(i.Subjects) != 1 || i.Subjects[0].Version != "v1.22.2" || i.Word() != "unknown" {
				t.Errorf("it is %s: %+v", i.Word(), i.Subjects)
			}
			if len(r.Problems) > 0 {
				t.Errorf("problems: %v", r.Problems)
			}
		})
	}
}

// What runs is named apart from what is many, and so is a place that logs without end.
func TestUnexplained(t *testing.T) {
	loop := strings.Repeat("E0301 10:00:00.000000       1 reflector.go:158] \"Unhandled Error\" err=\"x\"\n", 300)
	r := run(t, nil, files(t, map[string]string{"kubelet.log": loop + "I0301 10:00:00.000000       1 a.go:1] fine\n",
		"dump.txt": real(t, "../../internal/checktest/testdata/spinning.debug2")}))
	if !slices.ContainsFunc(r.Unexplained.Running, func(g match.Group) bool {
		return len(g.Frames) > 1 && strings.Contains(g.Frames[1], "WrapExpiration.func1")
	}) {
		t.Errorf("what runs: %+v", r.Unexplained.Running)
	}
	for _, g := range r.Unexplained.Running {
		if strings.Contains(strings.Join(g.Frames, " "), "writeGoroutineStacks") {
			t.Errorf("the dump's own writer is told: %+v", g)
		}
	}
	if got := fmt.Sprintf("%+v", r.Unexplained.Loops); !strings.Contains(got, "At:reflector.go:158 Lines:300 Of:301") {
		t.Errorf("loops: %s", got)
	}
}
