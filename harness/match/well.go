package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match/healthy"
)

// Well makes baselines from evidence of processes that were well, one for each component that the dumps name. From a
// bundle of relapse's own it takes only the baseline phase, and only arms without changes that judged reports to have
// been well in it. All other evidence is taken to be of processes that were well throughout. left says what was left
// out. The error is a path that can't be opened, or the context's.
func Well(
	ctx context.Context,
	paths []string,
	relapse string,
	judged func(t *Trial) (map[string]bool, error),
) (
	out []*healthy.Baseline, left []archive.Problem, err error) {
	none, err := compile(nil)
	if err != nil {
		return nil, nil, err
	}
	e := &evidence{rules: none, versions: map[string][]string{}, close: func() {}}
	defer func() { e.close() }()
	if err := e.read(ctx, paths, nil); err != nil {
		return nil, nil, err
	}
	leave := func(where, why string, args ...any) {
		left = append(left, archive.Problem{Path: where, Message: fmt.Sprintf(why, args...)})
	}
	left = append(left, e.problems...)
	well := map[*subject]bool{}
	for _, t := range e.bundled {
		arms, err := judged(t)
		if err != nil {
			leave(t.Place, "left out: %s", strings.ReplaceAll(err.Error(), t.Dir, t.Place))
		}
		for _, c := range t.arms {
			if well[c] = arms[c.arm] && c.changed == ""; !well[c] {
				leave(
					c.place,
					"left out: it has changes, or wasn't judged to be well in its baseline",
				)
			}
		}
	}
	for _, component := range e.components() {
		var b healthy.Builder
		for _, sub := range e.subjects(component, nil) {
			if sub.component != component {
				continue
			}
			view := sub.view
			if v, ours := view.(bundleArm); ours {
				var ok bool
				if v.within, ok = v.View.Phase(sub.arm, check.Baseline); !ok || v.within.End.IsZero() || !well[sub] {
					continue
				}
				view = v
			}
			version := sub.version()
			if all := e.versions[component]; version == "" && len(all) == 1 {
				version = all[0]
			}
			for _, of := range processes(view, view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: sub.arm})) {
				var dumps []*goroutine.Dump
				for _, a := range of {
					switch d := dumpOf(view, a); {
					case d == nil || d.Truncated:
						leave(a.Path, "left out: it can't be read, or is cut short")
					case version == "":
						leave(
							a.Path,
							"left out: nothing tells the version of %s there",
							component,
						)
					default:
						dumps = append(dumps, d)
					}
				}
				b.Add(version, dumps)
			}
		}
		if b.Dumps() > 0 {
			out = append(out, b.Baseline(component, relapse))
		}
	}
	return out, left, nil
}

// components returns the components that dumps and trials name.
func (e *evidence) components() (out []string) {
	for _, t := range e.trials {
		out = union(out, t.component)
	}
	for _, s := range e.sources {
		for _, d := range s.dumps {
			out = union(out, process(d.Dump, here, nil).program) // here is no component, so that no name is preferred
		}
	}
	slices.Sort(out)
	return out
}
