package kinds

import (
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reference is a name in a spec that stands for another part of the scenario, or for a part of the evidence. A plan in
// which that part is missing is refused. In a collector's spec it is a part of the evidence that the collector records.
type Reference struct {
	To   string   // one of Referents
	Name string   // the value in the spec
	Path []string // of the field in the spec: the names of fields and the indexes of list members; nil if there is none
}

// What a spec can refer to. A field, which is a text, a list of texts or a duration, says so in its tag: `refers:"load"`. A field may have several, separated by commas.
const (
	ToLoad      = "load"
	ToProbe     = "probe"     // a load that is a probe, in the phase of the check
	ToFault     = "fault"     // a fault
	ToNode      = "node"      // a node within the arm's cluster
	ToConstant  = "constant"  // a constant that the scenario declares
	ToComponent = "component" // a component that the cluster has
	ToLog       = "log"       // the log of a component
	ToStatus    = "status"    // the status of a container
	ToMetric    = "metric"    // a metric, or a family of metrics
	ToObjects   = "objects"   // the objects of a resource
	ToHealth    = "health"    // the answers of a path
	ToStretch   = "stretch"   // no name but a duration: a stretch of the phase, which must be as long
)

// Referents lists everything that a spec can refer to.
var Referents = []string{ToLoad, ToProbe, ToFault, ToNode, ToConstant, ToComponent, ToLog, ToStatus, ToMetric, ToObjects,
	ToHealth, ToStretch}

// Referrer is a spec with references that no field has for itself, such as those of an expression.
type Referrer interface{ References() []Reference }

// References returns everything that a spec refers to, by the tags of its fields and as a Referrer. Empty fields refer
// to nothing.
func References(spec any) []Reference {
	var out []Reference
	walk(reflect.ValueOf(spec), nil, &out)
	if r, ok := spec.(Referrer); ok {
		out = append(out, r.References()...)
	}
	return out
}

// walk adds the references of v, whose path is given, and of everything below it.
func walk(v reflect.Value, path []string, out *[]Reference) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		walk(v.Elem(), path, out)
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), append(path[:len(path):len(path)], strconv.Itoa(i)), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := path
			if !f.Anonymous || name != "" {
				at = append(path[:len(path):len(path)], name)
			}
			if tag := f.Tag.Get("refers"); tag != "" {
				refer(strings.Split(tag, ","), v.Field(i), at, out)
				continue
			}
			walk(v.Field(i), at, out)
		}
	}
}

// refer adds the references of a field with the tag, which is a text, a list of texts or a duration.
func refer(tag []string, v reflect.Value, path []string, out *[]Reference) {
	if d, ok := v.Interface().(metav1.Duration); ok {
		if d.Duration != 0 {
			refer(tag, reflect.ValueOf(d.Duration.String()), path, out)
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		for _, to := range tag {
			if v.String() != "" {
				*out = append(*out, Reference{To: to, Name: v.String(), Path: path})
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			refer(tag, v.Index(i), append(path[:len(path):len(path)], strconv.Itoa(i)), out)
		}
	}
}
