package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// The verbs of requests.
const (
	Create           = "create"
	Apply            = "apply" // server-side apply, which takes over the fields of other managers
	Patch            = "patch"
	Delete           = "delete"
	DeleteCollection = "deleteCollection" // of the object's namespace and labels
	Evict            = "evict"
)

// Verbs lists all verbs.
var Verbs = []string{Create, Apply, Patch, Delete, DeleteCollection, Evict}

// patchTypes maps the types of patches to their content types.
var patchTypes = map[string]types.PatchType{
	"merge":     types.MergePatchType,
	"strategic": types.StrategicMergePatchType,
	"json":      types.JSONPatchType,
}

// Ask is what is asked of the API server about each object of a load or fault. It is part of their specs.
type Ask struct {
	Verb        string    `json:"verb,omitempty" jsonschema:"create, apply (server-side), patch, delete, deleteCollection (of the object's namespace and labels) or evict; default: create"`
	Manifests   Templates `json:"manifests,omitempty" placeholders:"arm,n,node" jsonschema:"the objects, in order. $(arm) in a text stands for the arm's name; other words are in the kind's description. {file: NAME} stands for the objects of that file in the scenario's folder. An object without a namespace that needs one is in relapse-NAME-$(arm)"`
	Subresource string    `json:"subresource,omitempty" jsonschema:"with create, apply and patch: the part of the object that is meant, such as status. Default: the object itself"`
	PatchType   string    `json:"patchType,omitempty" jsonschema:"with patch: merge, strategic or json. With merge and strategic, the manifest is the patch; default: merge"`
	Patch       []any     `json:"patch,omitempty" placeholders:"arm,n,node" jsonschema:"with patchType json: the operations, each with op, path and value"`
	Stored      bool      `json:"stored,omitempty" jsonschema:"with create, apply, patch and delete: the object's bytes are written into etcd past the API server, which neither checks them nor fills in defaults. A patch is merged into the JSON of an object that is there. Default: false"`
}

// Validate refuses what no API server would understand. known are the words that the objects may refer to.
func (a Ask) Validate(known ...string) error {
	verb := a.verb()
	switch {
	case !slices.Contains(Verbs, verb):
		return fmt.Errorf("verb is %q (want one of %s)", verb, strings.Join(Verbs, ", "))
	case a.Subresource != "" && !slices.Contains([]string{Create, Apply, Patch}, verb):
		return fmt.Errorf(
			"subresource is %q with verb %s (want it with create, apply or patch)",
			a.Subresource,
			verb,
		)
	case a.Subresource != "" && !slices.Contains(subresources, a.Subresource):
		return fmt.Errorf("subresource is %q (want one of %s%s)", a.Subresource, strings.Join(subresources, ", "),
			scenario.Meant(a.Subresource, subresources))
	case a.PatchType != "" && verb != Patch:
		return fmt.Errorf("patchType is %q with verb %s (want it with patch)", a.PatchType, verb)
	case a.PatchType != "" && patchTypes[a.PatchType] == "":
		return fmt.Errorf("patchType is %q (want merge, strategic or json)", a.PatchType)
	case (len(a.Patch) > 0) != (a.PatchType == "json"):
		return fmt.Errorf(
			"patch has %d operations and patchType is %q (want operations with json, and only there)",
			len(a.Patch),
			a.PatchType,
		)
	case a.Stored && (!slices.Contains([]string{Create, Apply, Patch, Delete}, verb) || a.PatchType != ""):
		return fmt.Errorf(
			"stored is set with verb %s (want it with create, apply, delete or a merging patch)",
			verb,
		)
	case a.Stored && a.Subresource != "":
		return fmt.Errorf(
			"stored is set with subresource %q (want it alone: in etcd an object is one value)",
			a.Subresource,
		)
	}
	naming := Named
	switch {
	case verb == DeleteCollection:
		naming = Unnamed
	case verb == Create && !a.Stored && a.Subresource == "":
		naming = Nameable
	}
	return a.Manifests.Validate(naming, known...)
}

// Choices lists the verbs and the types of patches.
func (Ask) Choices() map[string][]string {
	return map[string][]string{"verb": Verbs, "patchType": slices.Sorted(maps.Keys(patchTypes))}
}

func (a Ask) verb() string {
	if a.Verb == "" {
		return Create
	}
	return a.Verb
}

