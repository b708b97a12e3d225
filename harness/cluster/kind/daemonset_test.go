package kind

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	_ "github.com/kube-relapse/relapse/harness/cluster/seams"
)

// All pods of a DaemonSet are made from one template, so each node needs a program; only a DaemonSet's is given away.
func TestEveryNodeHasADaemonSetsProgram(t *testing.T) {
	nodes := []cluster.NodeSpec{{Name: "control-plane"}, {Name: "worker", Programs: map[string]string{"kube-proxy": "a", "kubelet": "k"}},
		{Name: "worker2", Programs: map[string]string{"kube-proxy": "b"}}}
	got := withDaemonPrograms(nodes)
	for i, want := range []string{"b", "a", "b"} {
		if got[i].Programs["kube-proxy"] != want {
			t.Errorf("%s has %v, want %s", got[i].Name, got[i].Programs, want)
		}
	}
	if len(got[0].Programs) != 1 || len(got[1].Programs) != 2 || nodes[0].Programs != nil {
		t.Errorf("the nodes have %v, and had %v", got, nodes)
	}
	if plain := withDaemonPrograms(three(nil).Nodes); len(plain[1].Programs) != 0 {
		t.Errorf("where no node has one, a node has %v", plain[1].Programs)
	}
}

// The seam before a DaemonSet's pods is on each node, even on those of no arm, and no other seam is given away.
func TestEveryNodeHasADaemonSetsSeam(t *testing.T) {
	nodes := []cluster.NodeSpec{{Name: "control-plane"}, {Name: "worker", Seams: map[string]string{"kube-proxy-apiserver": "/p", "kubelet-apiserver": "/k"}}}
	daemons, err := seamsOfDaemons(nodes)
	if err != nil {
		t.Fatal(err)
	}
	got := withDaemonSeams(nodes, daemons)
	if s := got[0].Seams; len(s) != 1 || s["kube-proxy-apiserver"] != "/p" || len(got[1].Seams) != 2 || nodes[0].Seams != nil {
		t.Errorf("the nodes have %v and %v, and had %v", s, got[1].Seams, nodes)
	}
	if plain, err := seamsOfDaemons([]cluster.NodeSpec{{Seams: map[string]string{"etcd": "/p"}}}); err != nil || len(plain) != 0 {
		t.Errorf("the seam before etcd leads %v, %v", plain, err)
	}
	n, err := withSeams(got[0])
	if err != nil || len(n.Files) != 1 || len(n.Args) != 0 || n.Units[0].Name != "relapse-kube-proxy-apiserver.service" {
		t.Errorf("the control plane gets %+v, %v", n, err)
	}
}

// The DaemonSet mounts the program over the image's, as a file that must be there, once the API server takes that.
func TestADaemonSetMountsItsProgram(t *testing.T) {
	asked := 0
	var got appsv1.DaemonSet
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			http.Error(w, "not yet", http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &got)
		}
		if err != nil || r.Method != http.MethodPatch || r.URL.Path != "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy" ||
			r.Header.Get("Content-Type") != "application/strategic-merge-patch+json" {
			t.Errorf("%s %s as %s: %s, %v", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body, err)
		}
	}))
	defer s.Close()
	p := &Provider{dir: t.TempDir()}
	c := &Cluster{p: p, name: "relapse-a"}
	kubeconfig := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + s.URL +
		`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.MkdirAll(filepath.Dir(p.KubeconfigPath(c.name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.KubeconfigPath(c.name), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := []cluster.NodeSpec{{Programs: map[string]string{"kube-proxy": "a", "kubelet": "k"}}}
	nodes[0].Seams = map[string]string{"kube-proxy-apiserver": "/proxy", "etcd": "/proxy"}
	daemons, err := seamsOfDaemons(nodes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.changeDaemons(t.Context(), nodes, daemons); err != nil {
		t.Fatal(err)
	}
	pod := got.Spec.Template.Spec
	if len(pod.Volumes) != 1 || len(pod.Containers) != 1 || len(pod.Containers[0].VolumeMounts) != 1 || asked != 2 {
		t.Fatalf("asked %d times, for %+v", asked, pod)
	}
	v, m := pod.Volumes[0], pod.Containers[0].VolumeMounts[0]
	if v.HostPath == nil || v.HostPath.Path != "/opt/relapse/subject/kube-proxy" || *v.HostPath.Type != "File" || pod.Containers[0].Name != "kube-proxy" ||
		m.Name != v.Name || m.MountPath != "/usr/local/bin/kube-proxy" || !m.ReadOnly {
		t.Errorf("%+v is mounted as %+v", v, m)
	}
	if got := pod.Containers[0].Args; len(got) != 1 || got[0] != "--master=https://127.0.0.1:16445" {
		t.Errorf("the arguments after kubeadm's are %q, want those of the seam", got)
	}
}

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A cluster isn't ready while an arm's node has a pod of before the seam: that pod goes past the proxy. Pods on nodes of
// no arm don't matter.
func TestAClusterWaitsForPodsThatTheSeamLeads(t *testing.T) {
	pod := func(name, node string, args ...string) corev1.Pod {
		out := corev1.Pod{}
		out.Name, out.Spec.NodeName = name, node
		out.Spec.Containers = []corev1.Container{{Name: "kube-proxy", Args: args}}
		return out
	}
	led := "--master=https://127.0.0.1:16445"
	old, made := pod("old", "x-worker"), pod("new", "x-worker", led)
	plain := pod("plain", "x-control-plane")
	for _, tc := range []struct {
		name  string
		looks [][]corev1.Pod // what each look finds; the last is found again and again
		want  string         // the error; "" for none
	}{
		{"led from the start", [][]corev1.Pod{{plain, made}}, ""},
		{"replaced after a while", [][]corev1.Pod{{plain}, {plain, old}, {plain, old, made}, {plain, made}}, ""},
		{"never replaced", [][]corev1.Pod{{plain, old}},
			"waiting until the seam kube-proxy-apiserver leads the pods of kube-proxy: the pod old on x-worker runs without " + led},
		{"none there", [][]corev1.Pod{{plain}}, "waiting until the seam kube-proxy-apiserver leads the pods of kube-proxy: x-worker has no pod of it"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, looks := &Cluster{rest: &rest.Config{Host: "https://x"}}, 0
			c.Machines = []*Node{{name: "x-control-plane"}, {name: "x-worker", arm: "fixed"}}
			c.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if got := r.URL.RequestURI(); got != "/api/v1/namespaces/kube-system/pods?labelSelector=k8s-app%3Dkube-proxy" {
					t.Errorf("%s: it asks for %s", tc.name, got)
				}
				found := tc.looks[min(looks, len(tc.looks)-1)]
				looks++
				raw, err := json.Marshal(corev1.PodList{Items: found})
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(raw))}, err
			})}
			err := c.awaitLed(t.Context(), []daemonSeam{{name: "kube-proxy-apiserver", component: "kube-proxy", args: []string{led}}})
			if tc.want == "" && (err != nil || looks != len(tc.looks)) || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("%s: after %d looks %v; want %q after %d", tc.name, looks, err, tc.want, len(tc.looks))
			}
		})
	}
}
