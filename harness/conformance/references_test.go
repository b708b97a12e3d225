package conformance_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// A tag that is misspelt would make a field refer to nothing, and nobody would miss it.
func TestFieldsReferToWhatIsKnown(t *testing.T) {
	tagged := 0
	var look func(t *testing.T, typ reflect.Type)
	look = func(t *testing.T, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			tag := f.Tag.Get("refers")
			if tag == "" {
				look(t, f.Type)
				continue
			}
			tagged++
			if f.Type.Kind() != reflect.String && f.Type != reflect.TypeFor[[]string]() && f.Type != reflect.TypeFor[metav1.Duration]() {
				t.Errorf("%s.%s is a %s, which can refer to nothing", typ, f.Name, f.Type)
			}
			for to := range strings.SplitSeq(tag, ",") {
				if !slices.Contains(kinds.Referents, to) {
					t.Errorf("%s.%s refers to %q, want one of %q", typ, f.Name, to, kinds.Referents)
				}
			}
		}
	}
	for _, category := range []string{kinds.Load, kinds.Fault, kinds.Collector, kinds.Check} {
		for _, e := range kinds.Of(category) {
			t.Run(category+"/"+e.Name, func(t *testing.T) { look(t, reflect.TypeOf(e.New())) })
		}
	}
	if tagged < 30 {
		t.Errorf("only %d fields refer to something", tagged)
	}
}
