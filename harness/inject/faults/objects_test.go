package faults_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

func objectsFault(t *testing.T, spec string) fault.Fault {
	t.Helper()
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "objects", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.(interface{ Validate() error }).Validate(); err != nil {
		t.Fatal(err)
	}
	return f
}

func objectsWorld(t *testing.T) (fault.Target, *kubernetes.Clientset) {
	t.Helper()
	c := clustertest.New("objects", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return fault.Target{Run: "run", Name: "item", Arm: "fixed", Cluster: c, Nodes: c.Nodes(), Expires: time.Minute, Events: event.NewStream(event.SinkFunc(func(event.Event) {}))}, client
}

// What wasn't there before goes, and what was there comes back as it was, also in etcd.
func TestObjectsAreBroughtBack(t *testing.T) {
	for _, tc := range []struct{ name, spec string }{
		{"created", `{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}]}`},
		{"stored", `{"verb":"apply","stored":true,"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			target, client := objectsWorld(t)
			get := func() error {
				_, err := client.CoreV1().ConfigMaps("relapse-item-fixed").Get(t.Context(), "new", metav1.GetOptions{})
				return err
			}
			for range 2 { // a run that goes on injects again
				if err := objectsFault(t, tc.spec).Inject(t.Context(), target); err != nil {
					t.Fatal(err)
				}
			}
			if err := get(); err != nil {
				t.Errorf("injected: %v", err)
			}
			if err := objectsFault(t, tc.spec).Recover(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			if err := get(); !apierrors.IsNotFound(err) {
				t.Errorf("lifted: %v", err)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) {
		target, client := objectsWorld(t)
		maps := client.CoreV1().ConfigMaps("default")
		target.Cluster.(*clustertest.Cluster).API().AddNamespace("default", nil)
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		const spec = `{"verb":"delete","manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old","namespace":"default"}}]}`
		if err := objectsFault(t, spec).Inject(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(t.Context(), "old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("injected: %v", err)
		}
		if err := objectsFault(t, spec).Recover(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		if is, err := maps.Get(t.Context(), "old", metav1.GetOptions{}); err != nil || is.Data["a"] != "b" {
			t.Errorf("lifted: %+v, %v", is, err)
		}
	})
}

func TestObjectsThatCannotBeChanged(t *testing.T) {
	target, _ := objectsWorld(t)
	err := objectsFault(t, `{"verb":"delete","manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"none","namespace":"default"}}]}`).Inject(t.Context(), target)
	if want := "item: ConfigMap none: it isn't there, so that it can't be deleted"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	f, err := kinds.Decode[fault.Fault](kinds.Fault, "objects", json.RawMessage(`{"verb":"evict","manifests":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "verb is evict, which can't be undone (want create, apply, patch or delete, or undo: false)"
	if err := f.(interface{ Validate() error }).Validate(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
