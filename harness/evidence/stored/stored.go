// Package stored reads the documents of bundles that earlier versions of relapse wrote. One table has every word that
// was stored under another name. Whoever reads a document converts it first, and needs to know today's words only.
package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Document is a kind of file in a bundle or a run's directory.
type Document string

// The documents whose words have changed.
const (
	Plan     Document = "plan.json"
	World    Document = "world.json"
	Manifest Document = "manifest.json"
	Event    Document = "a line of timeline.jsonl"
)

// Table is what one earlier version of a document had under other words.
type Table struct {
	Document Document
	// Sign is what every such document has in it. Most documents don't have it, and need not be read twice.
	Sign string
	// Schema is the value of the field schema of such documents; "" if the document never had another schema.
	Schema string
	// Rows are applied in this order, so that a row may use a name that an earlier row introduced.
	Rows []Row
}

// Row says how one word was stored (Was) and is read today (Is). Where is the path of the object that has the word:
// keys with dots between them, * for every item of a list, ** for every object below.
type Row struct {
	Where   string
	Was, Is string
	convert func(object map[string]any)
}

// Tables are all that relapse can convert, the earliest version of a document first.
var Tables = []Table{
	{Plan, `"relapse.dev/plan/v1alpha1"`, "relapse.dev/plan/v1alpha1", []Row{
		value("", "schema", "relapse.dev/plan/v1alpha1", "relapse.dev/plan/v1alpha2"),
		key("trials.*", "cells", "arms"),
		unfold("trials.*.arms.*", "arm"),
		key("trials.*.manifests.*", "cell", "arm"),
		key("trials.*.clusters.*.topology.nodes.*", "cell", "arm"),
		key("trials.*.clusters.*.topology.nodes.*.labels", "relapse.dev/cell", "relapse.dev/arm"),
		key("trials.*.faults.*.target", "cell", "arm"),
		key("trials.*.loads.*.target", "cell", "arm"),
		item("trials.*.**.selector", "nodes", "cell", "arm"),
		value("trials.*.**", "namespace", "cell", "arm"),
		text("trials.*.**", "$(cell)", "$(arm)"),
		text("trials.*.**", "relapse.dev/cell", "relapse.dev/arm"), // selectors, and labels in manifests
	}},
	{Plan, `"csiNodeLoss"`, "", []Row{kind("trials.*.faults.*", "csiNodeLoss", "objects", csiNodes)}},
	{Plan, `"loadCalls"`, "", []Row{kind("trials.*.**", "loadCalls", "answers", answers)}},
	{Plan, `"createConfigMaps"`, "", []Row{kind("trials.*.loads.*", "createConfigMaps", "requests", creations)}},
	{Plan, `"processPause"`, "", []Row{
		merged("trials.*.faults.*", "processPause", "process", "action", "stop"),
	}},
	{Plan, `"objectField"`, "", []Row{kind("trials.*.**", "objectField", "object", objectFields)}},
	{Plan, `"schedulingProbe"`, "", []Row{kind("trials.*.loads.*", "schedulingProbe", "probe", boundPods)}},
	{Plan, `"hangingWebhook"`, "", []Row{kind("trials.*.faults.*", "hangingWebhook", "webhook", hanging)}},
	{Plan, `"etcdLatency"`, "", []Row{
		merged("trials.*.faults.*", "etcdLatency", "latency", "connection", "etcd"),
	}},
	{Plan, `"etcdOutage"`, "", []Row{
		merged("trials.*.faults.*", "etcdOutage", "outage", "connection", "etcd"),
	}},
	{World, `"cells"`, "", []Row{
		key("", "cells", "arms"),
		drop("arms.*", "cell", "arm"),
	}},
	{Manifest, `"cell"`, "", []Row{key("artifacts.*", "cell", "arm")}},
	{Event, `"cell"`, "", []Row{key("", "cell", "arm")}},
}

// Convert returns a document in today's words. Bytes that aren't a JSON object are returned as they are: the document's
// reader says what is wrong with them.
func Convert(d Document, raw []byte) ([]byte, error) {
	for _, t := range Tables {
		if t.Document != d || !bytes.Contains(raw, []byte(t.Sign)) {
			continue
		}
		all, ok := object(raw)
		if !ok || t.Schema != "" && all["schema"] != t.Schema {
			continue
		}
		for _, r := range t.Rows {
			each(all, r.Where, r.convert)
		}
		var err error
		if raw, err = json.Marshal(all); err != nil {
			return nil, fmt.Errorf("converting %s: %w", d, err)
		}
	}
	return raw, nil
}

