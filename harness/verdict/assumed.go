package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// assumed says of each arm which of its constants are not known and what stands for them, and how far the faults that follow from them reach: an
// arm is only shown to survive that much.
func assumed(w bundle.World, t plan.Trial) []string {
	var out []string
	for _, c := range t.Cells {
		taken := cellWorld(w, c.Name).Assumed
		if len(taken) == 0 {
			continue
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(taken)) {
			parts = append(parts, name+" "+amount(taken[name]))
		}
		note := fmt.Sprintf("constants of %s are not known, and these are assumed: %s", c.Name, strings.Join(parts, ", "))
		for _, name := range slices.Sorted(maps.Keys(w.Computed)) {
			if strings.HasSuffix(name, ".reach") {
				note += fmt.Sprintf("; it was tried with %s, and nothing is said of more", w.Computed[name])
			}
		}
		out = append(out, note)
	}
	return out
}

// amount shows nanoseconds as a duration: no count is that large.
func amount(n int64) string {
	if n >= int64(time.Second) {
		return time.Duration(n).String()
	}
	return fmt.Sprint(n)
}