// Describe says in words what is asked.
func (a Ask) Describe() string {
	what := a.verb() + " " + a.Manifests.Describe()
	if a.Subresource != "" {
		what += ", subresource " + a.Subresource
	}
	if a.Stored {
		what += ", in etcd past the API server"
	}
	return what
}

// Request is one request about one object.
type Request struct {
	Verb   string // the API server's word: CREATE, APPLY, PATCH, DELETE, DELETECOLLECTION; STORE and UNSTORE for etcd
	Path   string // of the URL; for etcd the key
	Object *unstructured.Unstructured

	method, contentType string
	query               url.Values
	body                []byte
	stored              string // the verb of a request to etcd; "" for one to the API server
}

// Object returns the object that t stands for, with the namespace that it needs, and its resource.
func (c *Client) Object(
	ctx context.Context,
	t Template,
	words Words,
) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	o, err := t.Expand(words)
	if err != nil {
		return nil, nil, err
	}
	m, err := c.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
		o.SetNamespace(c.Namespace)
	}
	return o, m, nil
}

// word returns the Verb of the requests.
func (a Ask) word() string {
	switch verb := a.verb(); {
	case a.Stored && verb == Delete:
		return unstore
	case a.Stored:
		return store
	case verb == Evict:
		return "CREATE"
	default:
		return strings.ToUpper(verb)
	}
}

// Request returns the request about the object that t stands for. With an error it still has its Verb, so that it can be
// recorded as one that failed.
func (c *Client) Request(ctx context.Context, a Ask, t Template, words Words) (Request, error) {
	r := Request{Verb: a.word()}
	o, m, err := c.Object(ctx, t, words)
	if err != nil {
		return r, err
	}
	r.Object = o
	if a.Stored {
		return c.stored(r, a.verb(), m)
	}
	collection := resourcePath(m, o.GetNamespace())
	one := collection + "/" + o.GetName()
	part := ""
	if a.Subresource != "" {
		part = "/" + a.Subresource
	}
	switch a.verb() {
	case Create:
		r.method, r.Path = http.MethodPost, collection
		if part != "" {
			r.Path = one + part
		} else {
			c.own(o)
		}
		r.contentType = "application/json"
	case Apply:
		c.own(o)
		r.method, r.Path, r.contentType = http.MethodPatch, one+part, string(types.ApplyPatchType)
		r.query = url.Values{"fieldManager": {"relapse"}, "force": {"true"}}
	case Patch:
		r.method, r.Path, r.contentType = http.MethodPatch, one+part, string(patchTypes[patchType(a.PatchType)])
	case Delete:
		r.method, r.Path = http.MethodDelete, one
		return r, nil
	case DeleteCollection:
		r.method, r.Path = http.MethodDelete, collection
		if len(o.GetLabels()) > 0 {
			r.query = url.Values{
				"labelSelector": {
					metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: o.GetLabels()}),
				},
			}
		}
		return r, nil
	case Evict:
		r.method, r.Path, r.contentType = http.MethodPost, one+"/eviction", "application/json"
		r.body, err = json.Marshal(map[string]any{"apiVersion": "policy/v1", "kind": "Eviction",
			"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()}})
		return r, err
	}
	if len(a.Patch) > 0 {
		if r.body, err = json.Marshal(a.Patch); err == nil {
			r.body, err = kinds.Expand(r.body, words)
		}
	} else {
		r.body, err = json.Marshal(o.Object)
	}
	return r, err
}

// The verbs of requests to etcd.
const store, unstore = "STORE", "UNSTORE"

func patchType(named string) string {
	if named == "" {
		return "merge"
	}
	return named
}

// resourcePath returns the path of a resource's objects.
func resourcePath(m *meta.RESTMapping, namespace string) string {
	out := "/apis/" + m.Resource.Group + "/" + m.Resource.Version
	if m.Resource.Group == "" {
		out = "/api/" + m.Resource.Version
	}
	if namespace != "" {
		out += "/namespaces/" + namespace
	}
	return out + "/" + m.Resource.Resource
}

// own labels an object as made by this load or fault, so that nobody else's is taken for it.
func (c *Client) own(o *unstructured.Unstructured) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range c.Labels {
		labels[key] = value
	}
	o.SetLabels(labels)
}
