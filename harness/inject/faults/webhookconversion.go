package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// Conversion says whose conversion webhook a fault is.
type Conversion struct {
	CRD    string            `json:"crd" jsonschema:"the name of the CustomResourceDefinition: widgets.example.com"`
	Object manifest.Template `json:"object" jsonschema:"a valid object of it, in a version that isn't the stored one. Dry runs that create it show whether the API server asks the webhook; it gets a name, a label and a namespace of the fault's own"`
}

func (c Conversion) validate() error {
	_, group, ok := strings.Cut(c.CRD, ".")
	if !ok || group == "" {
		return fmt.Errorf("crd is %q (want a name such as widgets.example.com)", c.CRD)
	}
	o := unstructured.Unstructured{Object: c.Object}
	if o.GroupVersionKind().Group != group || o.GroupVersionKind().Version == "" || o.GetKind() == "" {
		return fmt.Errorf("object is of the apiVersion %q and kind %q (want a version of %s, and a kind)", o.GetAPIVersion(), o.GetKind(), group)
	}
	return nil
}

// conversion makes a fault's webhook that of a CustomResourceDefinition.
type conversion struct {
	*Webhook
	affected // the CustomResourceDefinition
	fault    string
}

func newConversion(
	f *Webhook,
	t fault.Target,
	n cluster.Node,
	api kubernetes.Interface,
) (registered, error) {
	client, err := manifest.NewClient(t.Cluster, t.Run, t.Name, t.Arm)
	if err != nil {
		return nil, err
	}
	return &conversion{
		Webhook: f,
		fault:   t.Name,
		affected: affected{
			ask:     manifest.Ask{Verb: manifest.Patch},
			client:  client,
			api:     api,
			node:    n,
			name:    "CustomResourceDefinition " + f.Conversion.CRD,
			copies:  "relapse-" + t.Name,
			labels:  manifest.LabelsOf(t.Run, t.Name),
			arm:     t.Arm,
			written: f.definition(nil),
		},
	}, nil
}

// definition returns the CustomResourceDefinition as far as the fault writes it.
func (f *Webhook) definition(spec map[string]any) manifest.Template {
	out := manifest.Template{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": f.Conversion.CRD},
	}
	if spec != nil {
		out["spec"] = spec
	}
	return out
}

// conversionPath is the path of the webhook.
const conversionPath = "/convert"

func (c *conversion) hooks() []webhook.Hook {
	return []webhook.Hook{{Path: conversionPath, Name: c.fault, Rules: c.Rules, Shows: true,
		Protocol: webhook.Conversion{Resource: c.Conversion.CRD, Shows: c.fault}}}
}

// add keeps a copy of the definition, and has it converted by the webhook.
func (c *conversion) add(ctx context.Context, e *webhook.Endpoint) error {
	if err := c.resolve(ctx); err != nil {
		return err
	}
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	if err := c.convertible(now); err != nil {
		return err
	}
	if _, _, err := c.keep(ctx, now); err != nil {
		return err
	}
	to := e.Client(conversionPath)
	wanted := map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{
				"url":      *to.URL,
				"caBundle": to.CABundle,
				"service":  nil,
			},
		},
	}
	r, err := c.client.Request(
		ctx,
		c.ask,
		c.definition(map[string]any{"conversion": wanted}),
		nil,
	)
	if err != nil {
		return err
	}
	_, err = c.client.Do(ctx, r)
	return err
}

// convertible returns an error if no API server would convert the object that shows whether the webhook is asked.
func (c *conversion) convertible(definition object) error {
	if definition == nil {
		return fmt.Errorf("there is no %s", c.name)
	}
	var of struct {
		Spec struct {
			Versions []struct {
				Name            string
				Served, Storage bool
			}
		}
	}
	if err := json.Unmarshal(definition, &of); err != nil {
		return err
	}
	var others []string
	_, version, _ := strings.Cut(
		(&unstructured.Unstructured{Object: c.Conversion.Object}).GetAPIVersion(),
		"/",
	)
	for _, v := range of.Spec.Versions {
		if v.Served && !v.Storage {
			if v.Name == version {
				return nil
			}
			others = append(others, v.Name)
		}
	}
	return fmt.Errorf(
		"an object of version %s isn't converted (want one that is served and not stored: %s)",
		version,
		strings.Join(others, ", "),
	)
}

// try creates the object in a dry run: the API server converts it as if to store it.
func (c *conversion) try(ctx context.Context) (code int, past bool, err error) {
	one, err := c.Conversion.Object.Expand(nil)
	if err != nil {
		return 0, false, err
	}
	one.SetName("relapse-" + c.fault)
	labels := one.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[webhook.ShowsLabel] = c.fault
	one.SetLabels(labels)
	code, err = c.client.DryRun(ctx, one, c.copies)
	return code, bundle.Success(code) || code == http.StatusConflict, err
}

// remove gives the definition the conversion that its copy has, and leaves the rest of it as it is.
func (c *conversion) remove(ctx context.Context) (more bool, err error) {
	return insist(ctx, func(ctx context.Context) (bool, error) {
		if err := c.resolve(ctx); err != nil {
			return false, err
		}
		was, kept, err := c.kept(ctx)
		if err != nil {
			return false, err
		}
		if !kept { // nothing was changed, or the copy is lost
			return false, c.unchanged(ctx)
		}
		now, err := c.now(ctx)
		if err != nil {
			return false, err
		}
		if now == nil { // somebody deleted it
			c.forget(ctx)
			return false, nil
		}
		if err := c.convertAs(ctx, conversionOf(was)); err != nil {
			return false, err
		}
		c.forget(ctx)
		return true, nil
	})
}

// unchanged returns an error if the definition is converted by a webhook of this host's.
func (c *conversion) unchanged(ctx context.Context) error {
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	address, err := c.client.Cluster.CallableAddress(ctx)
	if err != nil {
		return err
	}
	var of struct {
		Spec struct {
			Conversion struct {
				Webhook struct{ ClientConfig struct{ URL string } }
			}
		}
	}
	if now == nil || json.Unmarshal(now, &of) != nil {
		return nil
	}
	to, err := url.Parse(of.Spec.Conversion.Webhook.ClientConfig.URL)
	if err != nil || to.Hostname() != address && to.Hostname() != seams.Loopback || to.Path != conversionPath {
		return nil
	}
	return fmt.Errorf(
		"%s is converted by %s, and the copy of what stood there is gone: it can't be brought back",
		c.name,
		to,
	)
}

// convertAs writes the definition's conversion, and returns when it was seen.
func (c *conversion) convertAs(ctx context.Context, wanted any) error {
	// In a JSON patch, add replaces a member that is there.
	ask := manifest.Ask{Verb: manifest.Patch, PatchType: "json", Patch: []any{
		map[string]any{"op": "add", "path": "/spec/conversion", "value": wanted}}}
	r, err := c.client.Request(ctx, ask, c.written, nil)
	if err != nil {
		return err
	}
	if _, err := c.client.Do(ctx, r); err != nil {
		return err
	}
	return c.await(ctx, func(now object) bool { return now == nil || reflect.DeepEqual(conversionOf(now), wanted) })
}

// conversionOf returns how a definition's objects are converted. None is what an API server makes of nothing.
func conversionOf(definition object) any {
	var of struct {
		Spec struct {
			Conversion map[string]any `json:"conversion"`
		} `json:"spec"`
	}
	if json.Unmarshal(definition, &of) != nil || of.Spec.Conversion == nil {
		return map[string]any{"strategy": "None"}
	}
	return of.Spec.Conversion
}
