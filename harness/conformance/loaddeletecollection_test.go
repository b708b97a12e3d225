package conformance_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

func init() {
	for _, c := range []loadCase{
		{spec: `{"items":200,"bytes":"64","calls":4,"begun":5,"rounds":2}`, calls: 4, serve: slowEtcd},
		{spec: `{"items":200,"bytes":"64","calls":4,"begun":5,"rounds":2,"still":"20ms"}`, calls: 4, serve: slowEtcd},
		{spec: `{"by":"namespaceController","items":40,"bytes":"64","calls":3,"begun":5,"rounds":2}`, calls: 3, serve: namespaceController},
	} {
		loads.add(c, "deleteCollection")
	}
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
			ctx, cancel := context.WithTimeout(context.Background(), controltest.Patience)
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
