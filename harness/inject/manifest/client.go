package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Client sends requests to one cluster, each once: without a rate limit and without a retry.
type Client struct {
	Cluster   cluster.Cluster
	Namespace string            // of objects that need one and name none
	Labels    map[string]string // of objects that are created or applied

	http  *http.Client
	host  string
	since time.Time // when the client was made: the age of what is stored past the API server

	known sync.Map // schema.GroupVersionKind -> *meta.RESTMapping
}

// Config returns how a load or a fault calls the API server of c: without rate limits, because what limits it must be the
// cluster, and without a time limit, because each request has its own.
func Config(c cluster.Cluster, name string) *rest.Config {
	cfg := rest.CopyConfig(c.RESTConfig())
	cfg.QPS, cfg.Burst, cfg.RateLimiter, cfg.Timeout = -1, -1, nil, 0
	cfg.UserAgent = "relapse/" + name
	cfg.WarningHandler = rest.NoWarnings{}
	return cfg
}

// NewClient returns a client of c. name is the load's or the fault's, and run the id of the run.
func NewClient(c cluster.Cluster, run, name, arm string) (*Client, error) {
	cfg := Config(c, name)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", name, err)
	}
	host, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", name, err)
	}
	return &Client{Cluster: c, Namespace: NamespaceOf(name, arm), Labels: LabelsOf(run, name),
		since: time.Now().UTC(), http: h, host: strings.TrimSuffix(host.String(), "/")}, nil
}

// Answer is how a request was answered.
type Answer struct {
	Code   int                 // HTTP status; 0 if there was no answer
	Reason metav1.StatusReason // of a refusal: AlreadyExists, Invalid
}

// Do sends a request and reads the whole answer. The error is the transport's, or the message of an answer other than
// 2xx, whose code and reason are in Answer, too.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	if r.stored != "" {
		return c.store(ctx, r)
	}
	return c.send(ctx, r.method, r.Path, r.query.Encode(), r.contentType, r.body, nil)
}

// Get reads an object. A missing one is nil.
func (c *Client) Get(
	ctx context.Context,
	o *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	m, err := c.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	var have map[string]any
	a, err := c.send(
		ctx,
		http.MethodGet,
		resourcePath(m, o.GetNamespace())+"/"+o.GetName(),
		"",
		"",
		nil,
		&have,
	)
	if a.Code == http.StatusNotFound {
		return nil, nil
	}
	return &unstructured.Unstructured{Object: have}, err
}

// Replace writes an object as it is given, whatever it is now.
func (c *Client) Replace(
	ctx context.Context,
	o *unstructured.Unstructured,
	subresource string,
) error {
	now, err := c.Get(ctx, o)
	if err != nil {
		return err
	}
	if now != nil {
		o.SetResourceVersion(now.GetResourceVersion())
	}
	part := "/" + o.GetName()
	if subresource != "" {
		part += "/" + subresource
	}
	return c.write(ctx, http.MethodPut, o, part)
}

// Make creates an object.
func (c *Client) Make(ctx context.Context, o *unstructured.Unstructured) error {
	return c.write(ctx, http.MethodPost, o, "")
}

// DryRun asks for the creation of an object in a dry run, and returns the code of the answer; 0 if there was none. An
// object of a kind with namespaces is one of namespace.
func (c *Client) DryRun(
	ctx context.Context,
	o *unstructured.Unstructured,
	namespace string,
) (code int, err error) {
	m, err := c.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return 0, err
	}
	o = o.DeepCopy()
	if o.SetNamespace(""); m.Scope.Name() == meta.RESTScopeNameNamespace {
		o.SetNamespace(namespace)
	}
	body, err := json.Marshal(o.Object)
	if err != nil {
		return 0, err
	}
	a, err := c.send(
		ctx,
		http.MethodPost,
		resourcePath(m, o.GetNamespace()),
		"dryRun=All&timeout=10s",
		"application/json",
		body,
		nil,
	)
	return a.Code, err
}

// Remove deletes an object. A missing one is no error.
func (c *Client) Remove(ctx context.Context, o *unstructured.Unstructured) error {
	m, err := c.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	a, err := c.send(
		ctx,
		http.MethodDelete,
		resourcePath(m, o.GetNamespace())+"/"+o.GetName(),
		"",
		"",
		nil,
		nil,
	)
	if a.Code == http.StatusNotFound {
		return nil
	}
	return err
}

// write sends an object to its collection's path with part behind it.
func (c *Client) write(
	ctx context.Context,
	method string,
	o *unstructured.Unstructured,
	part string,
) error {
	m, err := c.mapping(ctx, o.GroupVersionKind())
	if err != nil {
		return err
	}
	body, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	_, err = c.send(
		ctx,
		method,
		resourcePath(m, o.GetNamespace())+part,
		"",
		"application/json",
		body,
		nil,
	)
	return err
}

// send sends a request and reads the whole answer, into a value if it is one of success and into isn't nil.
func (c *Client) send(
	ctx context.Context,
	method, path, query, contentType string,
	body []byte,
	into any,
) (out Answer, err error) {
	to := c.host + path
	if query != "" {
		to += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	out.Code = resp.StatusCode
	if resp.StatusCode < 300 && into == nil {
		_, err = io.Copy(io.Discard, resp.Body) // all objects of a deleted collection need not be kept
		return out, err
	}
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, err
	}
	if resp.StatusCode < 300 {
		return out, utiljson.Unmarshal(said, into) // whole numbers become int64
	}
	var status metav1.Status
	if json.Unmarshal(said, &status) == nil && status.Message != "" {
		out.Reason = status.Reason
		return out, &apierrors.StatusError{ErrStatus: status}
	}
	return out, errors.New(strings.TrimSpace(string(said[:min(len(said), 4<<10)])))
}

// mapping returns the resource of a kind. The API server is asked until it has the kind, which a
// CustomResourceDefinition may add.
func (c *Client) mapping(
	ctx context.Context,
	gvk schema.GroupVersionKind,
) (*meta.RESTMapping, error) {
	of := gvk.GroupVersion()
	if m, ok := c.known.Load(gvk); ok {
		return m.(*meta.RESTMapping), nil
	}
	resources, err := c.resources(ctx, of)
	if err != nil {
		return nil, err
	}
	m := mappingIn(resources, gvk)
	if m == nil {
		return nil, fmt.Errorf("the API server has no kind %s in %s", gvk.Kind, of)
	}
	c.known.Store(gvk, m)
	return m, nil
}

// resources asks the API server for the resources of a group's version.
func (c *Client) resources(
	ctx context.Context,
	of schema.GroupVersion,
) ([]metav1.APIResource, error) {
	path := "/apis/" + of.String()
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	var list metav1.APIResourceList
	a, err := c.send(ctx, http.MethodGet, path, "", "", nil, &list)
	if a.Code == http.StatusNotFound {
		return nil, fmt.Errorf("the API server has no %s", of)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the API server for %s: %w", of, err)
	}
	return list.APIResources, nil
}

func mappingIn(resources []metav1.APIResource, gvk schema.GroupVersionKind) *meta.RESTMapping {
	group := &restmapper.APIGroupResources{
		Group: metav1.APIGroup{Name: gvk.Group, Versions: []metav1.GroupVersionForDiscovery{
			{GroupVersion: gvk.GroupVersion().String(), Version: gvk.Version}}},
		VersionedResources: map[string][]metav1.APIResource{gvk.Version: resources},
	}
	m, err := restmapper.NewDiscoveryRESTMapper([]*restmapper.APIGroupResources{group}).
		RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil
	}
	return m
}
