// Package manifest sends requests about objects that a scenario writes down: through the API server, or as bytes into
// etcd past the API server.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// Template is an object as a scenario writes it down. Its texts, those of keys included, may refer to words such as
// $(n).
type Template map[string]any

// Words are the values of the words that a template may refer to. A text that is nothing but a reference stays a text.
type Words map[string]any

// The words of templates.
const (
	Arm    = "arm"  // the arm's name
	Number = "n"    // the number of the request, from 0
	Node   = "node" // the name of a Node object of the target
)

// Expand returns the object with all references replaced.
func (t Template) Expand(words Words) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(t)
	if err == nil {
		text, err = kinds.Expand(text, words)
	}
	var object map[string]any
	if err == nil {
		err = utiljson.Unmarshal(text, &object) // whole numbers become int64
	}
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: object}, nil
}

// Key tells objects apart, in words: Pod relapse-x/p of v1.
func (t Template) Key() string {
	o := unstructured.Unstructured{Object: t}
	return strings.TrimSpace(
		fmt.Sprintf(
			"%s %s of %s",
			o.GetKind(),
			strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"),
			o.GetAPIVersion(),
		),
	)
}

// RefersTo reports whether some text of the template refers to a word.
func (t Template) RefersTo(name string) bool {
	return slices.Contains(t.references(), name)
}

// references returns the words that the template refers to, sorted.
func (t Template) references() []string {
	found := map[string]bool{}
	note := func(text string) {
		for _, m := range kinds.Placeholder.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[0], "$$") {
				found[m[1]] = true
			}
		}
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			note(v)
		case map[string]any:
			for key, member := range v {
				note(key)
				walk(member)
			}
		case []any:
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(map[string]any(t))
	return slices.Sorted(maps.Keys(found))
}

// Naming says which names objects need.
type Naming int

const (
	Named    Naming = iota // metadata.name: a request without it would mean the whole collection
	Nameable               // metadata.name or generateName
	Unnamed                // none: the collection is meant
)

// Templates are the objects of one load or fault, in order.
type Templates []Template

// Validate refuses objects that can't be asked for: without an API version, a kind or a name, or with a word that
// nobody would replace. known are the words that will be replaced.
func (all Templates) Validate(naming Naming, known ...string) error {
	if len(all) == 0 {
		return errors.New("manifests is empty (want at least one object)")
	}
	for i, t := range all {
		o := unstructured.Unstructured{Object: t}
		at := fmt.Sprintf("manifests[%d]", i)
		switch {
		case o.GetAPIVersion() == "":
			return fmt.Errorf("%s has no apiVersion (want one such as v1 or apps/v1)", at)
		case o.GetKind() == "":
			return fmt.Errorf("%s has no kind (want one such as ConfigMap)", at)
		case naming != Unnamed && o.GetName() == "" && (naming == Named || o.GetGenerateName() == ""):
			return fmt.Errorf("%s, a %s, has no metadata.name", at, o.GetKind())
		}
		if err := misnamed(o.GetAPIVersion(), o.GetKind()); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		for _, name := range t.references() {
			if !slices.Contains(known, name) {
				return fmt.Errorf(
					"%s refers to $(%s), which nothing replaces (want %s)",
					at,
					name,
					choices(known),
				)
			}
		}
	}
	return nil
}

func choices(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "$("+w+")")
	}
	return strings.Join(out, ", ")
}

// PerNode reports whether some object refers to the node, so that there is one for each.
func (all Templates) PerNode() bool {
	return slices.ContainsFunc(all, func(t Template) bool { return t.RefersTo(Node) })
}

// All reports whether something holds for all objects.
func (all Templates) All(holds func(Template) bool) bool {
	return !slices.ContainsFunc(all, func(t Template) bool { return !holds(t) })
}

// Homeless reports whether some object doesn't say which namespace it is in, so that it may need one.
func (all Templates) Homeless() bool {
	return slices.ContainsFunc(all, func(t Template) bool {
		return (&unstructured.Unstructured{Object: t}).GetNamespace() == metav1.NamespaceNone
	})
}

// Apart reports whether each object is one of the arm's own, whatever other arms of its cluster have: its namespace or its
// name has $(arm).
func (all Templates) Apart() bool {
	return all.All(func(t Template) bool {
		o := unstructured.Unstructured{Object: t}
		return strings.Contains(o.GetNamespace()+" "+o.GetName(), "$("+Arm+")")
	})
}

// Size returns the length of all objects together, in bytes of JSON.
func (all Templates) Size() int64 {
	text, _ := json.Marshal(all) // it was decoded from JSON
	return int64(len(text))
}

// Describe lists the objects in words: Service old, Pod p-$(n).
func (all Templates) Describe() string {
	var out []string
	for _, t := range all {
		o := unstructured.Unstructured{Object: t}
		out = append(out, strings.TrimSpace(o.GetKind()+" "+o.GetName()+o.GetGenerateName()))
	}
	return strings.Join(out, ", ")
}
