//go:build cluster

// These tests run real control planes. Their programs come from the cache of builds, or are built: that takes half an
// hour where nothing of Kubernetes was built before.
package processes_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/processes"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// The programs of the etcd seam and of the scheduler's extender, among the others.
const (
	proxy    = "relapse-etcd"
	extender = "relapse-scheduler-extender"
)

// recorder notes down what is built.
type recorder struct {
	cluster.Builder
	programs map[string]string
}

func (r recorder) BuildPrograms(ctx context.Context, module, version string, packages ...string) (map[string]string,
	error) {
	out, err := r.Builder.BuildPrograms(ctx, module, version, packages...)
	maps.Copy(r.programs, out)
	return out, err
}

// prepared is a provider with the programs of the default version, and those.
func prepared(t testing.TB) (*processes.Provider, map[string]string) {
	t.Helper()
	return preparedFor(t, topology(nil))
}

func preparedFor(t testing.TB, top cluster.Topology) (*processes.Provider, map[string]string) {
	t.Helper()
	p, _ := newProvider(t)
	made, err := artifacts.Open(artifacts.Options{Root: "../../.."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	built := recorder{made, map[string]string{}}
	versions, err := p.Prepare(t.Context(), cluster.Needs{Topologies: []cluster.Topology{top}, Builder: built})
	if err != nil || versions["controlPlane"] != cluster.DefaultVersion ||
		versions["etcd"] != component.EtcdVersion {
		t.Fatalf("prepared %v, %v", versions, err)
	}
	for program, fixture := range map[string]string{proxy: "connection-proxy", extender: "scheduler-extender"} {
		if built.programs[program], err = made.BuildFixture(t.Context(), fixture); err != nil {
			t.Fatal(err)
		}
	}
	return p, built.programs
}

func TestRealCluster(t *testing.T) {
	p, programs := prepared(t)
	top := topology(nil)
	top.Nodes[0].Seams = map[string]string{"etcd": programs[proxy], "scheduler-apiserver": programs[proxy],
		"controller-manager-apiserver": programs[proxy], seams.Webhooks: programs[proxy]}
	caps, err := p.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	clustertest.ProviderConformance(t, p, name, top, func(t *testing.T, c cluster.Cluster) {
		t.Logf("created in %s", time.Since(began))
		t.Run("Private", func(t *testing.T) { private(t, p) })
		t.Run("Works", func(t *testing.T) { works(t, c) })
		t.Run("Evidence", func(t *testing.T) { evidence(t, c) })
		t.Run("Seam", func(t *testing.T) { seamOfEtcd(t, c) })
		t.Run("NarrowEtcd", func(t *testing.T) { narrowEtcd(t, c) })
		t.Run("LateControllers", func(t *testing.T) { lateControllers(t, c) })
		t.Run("SchedulerCutOff", func(t *testing.T) { schedulerCutOff(t, c) })
		t.Run("LedWebhook", func(t *testing.T) { ledWebhook(t, c) })
		t.Run("LogFiles", func(t *testing.T) { logFiles(t, c) })
		clustertest.Conformance(t, c, caps, top)
		t.Run("Installed", func(t *testing.T) { installed(t, c) })
		t.Run("Limited", func(t *testing.T) { limited(t, c, caps) })
		t.Run("BacksOff", func(t *testing.T) { backsOff(t, c) })
	})
}

func private(t *testing.T, p *processes.Provider) {
	info, err := os.Stat(p.KubeconfigPath(name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v; want mode 0600", info, err)
	}
}

// works wants the controllers and the scheduler to do their work: a new namespace gets its service account, a pod is
// tried to be scheduled, and a namespace that is deleted goes.
func works(t *testing.T, c cluster.Cluster) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*untilTime)
	defer cancel()
	core := client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		_, err := core.ServiceAccounts("work").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none.invalid/none"}}}}
	if _, err := core.Pods("work").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		got, err := core.Pods("work").Get(ctx, "pod", metav1.GetOptions{})
		if err == nil && (len(got.Status.Conditions) != 1 ||
			got.Status.Conditions[0].Message != "no nodes available to schedule pods") {
			err = errors.New("not looked at by the scheduler: " + got.Status.String())
		}
		return err
	})
	if err := core.Namespaces().Delete(ctx, "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		ns, err := core.Namespaces().Get(ctx, "work", metav1.GetOptions{})
		if err == nil {
			return errors.New("it is still there: " + ns.Status.String())
		}
		return nil
	})
}

// untilTime is how long a control plane may take to do a thing. It takes seconds if the host does nothing else.
const untilTime = 3 * time.Minute

// until asks until there is no error.
func until(t *testing.T, ask func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(untilTime); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Error(err)
}

