package scenario

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// RoleLabel is the label by which a cluster's nodes say what they are for: RoleWorker, where workloads run.
const (
	RoleLabel  = "relapse.dev/role"
	RoleWorker = "worker"
)

// derive sets a field of m, which is at path, unless the file has it.
func (e *expansion) derive(m map[string]any, path []string, field string, v any) {
	if _, given := m[field]; !given {
		e.put(m, path, field, v, nil)
	}
}

// follow derives a field that whoever refers to the check at path derives anew.
func (e *expansion) follow(m map[string]any, path []string, field string, v any) {
	if _, given := m[field]; !given {
		e.follows[key(steps(path, field))] = true
		e.put(m, path, field, v, nil)
	}
}

// top derives what every scenario has once: the version of its clusters, what an arm gets to itself, and the nodes of
// workloads.
func (e *expansion) top() {
	spec := []string{"spec"}
	e.derive(e.spec, spec, "version", component.DefaultVersion)
	e.derive(e.spec, spec, "placement", e.placement())
	if e.spec["placement"] == "workload" {
		e.derive(e.spec, spec, "nodes", map[string]any{"workers": 1})
	}
}

// placement returns what an arm of the subject gets to itself: a component that workers run too gets a node, another one
// a control plane. Where the scenario has manifests, they deploy a subject that is no component.
func (e *expansion) placement() string {
	row, known := e.subject()
	switch {
	case known && row.OnRole(false):
		return "node"
	case !known && e.spec["manifests"] != nil:
		return "workload"
	}
	return "cluster"
}

// oracle derives the pair that candidates run with: the first whose arms differ in mutations alone, as candidates do, if
// it is not the default anyway.
func (e *expansion) oracle() {
	pairs := e.list("pairs")
	if len(pairs) < 2 {
		return
	}
	o, ok := e.spec["oracle"].(map[string]any)
	if e.spec["oracle"] != nil && !ok {
		return // the schema complains about it
	}
	for _, p := range pairs {
		name, named := lookup(p, []string{"name"}).(string)
		if !named || lookup(p, []string{"args"}) != nil || lookup(p, []string{"arms", "0", "source", "mutations"}) == nil {
			continue
		}
		switch {
		case o == nil && lookup(p, []string{"default"}) == true:
		case o == nil:
			e.put(e.spec, []string{"spec"}, "oracle", map[string]any{"pair": name}, nil)
		default:
			e.derive(o, []string{"spec", "oracle"}, "pair", name)
		}
		return
	}
}

// ofAnArm matches what only a manifest of each arm has, and placeholder any other value that a manifest takes.
var (
	ofAnArm     = regexp.MustCompile(`(?:^|[^$])\$\((?:arm|namespace|image)\)`)
	placeholder = regexp.MustCompile(`(?:^|[^$])\$\(([^()]+)\)`)
)

// manifests turns the name of a manifest's file into the manifest. What the file asks for tells whether it is each arm's,
// and which parameters it takes.
func (e *expansion) manifests() {
	parameters := map[string]bool{}
	for _, p := range e.list("parameters") {
		name, _ := lookup(p, []string{"name"}).(string)
		parameters[name] = true
	}
	list := e.list("manifests")
	for i, v := range list {
		at := []string{"spec", "manifests", strconv.Itoa(i)}
		if name, ok := v.(string); ok {
			m := map[string]any{}
			list[i] = m
			e.put(m, at, "file", name, at)
		}
		m, ok := list[i].(map[string]any)
		name, _ := m["file"].(string)
		if !ok || e.d.beside == nil {
			continue
		}
		text, err := e.d.beside.content(name)
		if err != nil {
			continue // the plan says what is wrong with the file
		}
		if ofAnArm.Match(text) {
			e.derive(m, at, "each", "arm")
		}
		values := map[string]any{}
		for _, found := range placeholder.FindAllSubmatch(text, -1) {
			if name := string(found[1]); parameters[name] {
				values[name] = "$(" + name + ")"
			}
		}
		if len(values) > 0 {
			e.derive(m, at, "values", values)
		}
	}
}

// target returns where an item acts whose file doesn't say it: on the subject. A workload's node is a worker; of its
// cluster, the API server is asked.
func (e *expansion) target(list string) map[string]any {
	selector := map[string]any{}
	switch row, known := e.subject(); {
	case known:
		selector["component"] = row.Name
	case list == "loads":
		selector["component"] = "kube-apiserver"
	default:
		selector["nodeSelectors"] = map[string]any{RoleLabel: RoleWorker}
	}
	return map[string]any{"mode": "all", "selector": selector}
}

// before matches a range of all versions before one.
var before = regexp.MustCompile(`^<(\d[^\s|<>=!]*)$`)

// signs derives what a sign or the section match doesn't say: which versions have the fix, that a sign is suspicious, and
// that its evidence comes by the command of the sign above.
func (e *expansion) signs() {
	match, ok := e.spec["match"].(map[string]any)
	if !ok {
		return
	}
	path := []string{"spec", "match"}
	affected, _ := match["affected"].(string)
	if v := before.FindStringSubmatch(affected); v != nil {
		e.derive(match, path, "fixed", "v"+v[1]+" and later")
	}
	signs, _ := match["signs"].([]any)
	for i, v := range signs {
		sign, ok := v.(map[string]any)
		if !ok {
			continue
		}
		e.derive(sign, steps(path, "signs", strconv.Itoa(i)), "is", Suspicious)
		if i == 0 {
			continue
		}
		if command, ok := lookup(signs[i-1], []string{"settle"}).(string); ok && strings.TrimSpace(command) != "" {
			e.derive(sign, steps(path, "signs", strconv.Itoa(i)), "settle", command)
		} else if _, given := sign["settle"]; !given {
			e.takes(steps(path, "signs", strconv.Itoa(i), "settle"), steps(path, "signs", strconv.Itoa(i-1), "settle"))
		}
	}
}

// ready returns the path at which the subject answers that it is well; "" if nothing says which.
func (e *expansion) ready() string {
	if row, known := e.subject(); known {
		return row.Ready
	}
	for _, c := range e.list("collectors") {
		if lookup(c, []string{"kind"}) != "health" || lookup(c, []string{"component"}) != nil {
			continue
		}
		if paths, _ := lookup(c, []string{"spec", "paths"}).([]any); len(paths) == 1 {
			path, _ := paths[0].(string)
			return path
		}
	}
	return ""
}

// subject returns the component table's row of the scenario's subject, or false if the subject is no component.
func (e *expansion) subject() (component.Component, bool) {
	name, _ := e.spec["subject"].(string)
	return component.Of(name)
}