// object reads bytes that are one JSON object and nothing else.
func object(raw []byte) (out map[string]any, ok bool) {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // a seed has more digits than a float64 holds
	if in.Decode(&out) != nil {
		return nil, false
	}
	_, err := in.Token()
	return out, err == io.EOF && out != nil
}

// each calls do for every object at a path.
func each(at any, path string, do func(map[string]any)) {
	step, rest, _ := strings.Cut(path, ".")
	object, isObject := at.(map[string]any)
	list, _ := at.([]any)
	switch {
	case path == "" && isObject:
		do(object)
	case step == "*":
		for _, v := range list {
			each(v, rest, do)
		}
	case step == "**":
		each(at, rest, do)
		for _, v := range object {
			each(v, path, do)
		}
		for _, v := range list {
			each(v, path, do)
		}
	case isObject:
		if v, ok := object[step]; ok {
			each(v, rest, do)
		}
	}
}

// key returns the row of a renamed key. A document that has both names isn't converted: its
// reader refuses the old one.
func key(where, was, is string) Row {
	return Row{where, was, is, func(o map[string]any) {
		v, old := o[was]
		if _, today := o[is]; old && !today {
			o[is] = v
			delete(o, was)
		}
	}}
}

// drop returns the row of a key that had the same value as another one. Where the two differ the reader refuses it.
func drop(where, was, same string) Row {
	return Row{where, was, same, func(o map[string]any) {
		if reflect.DeepEqual(o[was], o[same]) {
			delete(o, was)
		}
	}}
}

// unfold returns the row of an object whose keys are now those of the object around it. Where the two have different
// values for a key the reader refuses the inner object.
func unfold(where, was string) Row {
	return Row{where, was, "its keys", func(o map[string]any) {
		inner, ok := o[was].(map[string]any)
		if !ok {
			return
		}
		for k, v := range inner {
			if have, there := o[k]; there && !reflect.DeepEqual(have, v) {
				return
			}
		}
		delete(o, was)
		for k, v := range inner {
			o[k] = v
		}
	}}
}

// value returns the row of a key for one of whose values there is another word.
func value(where, of, was, is string) Row {
	return Row{where, was, is, func(o map[string]any) {
		if o[of] == was {
			o[of] = is
		}
	}}
}

// merged returns the row of a kind that is now part of another kind, which needs one more field in its spec.
func merged(where, was, is, field, value string) Row {
	return Row{where, was, is, func(o map[string]any) {
		if spec, ok := o["spec"].(map[string]any); ok && o["kind"] == was {
			o["kind"], spec[field] = is, value
		}
	}}
}

// item returns the row of a list for one of whose items there is another word.
func item(where, of, was, is string) Row {
	return Row{where, was, is, func(o map[string]any) {
		list, _ := o[of].([]any)
		for i := range list {
			if list[i] == was {
				list[i] = is
			}
		}
	}}
}

// kind returns the row of a kind that another took the place of. spec changes the item's spec into one of that kind; ok
// is false if it can't, and then the reader refuses the old kind.
func kind(where, was, is string, spec func(name string, spec map[string]any) (ok bool)) Row {
	return Row{where, was, is, func(o map[string]any) {
		of, isSpec := o["spec"].(map[string]any)
		name, named := o["name"].(string)
		if o["kind"] == was && isSpec && named && spec(name, of) {
			o["kind"] = is
		}
	}}
}

// answers makes the spec of a check answers from one of loadCalls.
func answers(_ string, spec map[string]any) bool {
	code, ok := spec["code"]
	if !ok {
		return false
	}
	delete(spec, "code")
	spec["codes"] = []any{code}
	if _, limited := spec["atLeast"]; !limited {
		spec["atLeast"] = 1 // loadCalls' default
	}
	return true
}

// objectFields makes the spec of a check object from one of objectField.
func objectFields(_ string, spec map[string]any) bool {
	if _, given := spec["hold"]; !given {
		spec["hold"] = "5s" // objectField's default
	}
	return true
}

