package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// odd maps the resources whose key in etcd isn't made of their plural name to the folder of their keys.
// Source: the storage of each resource in k8s.io/kubernetes/pkg/registry, which names its prefix.
var odd = map[string]string{
	"services": "services/specs", "endpoints": "services/endpoints", "nodes": "minions",
	"replicationcontrollers": "controllers", "ingresses.networking.k8s.io": "ingress",
	"customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/customresourcedefinitions",
	"apiservices.apiregistration.k8s.io":             "apiregistration.k8s.io/apiservices",
}

// keyOf returns the key of an object in etcd, below the default prefix /registry.
func keyOf(m *meta.RESTMapping, o *unstructured.Unstructured) string {
	resource := m.Resource.GroupResource()
	folder, ok := odd[resource.String()]
	switch {
	case ok:
	case builtIn[resource.Group]:
		folder = resource.Resource
	default: // a CustomResourceDefinition's
		folder = resource.Group + "/" + resource.Resource
	}
	key := "/registry/" + folder
	if o.GetNamespace() != "" {
		key += "/" + o.GetNamespace()
	}
	return key + "/" + o.GetName()
}

// builtIn are the API groups of Kubernetes itself, whose resources are stored under their plural name alone.
var builtIn = map[string]bool{
	"": true, "apps": true, "batch": true, "policy": true, "autoscaling": true, "storage.k8s.io": true,
	"rbac.authorization.k8s.io": true, "admissionregistration.k8s.io": true, "networking.k8s.io": true,
	"discovery.k8s.io": true, "scheduling.k8s.io": true, "node.k8s.io": true, "coordination.k8s.io": true,
	"certificates.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true, "resource.k8s.io": true,
}

// stored returns the request that writes or removes an object in etcd. The bytes are JSON, which API servers read in
// every version: they are told from protobuf by their beginning.
func (c *Client) stored(verb string, m *meta.RESTMapping, o *unstructured.Unstructured) (Request, error) {
	r := Request{Verb: "STORE", Path: keyOf(m, o), Object: o, stored: true}
	if verb == Delete {
		r.Verb = "UNSTORE"
		return r, nil
	}
	if verb == Patch {
		r.method = http.MethodPatch // only if there is one
		var err error
		r.body, err = json.Marshal(o.Object)
		return r, err
	}
	if o.GetUID() == "" {
		o.SetUID(types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(r.Path)).String()))
	}
	if _, set, _ := unstructured.NestedString(o.Object, "metadata", "creationTimestamp"); !set {
		if err := unstructured.SetNestedField(o.Object, c.since.Format(time.RFC3339), "metadata", "creationTimestamp"); err != nil {
			return r, err
		}
	}
	var err error
	r.body, err = json.Marshal(o.Object)
	if verb == Create {
		r.method = http.MethodPost // only if there is none
	}
	return r, err
}

// keyValue is a key and its value in etcd's JSON, which has bytes in base64 as Go's JSON does.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
}

// store carries out a request on etcd.
func (c *Client) store(ctx context.Context, r Request) (Answer, error) {
	switch {
	case r.Verb == "UNSTORE":
		return stateOf(c.PutValue(ctx, r.Path, nil))
	case r.method == http.MethodPost:
		was, err := c.Value(ctx, r.Path)
		if err == nil && was != nil {
			return Answer{Code: http.StatusConflict, Reason: "AlreadyExists"}, fmt.Errorf("etcd has %s already", r.Path)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	body := r.body
	if r.method == http.MethodPatch {
		was, err := c.Value(ctx, r.Path)
		if err == nil && was == nil {
			return Answer{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}, fmt.Errorf("etcd has no %s", r.Path)
		}
		if err == nil {
			body, err = jsonpatch.MergePatch(was, r.body)
		}
		if err != nil {
			return Answer{}, fmt.Errorf("merging into %s: %w", r.Path, err)
		}
	}
	return stateOf(c.PutValue(ctx, r.Path, body))
}

func stateOf(err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return Answer{Code: http.StatusOK}, nil
}

// Value returns the bytes of a key in etcd, nil if there is none.
func (c *Client) Value(ctx context.Context, key string) ([]byte, error) {
	var out struct {
		Kvs []keyValue `json:"kvs"`
	}
	if err := c.etcd(ctx, "/v3/kv/range", keyValue{Key: []byte(key)}, &out); err != nil {
		return nil, err
	}
	if len(out.Kvs) == 0 {
		return nil, nil
	}
	return out.Kvs[0].Value, nil
}

// PutValue writes a key in etcd, or removes it if value is nil.
func (c *Client) PutValue(ctx context.Context, key string, value []byte) error {
	if value == nil {
		return c.etcd(ctx, "/v3/kv/deleterange", keyValue{Key: []byte(key)}, nil)
	}
	return c.etcd(ctx, "/v3/kv/put", keyValue{Key: []byte(key), Value: value}, nil)
}

// etcd sends a request to etcd's JSON gateway and decodes its answer.
func (c *Client) etcd(ctx context.Context, path string, ask, into any) error {
	send := c.Cluster.Abilities().Etcd
	if send == nil {
		return fmt.Errorf("cluster %s doesn't let anyone write into its etcd (want a kind cluster or one of processes)", c.Cluster.Name())
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	answer, err := send(ctx, path, body)
	if err != nil {
		return fmt.Errorf("asking etcd for %s: %w", path, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return errors.Join(fmt.Errorf("reading etcd's answer for %s", path), err)
	}
	return nil
}

// Served returns nil if the API server serves the very object that a request has stored. It is a NotFound error if the
// API server has no such object: then it keeps such objects under another key.
func (c *Client) Served(ctx context.Context, r Request) error {
	have, err := c.Get(ctx, r.Object)
	switch {
	case err != nil:
		return err
	case have == nil || have.GetUID() != r.Object.GetUID():
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf(
			"%s %s was written to etcd at %s, and the API server doesn't serve it", r.Object.GetKind(), r.Object.GetName(), r.Path)}}
	}
	return nil
}
