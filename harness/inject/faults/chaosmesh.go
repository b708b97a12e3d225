package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"
	kjson "sigs.k8s.io/json"

	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.RegisterConverter(kinds.Converter{APIVersion: v1alpha1.SchemeGroupVersion.String(), Convert: fromChaosMesh})
}

// fromChaosMesh converts a pasted NetworkChaos between kube-apiserver and etcd into an item of a scenario's faults, or
// returns every objection at once. Anything that the proxy before etcd can't do in the same way is refused, never
// ignored.
func fromChaosMesh(manifest map[string]any) (*kinds.Converted, []kinds.Objection) {
	if o := chaosKind(manifest["kind"]); o != nil {
		return nil, []kinds.Objection{*o}
	}
	c := &networkChaos{from: map[string]string{"name": "metadata.name"}}
	c.decode(manifest)
	if c.chaos.Name == "" {
		c.refuse("metadata.name", "is missing (want what the fault is called)")
	}
	if c.chaos.Annotations[v1alpha1.PauseAnnotationKey] == "true" {
		c.refuse(
			"metadata.annotations",
			"pauses the chaos, so that it does nothing (want it without %s)",
			v1alpha1.PauseAnnotationKey,
		)
	}
	target := c.target()
	kind, spec := c.action()
	if len(c.objections) > 0 {
		return nil, c.objections
	}
	item := map[string]any{"name": c.chaos.Name, "kind": kind, "target": target, "spec": spec}
	if d := c.chaos.Spec.Duration; d != nil {
		item["duration"], c.from["duration"] = *d, "spec.duration"
	}
	return &kinds.Converted{Item: item, From: c.from}, nil
}

// chaosKind returns an objection to any kind but NetworkChaos.
func chaosKind(kind any) *kinds.Objection {
	why := "no fault here does the same (want a NetworkChaos between kube-apiserver and etcd)"
	switch known := v1alpha1.AllKindsIncludeScheduleAndWorkflow(); kind {
	case v1alpha1.KindNetworkChaos:
		return nil
	case v1alpha1.KindIOChaos:
		why = "the proxy before etcd is no disk, and files are read and written past it (want a NetworkChaos between " +
			"kube-apiserver and etcd)"
	case v1alpha1.KindPhysicalMachineChaos, v1alpha1.KindAWSChaos, v1alpha1.KindGCPChaos, v1alpha1.KindAzureChaos:
		why = "it names machines outside of the cluster (want a NetworkChaos between kube-apiserver and etcd; to cut " +
			"a node's power, a fault of the kind nodePowerOff)"
	case v1alpha1.KindPodChaos:
		why = "it means pods, and faults act on nodes (want a NetworkChaos between kube-apiserver and etcd; to stop, kill " +
			"or restart a component's process, a fault of the kind process)"
	case v1alpha1.KindSchedule, v1alpha1.KindWorkflow:
		why = "phases, at and after say here when a fault comes (want the chaos that it starts)"
	default:
		if name, ok := kind.(string); !ok || known[name] == nil {
			why = fmt.Sprintf(
				"Chaos Mesh has no such kind (want one of %s; only %s is converted)",
				strings.Join(slices.Sorted(maps.Keys(known)), ", "),
				v1alpha1.KindNetworkChaos,
			)
		}
	}
	return &kinds.Objection{
		Field:   "kind",
		Message: fmt.Sprintf("%v can't be converted: %s", kind, why),
	}
}

// networkChaos is a manifest being converted: what was read, where the item's fields come from, and the objections.
type networkChaos struct {
	chaos      v1alpha1.NetworkChaos
	from       map[string]string
	objections []kinds.Objection
	unread     []string // fields that were taken out; nobody objects that they are missing
}

func (c *networkChaos) refuse(field, format string, args ...any) {
	if slices.ContainsFunc(c.unread, func(u string) bool { return field == u || strings.HasPrefix(field, u+".") }) {
		return
	}
	c.objections = append(
		c.objections,
		kinds.Objection{Field: field, Message: fmt.Sprintf(format, args...)},
	)
}

// mistyped finds the field and its type in the decoder's error, whose own type isn't exported.
var mistyped = regexp.MustCompile(
	`cannot unmarshal (\S+) into Go struct field [^.\s]*\.(\S+) of type (\S+)`,
)

// decode reads the manifest into Chaos Mesh's own struct, strictly. A field of the wrong type is objected to and
// removed, so that everything else is still read.
func (c *networkChaos) decode(manifest map[string]any) {
	for rest := manifest; ; {
		raw, err := json.Marshal(rest)
		if err != nil {
			c.refuse("", "can't be encoded: %s", err)
			return
		}
		c.chaos = v1alpha1.NetworkChaos{}
		unknown, err := kjson.UnmarshalStrict(raw, &c.chaos)
		if err == nil {
			c.unknown(unknown)
			return
		}
		m := mistyped.FindStringSubmatch(err.Error())
		if m == nil {
			c.refuse("", "is no NetworkChaos: %s", err)
			return
		}
		want := strings.TrimLeft(m[3][strings.LastIndex(m[3], ".")+1:], "*")
		if strings.HasSuffix(m[3], "string") {
			want = "a text; a duration has its unit: 250ms, 40s"
		}
		// The decoder's path also has the embedded structs, which the manifest doesn't have.
		path := slices.DeleteFunc(strings.Split(m[2], "."),
			func(step string) bool { return step == "" || step[0] >= 'A' && step[0] <= 'Z' })
		field := strings.Join(path, ".")
		c.refuse(field, "is a %s (want %s)", m[1], want)
		c.unread = append(c.unread, field)
		if len(path) == 0 {
			return
		}
		var left bool
		if rest, left = withoutField(rest, path); !left {
			return // the field isn't where the decoder says: taking it out again and again would not end
		}
	}
}

func (c *networkChaos) unknown(found []error) {
	for _, err := range found {
		var field kjson.FieldError
		switch {
		case !errors.As(err, &field):
			c.refuse("", "is no NetworkChaos: %s", err)
		case field.FieldPath() == "spec.scheduler":
			c.refuse(
				field.FieldPath(),
				"is of an older Chaos Mesh; phases, at and after say here when a fault comes",
			)
		default:
			c.refuse(
				field.FieldPath(),
				"unknown field: Chaos Mesh's NetworkChaos has none of this name there",
			)
		}
	}
}

// withoutField returns a copy of m without the value at path; false if there is none.
func withoutField(m map[string]any, path []string) (map[string]any, bool) {
	v, ok := m[path[0]]
	if !ok {
		return m, false
	}
	out := maps.Clone(m)
	if len(path) == 1 {
		delete(out, path[0])
		return out, true
	}
	inner, ok := v.(map[string]any)
	if !ok {
		// A list or a scalar in between: all of it goes.
		delete(out, path[0])
		return out, true
	}
	inner, ok = withoutField(inner, path[1:])
	out[path[0]] = inner
	return out, ok
}