// boundPods makes the spec of a load probe from one of schedulingProbe.
func boundPods(_ string, spec map[string]any) bool {
	pods, _ := spec["pods"].([]any)
	var made, steps []any
	for _, p := range pods {
		p, _ := p.(map[string]any)
		container := map[string]any{"name": "probe", "image": "pause", "imagePullPolicy": "Never"}
		if image, given := spec["image"]; given {
			container["image"] = image
		}
		wanted := map[string]any{
			"tolerations": []any{map[string]any{"operator": "Exists"}},
			"containers":  []any{container},
		}
		if class, given := p["priorityClass"]; given {
			wanted["priorityClassName"] = class
		}
		if disk, given := p["gcePersistentDisk"]; given {
			wanted["volumes"] = []any{
				map[string]any{
					"name":              "disk",
					"gcePersistentDisk": map[string]any{"pdName": disk},
				},
			}
		}
		pod := func() map[string]any {
			return map[string]any{
				"apiVersion": "v1",
				"kind":       "Pod",
				"metadata":   map[string]any{"name": p["name"]},
			}
		}
		manifest := pod()
		manifest["spec"] = wanted
		made = append(made, manifest)
		steps = append(
			steps,
			map[string]any{"name": fmt.Sprint(p["name"], " bound"), "object": pod(),
				"expression": "has(object.spec.nodeName)", "within": spec["timeout"]},
		)
	}
	timeout, given := spec["timeout"]
	if !given || len(pods) == 0 {
		return false
	}
	clear(spec)
	spec["work"] = "pods that want a node"
	spec["steps"] = append([]any{map[string]any{"name": "created", "manifests": made, "within": timeout}}, steps...)
	return true
}

// csiNodes makes the spec of a fault objects from the empty one of csiNodeLoss.
func csiNodes(_ string, spec map[string]any) bool {
	spec["verb"], spec["undo"] = "delete", true
	spec["manifests"] = []any{map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
		"metadata": map[string]any{"name": "$(node)"}}}
	return true
}

// hanging makes the spec of a fault webhook from one of hangingWebhook, which had three webhooks for one load's
// namespace.
func hanging(_ string, spec map[string]any) bool {
	load, ok := spec["load"].(string)
	if !ok {
		return false
	}
	answers := map[string]any{"answer": map[string]any{"allowed": true}}
	if n, given := spec["auditAnnotations"]; given {
		answers["auditAnnotations"] = n
	}
	delete(spec, "load")
	delete(spec, "auditAnnotations")
	spec["groups"], spec["resources"], spec["operations"] = []any{""}, []any{"configmaps"}, []any{"CREATE"}
	spec["namespaces"], spec["timeoutSeconds"] = []any{"relapse-" + load}, 30
	webhook := func(name, admission string, rule map[string]any) map[string]any {
		return map[string]any{"name": name, "admission": admission, "rules": []any{rule}}
	}
	spec["webhooks"] = []any{
		webhook("annotates-first", "mutating", answers),
		webhook("annotates-last", "validating", answers),
		webhook("hangs", "validating", map[string]any{"never": true}),
	}
	return true
}

// creations makes the spec of a load requests from one of createConfigMaps.
func creations(name string, spec map[string]any) bool {
	spec["method"] = "POST"
	spec["path"] = "/api/v1/namespaces/relapse-" + name + "/configmaps"
	spec["body"] = map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"name": "item-$(n)",
		},
		"data": map[string]any{"n": "number $(n)"},
	}
	for field, standard := range map[string]any{"calls": 6, "rounds": 30, "timeout": "2s"} {
		if _, given := spec[field]; !given {
			spec[field] = standard
		}
	}
	return true
}

// text returns the row of a word within the texts of an object, also those in its lists.
func text(where, was, is string) Row {
	replaced := func(v any) any {
		if s, ok := v.(string); ok {
			return strings.ReplaceAll(s, was, is)
		}
		return v
	}
	return Row{where, was, is, func(o map[string]any) {
		for k, v := range o {
			list, _ := v.([]any)
			for i := range list {
				list[i] = replaced(list[i])
			}
			o[k] = replaced(v)
		}
	}}
}
