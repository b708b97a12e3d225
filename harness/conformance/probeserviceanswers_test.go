package conformance_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/internal/clustertest"
)

func init() {
	probes.add(probeCase{lay: layServers, idle: answersWrongly}, "serviceAnswers")
}

// layServers gives the API servers an endpoint, and nodes the right answer when they call a service through curl.
func layServers(t *testing.T, s *loaded) {
	t.Helper()
	s.API().AddNamespace(metav1.NamespaceDefault, nil)
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 6443}}}}}
	if _, err := s.client.CoreV1().Endpoints(metav1.NamespaceDefault).Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.curls(func() (code string) { return "200" })
}

// answersWrongly gives nodes no answer at first, and then that of some other server.
func answersWrongly(_ *testing.T, s *loaded) {
	var calls atomic.Int32
	s.curls(func() (code string) {
		if calls.Add(1) == 1 {
			return ""
		}
		return "404"
	})
}

// curls scripts the codes that nodes get by HTTPS through curl. An empty code is no answer.
func (s *loaded) curls(code func() string) {
	for _, n := range s.Nodes() {
		n.(*clustertest.Node).Handle("curl", func(_ context.Context, _ io.Reader, argv []string) ([]byte, error) {
			if strings.HasPrefix(argv[len(argv)-1], "https://") {
				if said := code(); said != "" {
					return []byte(said), nil
				}
			}
			return []byte("000"), errors.New("exit status 7")
		})
	}
}