// evidence asks each component for all that collectors ask a subject for.
func evidence(t *testing.T, c cluster.Cluster) {
	for _, name := range component.Names(component.StaticPods) {
		row, _ := component.Of(name)
		k := c.Components(name)[0]
		want := map[string]string{"/metrics": "process_cpu_seconds_total"}
		if row.Kubernetes {
			want["/debug/pprof/goroutine?debug=1"], want["/debug/pprof/heap"] = "goroutine profile: total", ""
		}
		for path, text := range want {
			r, err := k.Get(t.Context(), path)
			if err != nil {
				t.Error(err)
				continue
			}
			if body, err := io.ReadAll(r); err != nil || !strings.Contains(string(body), text) {
				t.Errorf("%s of %s is %.200q, %v; want %q in it", path, name, body, err, text)
			}
			_ = r.Close()
		}
	}
}

// seamOfEtcd makes etcd slow for the API server, sees it by another question, and lifts it.
func seamOfEtcd(t *testing.T, c cluster.Cluster) {
	n := c.Nodes()[0]
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "latency", []byte(`{"connection":"etcd","latency":"500ms"}`))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	write := func() time.Duration {
		t.Helper()
		began := time.Now()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "slow-"}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	target := fault.Target{Run: "run", Name: "slow", Cluster: c, Nodes: []cluster.Node{n}, Expires: time.Minute,
		Events: event.NewStream()}
	if err := f.Inject(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if took := write(); took < 500*time.Millisecond {
		t.Errorf("a write took %s with a slow etcd", took)
	}
	if err := f.Recover(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	took := write()
	for range 4 { // on a busy machine one write may be late by itself; under the latency all are
		took = min(took, write())
	}
	if took >= 500*time.Millisecond {
		t.Errorf("a write took %s once etcd was fast again", took)
	}
	if _, err := n.Abilities().RunProxy(t.Context(), nil, "sh", "-c", "true"); err == nil ||
		!strings.Contains(err.Error(), "the cluster has no such proxy") {
		t.Errorf("another program: %v", err)
	}
}

// logFiles has the collector of static pods' logs find each component's.
func logFiles(t *testing.T, c cluster.Cluster) {
	files, err := filepath.Glob(filepath.Join(c.Nodes()[0].Abilities().LogFolder(),
		"kube-system_*-"+c.Nodes()[0].Name()+"_*", "*", "0.log"))
	if err != nil || len(files) != 8 {
		t.Errorf("the log files are %q, %v", files, err)
	}
}

// installed gives the scheduler another program, a copy with a byte behind it, and restarts it from that.
func installed(t *testing.T, c cluster.Cluster) {
	k := c.Components("kube-scheduler")[0]
	id := func() cluster.Identity {
		t.Helper()
		id, err := k.Identity(t.Context(), true)
		if err != nil || id.PID == 0 {
			t.Errorf("it is %+v, %v", id, err)
		}
		return id
	}
	// It ends of itself, and waits before it starts again, if the API server was away for longer than its lease.
	until(t, func() error {
		body, err := k.Get(t.Context(), "/healthz")
		if err != nil {
			return err
		}
		return body.Close()
	})
	before := id()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/exe", before.PID))
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, append(b, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := k.Node().Install(t.Context(), "kube-scheduler", other); err != nil {
		t.Fatal(err)
	}
	if now := id(); now.PID != before.PID || now.SHA256 != before.SHA256 {
		t.Errorf("installed and not restarted it is %+v, before %+v", now, before)
	}
	if err := k.Abilities().Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := id(); now.SHA256 == before.SHA256 || now.Restarts != before.Restarts {
		t.Errorf("restarted it is %+v, before %+v", now, before)
	}
	if err := k.Node().Install(t.Context(), "kubelet", other); err == nil ||
		!strings.Contains(err.Error(), "it has no such component") {
		t.Errorf("installing a kubelet: %v", err)
	}
}

// limited has the API server restart under a limit, and answer: from what this user can't do it is kept.
func limited(t *testing.T, c cluster.Cluster, caps cluster.Capabilities) {
	k := c.Components("kube-apiserver")[0]
	before, err := k.Identity(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	err = k.Abilities().Limit(t.Context(), "1Gi")
	if why := caps.NoMemoryLimits; why != "" {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("it ended with %v, want %s", err, why)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	now, err := k.Identity(t.Context(), false)
	if err != nil || now.PID == before.PID || now.Restarts != before.Restarts {
		t.Fatalf("it is %+v, %v; it was %+v: want another process, and no restart counted", now, err, before)
	}
	in, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", now.PID))
	if err != nil || !strings.Contains(string(in), "/"+name+".kube-apiserver\n") {
		t.Errorf("its cgroups are %s, %v; want one of its own", in, err)
	}
}

// backsOff kills a component twice in a row: the second time there is none for a while, which is an answer.
func backsOff(t *testing.T, c cluster.Cluster) {
	k := c.Components("kube-scheduler")[0]
	var last cluster.Identity
	until(t, func() (err error) {
		if last, err = k.Identity(t.Context(), false); err == nil && last.PID != 0 {
			err = errors.Join(k.Signal(t.Context(), syscall.SIGKILL, cluster.Identity{}), errors.New("it was alive"))
		}
		return err
	})
	if last.PID != 0 {
		t.Errorf("it is always there: %+v", last)
	}
	if err := k.Signal(t.Context(), syscall.SIGKILL, cluster.Identity{}); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("a signal to none: %v", err)
	}
}
