package conformance_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// loaded is a cluster in memory on which a load runs.
type loaded struct {
	*clustertest.Cluster
	client *kubernetes.Clientset         // bypasses what is scripted
	began  atomic.Pointer[chan struct{}] // of the current or the next round; closed when the round has begun
	told   chan string
	seen   *events
}

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	s := &loaded{
		Cluster: clustertest.New("loads", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}}),
		told:    make(chan string, 100), seen: &events{},
	}
	s.began.Store(new(make(chan struct{})))
	t.Cleanup(s.Close)
	s.client = testerOf(t, s.Cluster)
	return s
}

func (s *loaded) target() load.Target {
	return load.Target{Run: "run", Name: "item", Arm: arm, Cluster: s.Cluster, Nodes: s.Nodes(), Events: event.NewStream(s.seen), Round: func(n int, began bool) {
		if began {
			close(*s.began.Load())
		} else {
			s.began.Store(new(make(chan struct{}))) // nobody waits between rounds
		}
		s.told <- fmt.Sprint(n, map[bool]string{true: " began", false: " over"}[began])
	}}
}

// script makes f handle all requests to the API server first, except the suite's own.
func (s *loaded) script(f func(http.ResponseWriter, *http.Request) bool) {
	s.API().Intercept(func(w http.ResponseWriter, r *http.Request) bool { return r.UserAgent() != tester && f(w, r) })
}
