package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/internal/clustertest"
)

// layLogs gives a node the log file of a kubelet that runs as a static pod, and an audit log, whose path it returns.
// From then on a shell on the node runs on this machine, with the paths of both logs replaced, and with the programs
// that list a network.
func layLogs(t *testing.T, n *clustertest.Node) (audit string) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "kube-system_kubelet-"+n.Name()+"_0a1b", "kubelet")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	line := time.Now().UTC().Format(time.RFC3339Nano) + " stderr F " + skipped + "\n"
	if err := os.WriteFile(filepath.Join(dir, "0.log"), []byte(line), 0o640); err != nil {
		t.Fatal(err)
	}
	event := `{"kind":"Event","auditID":"a","stage":"ResponseComplete","stageTimestamp":"2026-11-22T16:00:00.000000Z"}` + "\n"
	audit = filepath.Join(root, "audit.log")
	if err := os.WriteFile(audit, []byte(event), 0o640); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	layNetwork(t, programs)
	n.Handle("sh", func(ctx context.Context, stdin io.Reader, argv []string) ([]byte, error) {
		args := slices.Clone(argv)
		if i := slices.Index(args, "/var/log/pods"); i >= 0 {
			args[i] = root
		}
		if i := slices.Index(args, filepath.Join(n.Folder("kubelet"), "audit.log")); i >= 0 {
			args[i] = audit
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdin, cmd.Env = stdin, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
		return cmd.Output()
	})
	return audit
}

// asksInVain writes audit lines of the arm's agent ten times a second until ctx ends. Each records a write that was
// refused and changed nothing.
func asksInVain(ctx context.Context, wg *sync.WaitGroup, audit string) {
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			f, err := os.OpenFile(audit, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return // the checks that need the file report that it is missing
			}
			_, _ = fmt.Fprintf(f, `{"kind":"Event","auditID":"vain-%d","stage":"ResponseComplete","verb":"update","user":{"username":"agent-%s"},`+
				`"objectRef":{"resource":"bundledeployments","apiGroup":"fleet.cattle.io","subresource":"status","namespace":%q,"name":"a"},`+
				`"responseStatus":{"code":409},"stageTimestamp":%q}`+"\n", n, arm, ownNamespace, time.Now().UTC().Format(metav1.RFC3339Micro))
			_ = f.Close()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}

// podCluster is the cluster with an API server that also lists a static kubelet pod on each node. It answers as long
// as the cluster's API server does.
type podCluster struct{ *clustertest.Cluster }

func (c podCluster) RESTConfig() *rest.Config {
	cfg := c.Cluster.RESTConfig()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return staticPods{next, c.Cluster} })
	return cfg
}

type staticPods struct {
	next    http.RoundTripper
	cluster *clustertest.Cluster
}

func (s staticPods) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/api/v1/namespaces/kube-system/pods" {
		return s.next.RoundTrip(r)
	}
	there := r.Clone(r.Context())
	there.URL.Path, there.URL.RawQuery = "/version", ""
	resp, err := s.next.RoundTrip(there)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	for _, n := range s.cluster.Nodes() {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubelet-" + n.Name()},
			Spec:       corev1.PodSpec{NodeName: n.Name()},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "kubelet", ContainerID: "containerd://0a1b", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			}},
		})
	}
	b, err := json.Marshal(list)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, err
}
