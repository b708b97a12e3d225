package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
)

// subject is the first worker's kubelet, with all its answers scripted.
type subject struct {
	*world
	relists  atomic.Int64
	relisted time.Time
	broken   atomic.Bool       // whether its endpoints fail
	programs string            // a folder with the programs that only the node's shell finds
	files    map[string]string // what the node's shell finds at a path
}

// dump is a goroutine profile with one goroutine that waits.
const dump = `goroutine 412 [chan send, 3 minutes]:
k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist(0xc000b9c1e0)
	/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:331 +0xb4c
created by k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Start in goroutine 1
	/src/k8s.io/kubernetes/pkg/kubelet/pleg/generic.go:171 +0x10b

`

// skipped is the line that kubelet logs while PLEG isn't healthy.
const skipped = `"Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m0s ago; threshold is 3m0s"`

func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{world: newWorld(t), relisted: time.Now().Add(-10 * time.Second), programs: t.TempDir(), files: map[string]string{}}
	for path, text := range map[string]string{
		"/debug/pprof/goroutine": dump, "/debug/pprof/heap": "a profile", "/debug/pprof/profile": "a profile", "/livez": "ok", "/readyz": "ok",
	} {
		s.answers(path, func() string { return text })
	}
	s.answers("/metrics", s.metrics)
	s.layObjects()
	s.nodes[0].Handle("sh", s.shell)
	return s
}

// answers scripts what an endpoint of the kubelet answers until the endpoints are broken.
func (s *subject) answers(path string, answer func() string) {
	s.Component("worker", "kubelet").Answer(path, func(string) ([]byte, error) {
		if s.broken.Load() {
			return nil, errBroken
		}
		return []byte(answer()), nil
	})
}

// metrics returns the subject's metrics: a relist that began ten seconds before the subject, a counter that grows by
// one at each request, one that stands still, and a summary of operations that took two seconds each.
func (s *subject) metrics() string {
	n := s.relists.Add(1)
	return fmt.Sprintf("# TYPE seen_seconds gauge\nseen_seconds %d\n# TYPE grows_total counter\ngrows_total %d\n# TYPE stands_total counter\nstands_total 4\n"+
		"# TYPE took_seconds summary\ntook_seconds_sum %d\ntook_seconds_count %d\n", s.relisted.Unix(), n, 2*n, n)
}

// logs adds a message to the kubelet's journal, as its nth line.
func (s *subject) logs(n int, message string) {
	s.Component("worker", "kubelet").Log(fmt.Sprintf(`{"__CURSOR":"c%d","__REALTIME_TIMESTAMP":"%s","MESSAGE":%s}`, n,
		strconv.FormatInt(time.Now().UnixMicro(), 10), strconv.Quote(message)))
}

// shell runs a shell of the node on this machine, with the subject's programs and files.
func (s *subject) shell(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
	args := slices.Clone(argv)
	for i, arg := range args {
		if there, ok := s.files[arg]; ok {
			args[i] = there
		}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Env = stdin, append(os.Environ(), "PATH="+s.programs+":"+os.Getenv("PATH"))
	return cmd.Output()
}

// program gives the node's shell a program that prints a text.
func (s *subject) program(t *testing.T, name, prints string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.programs, name), []byte("#!/bin/sh\ncat <<'END'\n"+prints+"END\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// write adds a line to a file of this machine.
func write(t *testing.T, file, line string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// ownNamespace is the namespace of the arm that is looked at, if that is a workload.
const ownNamespace = "own"

// layObjects adds two kinds to the API server, with one object of each.
func (s *subject) layObjects() {
	for plural, kind := range map[string]string{"bundles": "Bundle", "bundledeployments": "BundleDeployment"} {
		s.API().AddKind(metav1.GroupVersionKind{Group: "fleet.cattle.io", Version: "v1alpha1", Kind: kind}, plural)
		s.putObject(plural, 0)
	}
}

// putObject writes an object as the arm's agent does.
func (s *subject) putObject(plural string, n int64) {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"n": n}}}
	o.SetNamespace(ownNamespace)
	o.SetName("a")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "agent-" + arm, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.Now())}})
	s.API().PutObject(plural+".fleet.cattle.io", o)
}

// target returns what a collector looks at: the cluster or, unless its case says otherwise, the node's kubelet.
func (s *subject) target(c capture.Collector, of collectorCase) capture.Target {
	if wide, ok := c.(capture.ClusterWide); ok && wide.ClusterWide() {
		return capture.Target{Arm: bundle.Shared, Cluster: s.Cluster}
	}
	to := capture.Target{
		Arm: arm, Cluster: s.Cluster, Node: s.nodes[0].Node, Component: s.Component("worker", "kubelet"),
		Phase: func() string { return check.Fault }, Mark: "schedule",
	}
	if of.target != nil {
		of.target(s, &to)
	}
	return to
}

// ofWorkload makes a target the arm's own namespace.
func ofWorkload(_ *subject, to *capture.Target) { to.Namespace = ownNamespace }

func failEndpoints(_ *testing.T, s *subject) { s.broken.Store(true) }

func powerOff(t *testing.T, s *subject) {
	if err := s.nodes[0].PowerOff(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closeAPI(_ *testing.T, s *subject) { s.Close() }
