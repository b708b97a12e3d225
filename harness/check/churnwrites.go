package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// writes are those of a resource in a window, by object; there is every object that was there when the window began, written or not. With a name, only
// objects of that name count.
func writes(of []*recorded, resource, name string, w bundle.Window) (by map[string][]written, there map[string]bool) {
	by, there = map[string][]written{}, map[string]bool{}
	// One record is enough: two of the same objects would count each write twice.
	one := max(0, slices.IndexFunc(of, func(r *recorded) bool { return r.Coverage.Covers(w.Start, w.End, 0) }))
	for _, x := range of[one].versions {
		switch {
		case x.resource != resource || name != "" && x.name != name || !x.at.Before(w.End):
		case x.at.Before(w.Start):
			there[x.object()] = x.typ != churn.Deleted
		case x.effective():
			by[x.object()] = append(by[x.object()], x)
		}
	}
	maps.DeleteFunc(there, func(_ string, is bool) bool { return !is })
	return by, there
}

// busiest is the object that was written most.
func busiest(by map[string][]written) string {
	names := slices.Sorted(maps.Keys(by))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(len(by[a]), len(by[b])) })
}

// groups are writes by what they changed and by whom, the most first.
func groups(all []written) []string {
	count := map[string]int{}
	for _, x := range all {
		what := "changed " + cmp.Or(x.class, "nothing that is visible")
		if !x.compared || x.typ != churn.Modified {
			what = "are " + x.typ
		}
		count[fmt.Sprintf("%s, by %s", what, cmp.Or(x.manager, "nobody that is known"))]++
	}
	keys := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%d writes %s", count[k], k))
	}
	return out
}

// managers are those who wrote, each once.
func managers(all []written) string {
	var out []string
	for _, x := range all {
		who := cmp.Or(x.manager, "nobody that is known")
		if x.subresource != "" {
			who += " (" + x.subresource + ")"
		}
		out = union(out, who)
	}
	return strings.Join(out, ", ")
}

// exampleOf is what one write like the first of them changed.
func exampleOf(of []*recorded, all []written) string {
	if len(all) == 0 {
		return ""
	}
	for _, r := range of {
		if e := r.examples[all[0].class]; e != "" {
			return e
		}
	}
	return ""
}
