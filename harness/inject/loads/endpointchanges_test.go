package loads_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// Arms that share a cluster share a set of services. With six of them at once, each of which made all of it, a real API
// server was kept so busy with node ports that it gave up.
func TestASetOfServicesIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	var made atomic.Int64
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/services") {
			made.Add(1)
		}
		return false
	})
	var locks load.Locks
	var arms sync.WaitGroup
	for _, arm := range []string{"vulnerable", "fixed", "candidate"} {
		arms.Go(func() {
			l, err := kinds.Decode[load.Load](kinds.Load, "endpointChanges", json.RawMessage(`{"set":"s","services":60,"changes":1}`))
			if err != nil {
				t.Error(err)
				return
			}
			target := w.target()
			target.Arm, target.Locks = arm, &locks
			if err := l.Prepare(t.Context(), target); err != nil {
				t.Error(err)
			}
		})
	}
	arms.Wait()
	list, err := w.client.CoreV1().Services("relapse-s").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 60 || made.Load() != 60 {
		t.Errorf("%d services are there, after %d were made", len(list.Items), made.Load())
	}
}
