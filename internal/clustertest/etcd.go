package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// folders are the resources that the fake serves from what is written into its etcd, by the folder of their keys.
var folders = map[string]string{
	"/registry/services/specs/":     "services",
	"/registry/services/endpoints/": "endpoints",
	"/registry/pods/":               "pods",
	"/registry/configmaps/":         "configmaps",
	"/registry/csinodes/":           csiNodes,
}

// storedValue is a value in the fake's etcd, and the revision of its last write.
type storedValue struct {
	bytes    []byte
	revision int
}

// askEtcd answers like etcd's JSON gateway: put, range and deleterange of one key, and a transaction that puts a key if
// its revision is as given. What is written appears in the API.
func (c *Cluster) askEtcd(_ context.Context, path string, body []byte) ([]byte, error) {
	var ask struct {
		Key, Value []byte
		Compare    []struct {
			Revision string `json:"mod_revision"`
		}
		Success []struct {
			Put struct{ Key, Value []byte } `json:"request_put"`
		}
	}
	if err := json.Unmarshal(body, &ask); err != nil {
		return nil, err
	}
	a, key := c.api, string(ask.Key)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch path {
	case "/v3/kv/put":
		return []byte("{}"), a.store(key, ask.Value)
	case "/v3/kv/deleterange":
		delete(a.stored, key)
		return []byte("{}"), a.show(key, nil)
	case "/v3/kv/range":
		have, ok := a.stored[key]
		if !ok {
			return []byte("{}"), nil
		}
		return json.Marshal(
			map[string]any{"kvs": []any{map[string]any{"key": ask.Key, "value": have.bytes,
				"mod_revision": strconv.Itoa(have.revision)}}},
		)
	case "/v3/kv/txn":
		put := ask.Success[0].Put
		if strconv.Itoa(a.stored[string(put.Key)].revision) != ask.Compare[0].Revision {
			return []byte("{}"), nil
		}
		return []byte(`{"succeeded":true}`), a.store(string(put.Key), put.Value)
	}
	return nil, fmt.Errorf("the fake's etcd has no %s", path)
}

// store writes a key; the caller holds mu.
func (a *API) store(key string, value []byte) error {
	if a.stored == nil {
		a.stored = map[string]storedValue{}
	}
	a.revision++
	a.stored[key] = storedValue{value, a.revision}
	return a.show(key, value)
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
