package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// loadEnv is what the suite has to know about a load: a spec of two rounds, and how the API server must behave so
// that each round begins and ends.
type loadEnv struct {
	spec  string
	calls int // in each round
	serve func(*loaded) func(http.ResponseWriter, *http.Request) bool
}

// loadEnvs has at least one entry for every registered load. Without one the suite fails.
var loadEnvs = map[string][]loadEnv{
	"createConfigMaps": {
		{spec: `{"calls":3,"rounds":2,"timeout":"2s"}`, calls: 3, serve: timesOut},
		{spec: `{"calls":4,"rounds":2}`, calls: 4, serve: func(*loaded) func(http.ResponseWriter, *http.Request) bool {
			return func(http.ResponseWriter, *http.Request) bool { return false }
		}},
	},
	"endpointChanges": {{spec: `{"set":"s","services":5,"changes":3,"every":"20ms","rounds":2}`, calls: 3, serve: func(*loaded) func(http.ResponseWriter, *http.Request) bool {
		return func(http.ResponseWriter, *http.Request) bool { return false }
	}}},
	"deleteCollection": {
		{spec: `{"items":200,"bytes":"64","calls":4,"begun":5,"rounds":2}`, calls: 4, serve: slowEtcd},
		{spec: `{"items":200,"bytes":"64","calls":4,"begun":5,"rounds":2,"still":"20ms"}`, calls: 4, serve: slowEtcd},
		{spec: `{"by":"namespaceController","items":40,"bytes":"64","calls":3,"begun":5,"rounds":2}`, calls: 3, serve: namespaceController},
	},
}

// timesOut answers creations as an API server does when a request's time is up.
func timesOut(*loaded) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		ours := r.Method == http.MethodPost && r.URL.Query().Get("timeout") == "2s"
		if ours {
			http.Error(w, "time is up", http.StatusGatewayTimeout)
		}
		return ours
	}
}

// loaded is a cluster in memory on which a load runs.
type loaded struct {
	*clustertest.Cluster
	client *kubernetes.Clientset         // bypasses what is scripted
	began  atomic.Pointer[chan struct{}] // of the current or the next round; closed when the round has begun
	told   chan string
	seen   *events
}

// tester is the user agent that tells the suite's own requests from the load's.
const tester = "the-tester"

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	s := &loaded{
		Cluster: clustertest.New("loads", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}}),
		told:    make(chan string, 100), seen: &events{},
	}
	s.began.Store(new(make(chan struct{})))
	t.Cleanup(s.Close)
	s.answers(true)
	cfg := s.RESTConfig()
	cfg.QPS, cfg.UserAgent = -1, tester
	var err error
	if s.client, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
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

// slowEtcd answers deletions of collections with a timeout once the round has begun. Until then it deletes objects,
// one by one.
func slowEtcd(s *loaded) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || path.Base(r.URL.Path) != "configmaps" {
			return false
		}
		cms, began := s.client.CoreV1().ConfigMaps(path.Base(path.Dir(r.URL.Path))), *s.began.Load()
		list, err := cms.List(r.Context(), metav1.ListOptions{})
		if err != nil {
			return true // the load has ended, and its call with it
		}
		for _, cm := range list.Items {
			select {
			case <-began:
				http.Error(w, "etcd is slow", http.StatusGatewayTimeout)
				return true
			case <-r.Context().Done():
				return true
			default:
				_ = cms.Delete(r.Context(), cm.Name, metav1.DeleteOptions{}) // another call may have been faster
			}
		}
		select {
		case <-began:
			http.Error(w, "etcd is slow", http.StatusGatewayTimeout)
		case <-r.Context().Done():
		}
		return true
	}
}

// namespaceController empties and finalizes each namespace that is deleted.
func namespaceController(s *loaded) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		dir, name := path.Split(r.URL.Path)
		if r.Method != http.MethodDelete || !strings.HasSuffix(dir, "/namespaces/") {
			return false
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			for s.empty(ctx, name) != nil && ctx.Err() == nil { // it isn't being deleted yet: the request goes on after this
			}
		}()
		return false
	}
}

func (s *loaded) empty(ctx context.Context, name string) error {
	ns, err := s.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if ns.DeletionTimestamp == nil {
		return fmt.Errorf("namespace %s is not being deleted", name)
	}
	cms := s.client.CoreV1().ConfigMaps(name)
	list, err := cms.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, cm := range list.Items {
		if err := cms.Delete(ctx, cm.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	_, err = s.client.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{})
	return err
}

// script makes f handle all requests to the API server first, except the suite's own.
func (s *loaded) script(f func(http.ResponseWriter, *http.Request) bool) {
	s.API().Intercept(func(w http.ResponseWriter, r *http.Request) bool { return r.UserAgent() != tester && f(w, r) })
}
