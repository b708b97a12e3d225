package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// busiest returns the object that was written most often, and the writes to that object.
func busiest(a objects.Activity) (object string, all []objects.Written) {
	for _, name := range slices.Sorted(maps.Keys(a.By)) {
		if len(a.By[name]) > len(all) {
			object, all = name, a.By[name]
		}
	}
	return object, all
}

// describeGroups describes how many writes changed the same paths and came from the same manager, the largest number
// first.
func describeGroups(all []objects.Written) []string {
	count := map[string]int{}
	for _, x := range all {
		what := "changed " + cmp.Or(x.Class, "nothing that is visible")
		if !x.Compared || x.Type != churn.Modified {
			what = "are " + x.Type
		}
		count[fmt.Sprintf("%s, by %s", what, cmp.Or(x.Manager, "nobody that is known"))]++
	}
	keys := slices.SortedFunc(
		maps.Keys(count),
		func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) },
	)
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%d writes %s", count[k], k))
	}
	return out
}

// describeManagers returns the names of those who wrote, each once.
func describeManagers(all []objects.Written) string {
	var out []string
	for _, x := range all {
		who := cmp.Or(x.Manager, "nobody that is known")
		if x.Subresource != "" {
			who += " (" + x.Subresource + ")"
		}
		out = question.Union(out, who)
	}
	return strings.Join(out, ", ")
}
