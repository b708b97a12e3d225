package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// folders are the resources that the fake serves from what is written into its etcd, by the folder of their keys.
var folders = map[string]string{
	"/registry/services/specs/": "services", "/registry/services/endpoints/": "endpoints", "/registry/pods/": "pods",
	"/registry/configmaps/": "configmaps", "/registry/csinodes/": csiNodes,
}

// askEtcd answers like etcd's JSON gateway: put, range and deleterange of one key. What is written appears in the API.
func (c *Cluster) askEtcd(_ context.Context, path string, body []byte) ([]byte, error) {
	var ask struct{ Key, Value []byte }
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	a, key := c.api, string(ask.Key)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch path {
	case "/v3/kv/put":
		if a.stored == nil {
			a.stored = map[string][]byte{}
		}
		a.stored[key] = ask.Value
		return []byte("{}"), a.show(key, ask.Value)
	case "/v3/kv/deleterange":
		delete(a.stored, key)
		return []byte("{}"), a.show(key, nil)
	case "/v3/kv/range":
		type kv struct {
			Key, Value []byte
		}
		out := struct {
			Kvs []kv `json:"kvs,omitempty"`
		}{}
		if value, ok := a.stored[key]; ok {
			out.Kvs = []kv{{ask.Key, value}}
		}
		return json.Marshal(out)
	}
	return nil, fmt.Errorf("the fake's etcd has no %s", path)
}

// show makes the API serve a stored object, or no longer; the caller holds mu.
func (a *API) show(key string, value []byte) error {
	for folder, resource := range folders {
		name, in := strings.CutPrefix(key, folder)
		if !in {
			continue
		}
		namespace, name := cutLast(name)
		_, have := a.find(resource, namespace, name)
		if value == nil {
			if have != nil {
				a.drop(resource, have)
			}
			return nil
		}
		into, _, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
		if err != nil {
			return err
		}
		a.put(resource, into.(metav1.Object))
	}
	return nil
}

// cutLast cuts namespace/name in two. The namespace may be missing.
func cutLast(path string) (before, last string) {
	i := strings.LastIndex(path, "/")
	return strings.TrimSuffix(path[:i+1], "/"), path[i+1:]
}
