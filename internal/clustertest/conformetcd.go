package clustertest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// etcd writes an object past the API server, which has to serve it, and takes it away again.
func (s suite) etcd(t *testing.T) {
	client, err := kubernetes.NewForConfig(s.c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := func(path string, body any) (answer struct {
		Kvs []struct{ Value []byte } `json:"kvs"`
	}) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.c.Abilities().Etcd(ctx, path, text)
		if err == nil {
			err = json.Unmarshal(out, &answer)
		}
		if err != nil {
			t.Fatalf("asking etcd for %s: %v", path, err)
		}
		return answer
	}
	stored, err := json.Marshal(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "past-the-api-server", Namespace: metav1.NamespaceDefault, UID: "94f1a9c0-6a0b-4c8f-8a3f-000000000001",
			CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second))}, Data: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	key := map[string][]byte{"key": []byte("/registry/configmaps/default/past-the-api-server")}
	ask("/v3/kv/put", map[string][]byte{"key": key["key"], "value": stored})
	if kvs := ask("/v3/kv/range", key).Kvs; len(kvs) != 1 || string(kvs[0].Value) != string(stored) {
		t.Errorf("etcd has %d values of the key (want the one that was put)", len(kvs))
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if o, err := maps.Get(ctx, "past-the-api-server", metav1.GetOptions{}); err != nil || o.Data["a"] != "b" {
		t.Errorf("the API server serves %v, %v of what is in etcd", o, err)
	}
	ask("/v3/kv/deleterange", key)
	if _, err := maps.Get(ctx, "past-the-api-server", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is gone from etcd: %v (want not found)", err)
	}
}
