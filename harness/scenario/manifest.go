package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// manifests converts other tools' manifests among the faults to items. Violations point at the manifest's own fields.
func (d *document) manifests() {
	list, _ := lookup(d.value, []string{"spec", "faults"}).([]any)
	for i, v := range list {
		m, ok := v.(map[string]any)
		if _, foreign := m["apiVersion"]; !ok || !foreign {
			continue
		}
		base := []string{"spec", "faults", strconv.Itoa(i)}
		version, _ := m["apiVersion"].(string)
		c, ok := kinds.ConverterOf(version)
		if !ok {
			at := append(slices.Clip(base), "apiVersion")
			d.add(
				d.positionOfComplaint(at, complaint{}),
				at,
				"%s is of no manifest that can be converted %s",
				show(m["apiVersion"]),
				oneOf(version, kinds.Convertible()),
			)
			d.unconverted(list, i, m, base)
			continue
		}
		if slices.ContainsFunc(d.lost, func(l []string) bool {
			return len(l) >= len(base) &&
				slices.Equal(l[:len(base)], base)
		}) {
			d.unconverted(list, i, m, base) // a converter would complain again about the lost value
			continue
		}
		out, objections := c.Convert(m)
		for _, o := range objections {
			at := slices.Concat(base, fieldPath(o.Field))
			d.add(d.positionOfComplaint(at, complaint{}), at, "%s", o.Message)
		}
		if len(objections) > 0 || out == nil {
			d.unconverted(list, i, m, base)
			continue
		}
		d.move(base, out.From)
		list[i] = out.Item
	}
}

// unconverted replaces a manifest by an item that has only its name, so that items after it still find it. It also
// suppresses further complaints about it.
func (d *document) unconverted(list []any, i int, m map[string]any, base []string) {
	item := map[string]any{}
	if name, ok := lookup(m, []string{"metadata", "name"}).(string); ok {
		item["name"] = name
	}
	list[i] = item
	d.lost = append(d.lost, base)
}

// move gives each field of a converted item the position of the manifest's field that it came from. The other fields
// get the position of the item.
func (d *document) move(base []string, from map[string]string) {
	if len(d.values) == 0 {
		return
	}
	moved := map[string]position{}
	for _, to := range slices.Sorted(maps.Keys(from)) {
		moved[key(slices.Concat(base, fieldPath(to)))] = d.positionOfComplaint(
			slices.Concat(base, fieldPath(from[to])),
			complaint{},
		)
	}
	below := func(k string, _ position) bool { return strings.HasPrefix(k, key(base)+"\x00") }
	maps.DeleteFunc(d.values, below)
	maps.DeleteFunc(d.keys, below)
	maps.Copy(d.values, moved)
}

var index = regexp.MustCompile(`\[(\d+)\]`)

// fieldPath splits spec.list[0].field into its steps. It also splits a key that contains dots; positionOf then falls
// back to the enclosing value.
func fieldPath(field string) []string {
	if field == "" {
		return nil
	}
	return strings.Split(index.ReplaceAllString(field, ".$1"), ".")
}

// textArgs turns numbers and booleans among the flags into text, because people write v: 4.
func textArgs(tree any) {
	textFlags(lookup(tree, []string{"spec", "args"}))
	pairs, _ := lookup(tree, []string{"spec", "pairs"}).([]any)
	for _, p := range pairs {
		textFlags(lookup(p, []string{"args"}))
	}
}

func textFlags(args any) {
	components, _ := args.(map[string]any)
	for _, flags := range components {
		flags, _ := flags.(map[string]any)
		for name, v := range flags {
			switch v.(type) {
			case nil, string, map[string]any, []any:
			default:
				flags[name] = fmt.Sprint(v)
			}
		}
	}
}
