package loads_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func TestPrepare(t *testing.T) {
	w := newWorld(t)
	spec := `{"items":620,"bytes":"2Ki"}`
	var creations sync.Map
	var failed atomic.Int64
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
			n, _ := creations.LoadOrStore(r.Header.Get("Content-Type"), &atomic.Int64{})
			if n.(*atomic.Int64).Add(1) == 100 {
				failed.Add(1)
				status(500, metav1.StatusReasonInternalError, "etcdserver: request timed out")(rw, r)
				return true
			}
		}
		return false
	})
	l := w.prepare(t, spec)
	n, ok := creations.Load("application/vnd.kubernetes.protobuf")
	if !ok || n.(*atomic.Int64).Load() < 621 || failed.Load() != 1 {
		t.Errorf("the creations, one of which failed, were not made by protobuf")
	}
	list, err := w.client.CoreV1().ConfigMaps("relapse-deletions-1").List(t.Context(), metav1.ListOptions{LabelSelector: "relapse.dev/run=run"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 620 {
		t.Fatalf("%d items are there", len(list.Items))
	}
	seen := map[string]bool{}
	for i, cm := range list.Items {
		size := 0
		for _, v := range cm.Data {
			size += len(v)
			seen[v] = true
		}
		if cm.Name != fmt.Sprintf("item-%05d", i) || size != 2048 || len(cm.Data) != 4 {
			t.Fatalf("number %d is %s with %d bytes under %d keys", i, cm.Name, size, len(cm.Data))
		}
	}
	if len(seen) != 4*620 {
		t.Errorf("of %d values only %d differ", 4*620, len(seen))
	}
	if have := w.left(t, "relapse-deletions-1"); have[620] != "kube-root-ca.crt" {
		t.Errorf("at the end of the list stands %q", have[620])
	}
	// Once more, as another process would: nothing is left to be made but what went missing.
	w.remove(t, "relapse-deletions-1", 1)
	so := n.(*atomic.Int64).Load()
	if err := l.Prepare(t.Context(), w.target()); err != nil {
		t.Fatal(err)
	}
	if more := n.(*atomic.Int64).Load() - so; more != 1 {
		t.Errorf("%d objects were made again, want 1", more)
	}
	again, err := w.client.CoreV1().ConfigMaps("relapse-deletions-1").Get(t.Context(), "item-00000", metav1.GetOptions{})
	if err != nil || again.Data["settings"] != list.Items[0].Data["settings"] {
		t.Errorf("the object that was made again has another content (%v)", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		before     func(*testing.T, *world)
	}{
		{
			name: "another's namespace", want: "making the objects of load deletions: making namespace relapse-deletions-1: it is there and was not made by this load",
			before: func(t *testing.T, w *world) { w.create(t, "relapse-deletions-1", nil, "") },
		},
		{
			name: "another's ConfigMap",
			want: "making the objects of load deletions: making ConfigMap relapse-deletions-1/item-00002: it is there and was not made by this load",
			before: func(t *testing.T, w *world) {
				w.create(t, "relapse-deletions-1", map[string]string{"relapse.dev/run": "run", "relapse.dev/load": "deletions"}, "item-00002")
			},
		},
		{
			name: "what is never taken",
			want: "making the objects of load deletions: making namespace relapse-deletions-1: the API server will not take it: too long",
			before: func(_ *testing.T, w *world) {
				w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost {
						status(422, metav1.StatusReasonInvalid, "too long")(rw, r)
					}
					return r.Method == http.MethodPost
				})
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(t, w)
			l, err := kinds.Decode[load.Load](kinds.Load, "deleteCollection", json.RawMessage(`{"items":5,"begun":1}`))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Prepare(t.Context(), w.target()); err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	w := newWorld(t)
	w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	l, err := kinds.Decode[load.Load](kinds.Load, "deleteCollection", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(ctx, w.target()); err == nil || err.Error() != "making the objects of load deletions: context deadline exceeded" {
		t.Errorf("without an API server: %v", err)
	}
}

func (w *world) create(t *testing.T, namespace string, with map[string]string, item string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: with}}
	if _, err := w.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if item != "" {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: item}}
		if _, err := w.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
