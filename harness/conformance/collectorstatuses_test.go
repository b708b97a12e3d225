package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func init() {
	collectors.add(collectorCase{
		spec: `{"components":["kubelet"]}`, breaks: closeAPI,
		target: func(s *subject, to *capture.Target) { to.Cluster = podCluster{s.Cluster} },
	}, "containerStatuses")
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
