package kinds

import (
	"fmt"
	"maps"
	"slices"
)

// Converter turns another tool's fault manifest into an item of a scenario.
//
// Convert gets the whole manifest as JSON values. If there are objections it returns all of them, and no item.
type Converter struct {
	APIVersion string // of the manifests: chaos-mesh.org/v1alpha1
	Convert    func(manifest map[string]any) (*Converted, []Objection)
}

// Converted is an item ({name, kind, target, spec}) as JSON values. From maps fields of the item to the fields of the
// manifest that they come from (spec.latency: spec.delay.latency), so that a violation is shown where the author wrote
// the field.
type Converted struct {
	Item map[string]any
	From map[string]string
}

// Objection is a reason why a manifest can't be converted. Field is a field of the manifest, such as spec.action, or ""
// for the whole manifest.
type Objection struct{ Field, Message string }

var converters = map[string]Converter{}

// RegisterConverter adds c. It panics on a second converter for the same version, a mistake that every binary shows at
// start.
func RegisterConverter(c Converter) {
	mu.Lock()
	defer mu.Unlock()
	if c.APIVersion == "" || c.Convert == nil {
		panic(
			fmt.Sprintf(
				"kinds: the converter of %q needs an API version and a function",
				c.APIVersion,
			),
		)
	}
	if _, dup := converters[c.APIVersion]; dup {
		panic(fmt.Sprintf("kinds: converter of %q registered twice", c.APIVersion))
	}
	converters[c.APIVersion] = c
}

// ConverterOf returns the converter for manifests of an API version.
func ConverterOf(apiVersion string) (Converter, bool) {
	mu.RLock()
	defer mu.RUnlock()
	c, ok := converters[apiVersion]
	return c, ok
}

// Convertible returns the API versions of manifests that can be converted, sorted.
func Convertible() []string {
	mu.RLock()
	defer mu.RUnlock()
	return slices.Sorted(maps.Keys(converters))
}
