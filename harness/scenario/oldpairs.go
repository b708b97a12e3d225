package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// pairInstead returns what to write for arms in the old form, a list with the whole source of each arm.
func (e *expansion) pairInstead(old []any) string {
	var parts []string
	onlyVersions := true
	for _, role := range []string{Vulnerable, Fixed} {
		i := slices.IndexFunc(
			old,
			func(a any) bool { return lookup(a, []string{"role"}) == role },
		)
		if i < 0 {
			return "arms: {fixed: {}, vulnerable: {mutations: […]}}"
		}
		src, _ := lookup(old[i], []string{"source"}).(map[string]any)
		src = e.underived(src)
		v, alone := src["version"]
		onlyVersions = onlyVersions && alone && len(src) == 1
		text, err := yaml.MarshalWithOptions(src, yaml.Flow(true))
		if err != nil {
			text = []byte("{…}")
		}
		short := strings.TrimSpace(string(text))
		if v != nil && len(src) == 1 {
			short = fmt.Sprint(v)
		}
		parts = append(parts, role+": "+short)
	}
	if onlyVersions {
		return strings.Join(parts, ", ")
	}
	for i, role := range []string{Vulnerable, Fixed} {
		if v, ok := strings.CutPrefix(parts[i], role+": v"); ok {
			parts[i] = role + ": {version: v" + v + "}"
		}
	}
	return "arms: {" + strings.Join(parts, ", ") + "}"
}

// underived returns a source without the fields that would be derived.
func (e *expansion) underived(src map[string]any) map[string]any {
	out := maps.Clone(src)
	row, known := e.subject()
	if known && row.Module() != "" && out["module"] == row.Module() {
		delete(out, "module")
		if out["package"] == row.Package() {
			delete(out, "package")
		}
	}
	if !known && out["fixture"] == e.spec["subject"] {
		delete(out, "fixture")
	}
	// Versions of two arms that differ in nothing else are both worth saying.
	v, _ := e.spec["version"].(string)
	if out["version"] == row.Version(v) && len(out) > 1 {
		delete(out, "version")
	}
	return out
}
