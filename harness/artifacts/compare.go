package artifacts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// compareTrees adds to the build of each source tree among a trial's arms how its source differs from that of the fixed
// arm, or from the vulnerable arm's where there is none. A tree builds without that, so whatever keeps it from being
// compared stands in the place of the difference: an empty one would mean that nothing differs. A tree that several pairs
// share is compared with the first pair's arm, which the difference names.
func (a *Artifacts) compareTrees(ctx context.Context, t *plan.Trial) error {
	a.building.Lock()
	defer a.building.Unlock()
	for _, c := range t.Arms {
		from, err := a.resolve(c.Source)
		if err != nil {
			return err
		}
		arm := armKey(c.Arm)
		key, built := a.trees[arm]
		if !isTree(c.Arm, from) || !built {
			continue
		}
		diff, err := a.difference(ctx, t, c.Arm, from, key)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			diff = []byte(
				"# How the source differs is not known: " + strings.ReplaceAll(
					err.Error(),
					"\n",
					"\n# ",
				) + "\n",
			)
		}
		b := a.arms[arm]
		b.Diff = append(diff, b.Diff...)
		a.arms[arm] = b
		delete(a.trees, arm)
	}
	return nil
}

// difference returns how the source of a tree, which is resolved as from, differs from that of the arm that it is
// compared with. built is the key of its build.
func (a *Artifacts) difference(
	ctx context.Context,
	t *plan.Trial,
	arm scenario.Arm,
	from scenario.Source,
	built string,
) ([]byte, error) {
	var other *plan.Arm
	for _, role := range []string{scenario.Fixed, scenario.Vulnerable} {
		i := slices.IndexFunc(
			t.Arms,
			func(o plan.Arm) bool { return o.Role == role && o.BuildOf == "" },
		)
		if i >= 0 && other == nil {
			other = &t.Arms[i]
		}
	}
	switch {
	case other == nil:
		return nil, errors.New("there is no arm to compare it with")
	case other.Source.Given():
		return nil, fmt.Errorf("the arm %s is an executable", other.Name)
	}
	base, err := a.resolve(other.Source)
	if err != nil {
		return nil, err
	}
	diff, err := a.builder.Difference(ctx, sourceOf(arm, from), sourceOf(other.Arm, base), built)
	if err != nil {
		return nil, fmt.Errorf("comparing it with the arm %s: %w", other.Name, err)
	}
	return diff, nil
}
