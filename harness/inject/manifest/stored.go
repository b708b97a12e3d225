package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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
	"":                             true,
	"apps":                         true,
	"batch":                        true,
	"policy":                       true,
	"autoscaling":                  true,
	"storage.k8s.io":               true,
	"rbac.authorization.k8s.io":    true,
	"admissionregistration.k8s.io": true,
	"networking.k8s.io":            true,
	"discovery.k8s.io":             true,
	"scheduling.k8s.io":            true,
	"node.k8s.io":                  true,
	"coordination.k8s.io":          true,
	"certificates.k8s.io":          true,
	"events.k8s.io":                true,
	"flowcontrol.apiserver.k8s.io": true,
	"resource.k8s.io":              true,
}

// stored completes the request that writes or removes an object in etcd. The bytes are JSON, which API servers read in
// every version: they are told from protobuf by their beginning.
func (c *Client) stored(r Request, verb string, m *meta.RESTMapping) (Request, error) {
	o := r.Object
	r.Path, r.stored = keyOf(m, o), verb
	if verb == Create || verb == Apply {
		if o.GetUID() == "" {
			o.SetUID(types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(r.Path)).String()))
		}
		if at := o.GetCreationTimestamp(); at.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(c.since))
		}
	}
	var err error
	r.body, err = json.Marshal(o.Object)
	return r, err
}

// store carries out a request on etcd.
func (c *Client) store(ctx context.Context, r Request) (Answer, error) {
	switch r.stored {
	case Apply:
		return stateOf(c.PutValue(ctx, r.Path, r.body))
	case Delete:
		return stateOf(c.PutValue(ctx, r.Path, nil))
	}
	was, revision, err := c.look(ctx, r.Path)
	body := r.body
	switch {
	case err != nil:
		return Answer{}, err
	case r.stored == Create && was != nil:
		return Answer{
				Code:   http.StatusConflict,
				Reason: metav1.StatusReasonAlreadyExists,
			}, fmt.Errorf(
				"etcd has %s already",
				r.Path,
			)
	case r.stored == Patch && was == nil:
		return Answer{
				Code:   http.StatusNotFound,
				Reason: metav1.StatusReasonNotFound,
			}, fmt.Errorf(
				"etcd has no %s",
				r.Path,
			)
	case r.stored == Patch:
		if body, err = jsonpatch.MergePatch(was, r.body); err != nil {
			return Answer{}, fmt.Errorf("merging into %s: %w", r.Path, err)
		}
	}
	still, err := c.replace(ctx, r.Path, revision, body)
	if err == nil && !still {
		return Answer{
				Code:   http.StatusConflict,
				Reason: metav1.StatusReasonConflict,
			}, fmt.Errorf(
				"%s was written by somebody else just now",
				r.Path,
			)
	}
	return stateOf(err)
}

func stateOf(err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	return Answer{Code: http.StatusOK}, nil
}

// keyValue is a key and its value in etcd's JSON, which has bytes in base64 as Go's JSON does.
type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value,omitempty"`
	ModRevision string `json:"mod_revision,omitempty"`
}

// Value returns the bytes of a key in etcd, nil if there is none.
func (c *Client) Value(ctx context.Context, key string) ([]byte, error) {
	value, _, err := c.look(ctx, key)
	return value, err
}

// look returns the bytes of a key, and the revision of its last write; nil and "0" if there is none.
func (c *Client) look(
	ctx context.Context,
	key string,
) (value []byte, revision string, err error) {
	var out struct {
		Kvs []keyValue `json:"kvs"`
	}
	if err := c.etcd(ctx, "/v3/kv/range", keyValue{Key: []byte(key)}, &out); err != nil {
		return nil, "", err
	}
	if len(out.Kvs) == 0 {
		return nil, "0", nil
	}
	return out.Kvs[0].Value, out.Kvs[0].ModRevision, nil
}

// replace writes a key whose last write still is of a revision. It returns false if it isn't.
func (c *Client) replace(
	ctx context.Context,
	key, revision string,
	value []byte,
) (still bool, err error) {
	type compare struct {
		Key         []byte `json:"key"`
		Target      string `json:"target"`
		ModRevision string `json:"mod_revision"`
	}
	type put struct {
		RequestPut keyValue `json:"request_put"`
	}
	ask := struct {
		Compare []compare `json:"compare"`
		Success []put     `json:"success"`
	}{[]compare{{[]byte(key), "MOD", revision}}, []put{{keyValue{Key: []byte(key), Value: value}}}}
	var out struct {
		Succeeded bool `json:"succeeded"`
	}
	err = c.etcd(ctx, "/v3/kv/txn", ask, &out)
	return out.Succeeded, err
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
		return fmt.Errorf(
			"cluster %s doesn't let anyone write into its etcd (want a kind cluster or one of processes)",
			c.Cluster.Name(),
		)
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
		return &apierrors.StatusError{
			ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: fmt.Sprintf(
				"%s %s was written to etcd at %s, and the API server doesn't serve it",
				r.Object.GetKind(),
				r.Object.GetName(),
				r.Path,
			)},
		}
	}
	return nil
}
