package survey

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"
)

//go:embed releases.json
var shipped []byte

// Known returns the releases of a module that this version of relapse knows: every patch of each branch up to the newest
// one. A list by the module proxy would lack those that nobody has asked it for.
func Known(module string) ([]string, error) {
	all := map[string]map[string]int{} // module -> branch -> its newest patch
	if err := json.Unmarshal(shipped, &all); err != nil {
		return nil, fmt.Errorf("reading the table of releases: %w", err)
	}
	if all[module] == nil {
		return nil, fmt.Errorf(
			"no releases of %s are known (known are those of %v)",
			module,
			slices.Sorted(maps.Keys(all)),
		)
	}
	var out []string
	for branch, newest := range all[module] {
		for patch := range newest + 1 {
			out = append(out, fmt.Sprintf("v%s.%d", branch, patch))
		}
	}
	slices.SortFunc(out, compare)
	return out, nil
}

// Newer adds what came after the known releases: the next patch of each branch, and the next branch, until there is none.
// is asks whether a version is there.
func Newer(ctx context.Context, known []string, is func(context.Context, string) bool) []string {
	out := slices.Clone(known)
	for i, text := range known {
		v, err := semver.ParseTolerant(text)
		if err != nil || i+1 < len(known) && sameBranch(text, known[i+1]) {
			continue
		}
		out = append(out, upwards(ctx, v, is)...)
		for next := (semver.Version{Major: v.Major, Minor: v.Minor + 1}); i == len(known)-1 && is(ctx, "v"+next.String()); next.Minor++ {
			out = append(append(out, "v"+next.String()), upwards(ctx, next, is)...)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

func upwards(
	ctx context.Context,
	v semver.Version,
	is func(context.Context, string) bool,
) (out []string) {
	for v.Patch++; is(ctx, "v"+v.String()); v.Patch++ {
		out = append(out, "v"+v.String())
	}
	return out
}

func sameBranch(a, b string) bool {
	x, _ := semver.ParseTolerant(a)
	y, _ := semver.ParseTolerant(b)
	return x.Major == y.Major && x.Minor == y.Minor
}
