// Package stored converts documents of bundles that earlier versions of relapse wrote. One table has every word that
// was stored under another name. A reader converts a document first, and knows only today's words.
package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// Row says how one word of a document was stored (Was) and is read today (Is). Where is the path of the object that has
// the word: keys with dots between them, * for every item of a list, ** for every object below.
type Row struct {
	Document Document
	Where    string
	Was, Is  string
	convert  func(object map[string]any)
}

// Table has the rows in the order in which they are applied, so that a row may use a name that an earlier row
// introduced.
var Table = []Row{
	value(Plan, "", "schema", "relapse.dev/plan/v1alpha1", "relapse.dev/plan/v1alpha2"),
	key(Plan, "trials.*", "cells", "arms"),
	unfold(Plan, "trials.*.arms.*", "arm"),
	key(Plan, "trials.*.manifests.*", "cell", "arm"),
	key(Plan, "trials.*.clusters.*.topology.nodes.*", "cell", "arm"),
	key(Plan, "trials.*.clusters.*.topology.nodes.*.labels", "relapse.dev/cell", "relapse.dev/arm"),
	key(Plan, "trials.*.faults.*.target", "cell", "arm"),
	key(Plan, "trials.*.loads.*.target", "cell", "arm"),
	item(Plan, "trials.*.**.selector", "nodes", "cell", "arm"),
	value(Plan, "trials.*.**", "namespace", "cell", "arm"),
	text(Plan, "trials.*.**", "$(cell)", "$(arm)"),
	key(World, "", "cells", "arms"),
	drop(World, "arms.*", "cell", "arm"),
	key(Manifest, "artifacts.*", "cell", "arm"),
	key(Event, "", "cell", "arm"),
}

// Convert returns a document in today's words. Bytes that aren't a JSON object are returned as they are: the document's
// reader says what is wrong with them.
func Convert(d Document, raw []byte) ([]byte, error) {
	if !bytes.Contains(raw, []byte(signs[d])) {
		return raw, nil
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // a seed has more digits than a float64 holds
	var all map[string]any
	if err := in.Decode(&all); err != nil {
		return raw, nil
	}
	if _, err := in.Token(); err != io.EOF {
		return raw, nil
	}
	for _, r := range Table {
		if r.Document == d {
			each(all, r.Where, r.convert)
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("converting %s: %w", d, err)
	}
	return out, nil
}

// signs has a text for each document that only earlier versions have in it. Most documents don't, and need not be read
// twice.
var signs = map[Document]string{
	Plan:     `"relapse.dev/plan/v1alpha1"`,
	World:    `"cells"`,
	Manifest: `"cell"`,
	Event:    `"cell"`,
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

// key returns the row of a renamed key. A document that has both names is left to its reader, which refuses the old
// one.
func key(d Document, where, was, is string) Row {
	return Row{d, where, was, is, func(o map[string]any) {
		v, old := o[was]
		if _, today := o[is]; old && !today {
			o[is] = v
			delete(o, was)
		}
	}}
}

// drop returns the row of a key that had the same value as another key.
func drop(d Document, where, was, same string) Row {
	return Row{d, where, was, same, func(o map[string]any) {
		if o[was] == o[same] {
			delete(o, was)
		}
	}}
}

// unfold returns the row of an object whose keys now belong to the object around it.
func unfold(d Document, where, was string) Row {
	return Row{d, where, was, "its keys", func(o map[string]any) {
		inner, ok := o[was].(map[string]any)
		if !ok {
			return
		}
		for k, v := range inner {
			if have, there := o[k]; there && have != v {
				return
			}
		}
		for k, v := range inner {
			o[k] = v
		}
		delete(o, was)
	}}
}

// value returns the row of a key with a renamed value.
func value(d Document, where, of, was, is string) Row {
	return Row{d, where, was, is, func(o map[string]any) {
		if o[of] == was {
			o[of] = is
		}
	}}
}

// item returns the row of a list with a renamed item.
func item(d Document, where, of, was, is string) Row {
	return Row{d, where, was, is, func(o map[string]any) {
		list, _ := o[of].([]any)
		for i := range list {
			if list[i] == was {
				list[i] = is
			}
		}
	}}
}

// text returns the row of a word that was renamed inside texts.
func text(d Document, where, was, is string) Row {
	return Row{d, where, was, is, func(o map[string]any) {
		for k, v := range o {
			if s, ok := v.(string); ok {
				o[k] = strings.ReplaceAll(s, was, is)
			}
		}
	}}
}
