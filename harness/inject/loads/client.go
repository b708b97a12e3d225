package loads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
)

// asking bounds each request that the load makes for itself. The API server itself takes no longer.
const asking = time.Minute

// errForeign says that an object of the same name is there that this load did not make. errUnfit says that the API
// server will never accept an object.
var errForeign, errUnfit = errors.New("it is there and was not made by this load"), errors.New("the API server will not take it")

// client sends requests to one cluster's API server, without rate limits.
type client struct {
	load.Target
	http     *http.Client // the two clients below share its connections
	typed    *kubernetes.Clientset
	metadata metadata.Interface // lists without the data
}

func newClient(t load.Target) (*client, error) {
	c := &client{Target: t}
	cfg := manifest.Config(t.Cluster, t.Name)
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	var err error
	if c.http, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("making a client for load %s: %w", t.Name, err)
	}
	if c.typed, err = kubernetes.NewForConfigAndClient(cfg, c.http); err != nil {
		return nil, fmt.Errorf("making a client for load %s: %w", t.Name, err)
	}
	if c.metadata, err = metadata.NewForConfigAndClient(cfg, c.http); err != nil {
		return nil, fmt.Errorf("making a client for load %s: %w", t.Name, err)
	}
	return c, nil
}

func (c *client) labels() labels.Set { return manifest.LabelsOf(c.Run, c.Name) }

func (c *client) selector() string { return c.labels().String() }

func (c *client) makeNamespace(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	ns, err := manifest.MakeNamespace(ctx, c.typed, name, c.labels())
	switch {
	case err != nil:
	case !c.ours(ns):
		err = errForeign
	case ns.DeletionTimestamp != nil:
		err = errors.New("it is still being deleted")
	}
	return describe("namespace "+name, err)
}

func (c *client) ours(m metav1.Object) bool {
	return labels.SelectorFromSet(c.labels()).Matches(labels.Set(m.GetLabels()))
}

// describe adds the name of an object to the error of making it.
func describe(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("making %s: %w: %w", what, errUnfit, err)
	}
	return fmt.Errorf("making %s: %w", what, err)
}

// wait returns after d, or with the cause of ctx's end.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
