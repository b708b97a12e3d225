package clustertest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
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
	if ask := s.c.Abilities().EtcdClient; ask != nil {
		etcdServes(ctx, t, ask)
	}
}

// etcdServes puts a key as a client of etcd's, deletes it, and sees both in a watch.
func etcdServes(ctx context.Context, t *testing.T, ask func() (string, *tls.Config, error)) {
	address, as, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(
		"passthrough:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(as)),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	key := []byte("/relapse/conformance")
	put, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: key, Value: []byte("one")})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := pb.NewKVClient(conn).DeleteRange(ctx, &pb.DeleteRangeRequest{Key: key}); err != nil || out.Deleted != 1 {
		t.Fatalf("%d keys were deleted, %v (want 1)", out.GetDeleted(), err)
	}
	stream, err := pb.NewWatchClient(conn).Watch(ctx)
	if err == nil {
		err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: key, StartRevision: put.Header.Revision}}})
	}
	var shown []string
	for err == nil && len(shown) < 2 {
		var said *pb.WatchResponse
		said, err = stream.Recv()
		for _, e := range said.GetEvents() {
			shown = append(shown, e.Type.String())
		}
	}
	if err != nil || strings.Join(shown, " ") != "PUT DELETE" {
		t.Errorf("a watch shows %q, %v (want PUT and DELETE)", shown, err)
	}
}
