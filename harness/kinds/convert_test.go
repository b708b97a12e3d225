package kinds_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func convert(map[string]any) (*kinds.Converted, []kinds.Objection) {
	return &kinds.Converted{Item: map[string]any{"name": "a"}}, nil
}

func TestConverters(t *testing.T) {
	kinds.RegisterConverter(kinds.Converter{APIVersion: "quakes.example/v1", Convert: convert})
	c, ok := kinds.ConverterOf("quakes.example/v1")
	if !ok || !slices.Contains(kinds.Convertible(), "quakes.example/v1") {
		t.Fatal("the converter is not found")
	}
	if out, objections := c.Convert(nil); out.Item["name"] != "a" || objections != nil {
		t.Errorf("it converts to %v, %v", out, objections)
	}
	if _, ok := kinds.ConverterOf("quakes.example/v2"); ok {
		t.Error("a converter of another version was found")
	}
	for _, tc := range []struct {
		name string
		c    kinds.Converter
		want string
	}{
		{"a second one", kinds.Converter{APIVersion: "quakes.example/v1", Convert: convert}, `kinds: converter of "quakes.example/v1" registered twice`},
		{"no version", kinds.Converter{Convert: convert}, `kinds: the converter of "" needs an API version and a function`},
		{"no function", kinds.Converter{APIVersion: "quakes.example/v3"}, `kinds: the converter of "quakes.example/v3" needs an API version and a function`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer func() {
				if got := recover(); got != tc.want {
					t.Errorf("panics with %v, want %s", got, tc.want)
				}
			}()
			kinds.RegisterConverter(tc.c)
		})
	}
}
