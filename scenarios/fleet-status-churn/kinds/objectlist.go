package kinds

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "objectList",
		Doc: "Chosen objects at one moment, as YAML for people: what a user would have seen then.\n\n" +
			"The objects are those of the arm's namespace or, with shared, those of the whole cluster or of some of " +
			"its namespaces. With where: terminating, only objects that are being deleted are listed. Managed fields " +
			"are left out.",
		Example: "name: stuck\nkind: objectList\nevery: 60s\nspec:\n  resources: [pods]\n  shared: true\n  where: " +
			"terminating\n",
		New: func() capture.Collector { return &ObjectList{} },
	})
}

// terminating is the Where of objects that are being deleted.
const terminating = "terminating"

// ObjectList collects objects as they are at one moment.
type ObjectList struct {
	collectors.Chosen
	Where string `json:"where,omitempty" jsonschema:"terminating: only objects that have a deletionTimestamp; default: all chosen objects"`
}

// Makes returns the kind of artifact that the collector records: lists of objects.
func (*ObjectList) Makes() []bundle.Kind { return []bundle.Kind{bundle.ObjectList} }

// Validate refuses what Chosen refuses, and an unknown Where.
func (c *ObjectList) Validate() error {
	err := c.Chosen.Validate()
	if c.Where != "" && c.Where != terminating {
		err = errors.Join(err, fmt.Errorf("where is %q (want terminating, or nothing)", c.Where))
	}
	return err
}

// Snapshot records the chosen objects, one resource after another.
func (c *ObjectList) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	m := t.Meta(bundle.ObjectList)
	ctx, cancel := context.WithTimeout(ctx, collectors.AskTimeout)
	defer cancel()
	text, err := c.list(ctx, t)
	if err != nil {
		w.Fail(m, err)
		return err
	}
	_, err = w.Write(m, "yaml", bytes.NewReader(text))
	return err
}

// list returns one YAML document for each resource.
func (c *ObjectList) list(ctx context.Context, t capture.Target) ([]byte, error) {
	api, err := c.API(t, c.Validate())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range c.Resources {
		gvr, err := api.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		all, err := api.Objects(gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", name, err)
		}
		kept := []unstructured.Unstructured{}
		for _, o := range all.Items {
			meant, err := api.Meant(ctx, o.GetNamespace())
			if err != nil {
				return nil, err
			}
			if !meant || c.Where == terminating && o.GetDeletionTimestamp() == nil {
				continue
			}
			o.SetManagedFields(nil)
			kept = append(kept, o)
		}
		total := len(all.Items)
		all.Items = kept
		doc, err := yaml.Marshal(all.UnstructuredContent())
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		fmt.Fprintf(&out, "---\n# %d of %d %s\n%s", len(kept), total, name, doc)
	}
	return out.Bytes(), nil
}
