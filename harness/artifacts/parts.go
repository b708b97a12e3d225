package artifacts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// part is programs that clusters are made of, which are no arm's.
type part struct {
	what      string // etcd v3.6.5
	published bool
}

// publishedParts gets programs of the clusters as they were published, by program name. It returns nil if they are to be
// built: because the arms are, because no component has such a program, or because one of them can't be had.
func (a *Artifacts) publishedParts(ctx context.Context, version string, packages []string) (map[string]string, error) {
	names := a.publishable(version, packages)
	if names == nil {
		return nil, nil
	}
	out, got := map[string]string{}, []part(nil)
	for _, name := range names {
		x, err := a.publisher.Get(ctx, a.cache, name, version)
		var missing *release.Error
		if errors.As(err, &missing) {
			a.events.Say(event.Note, "it is built here: "+missing.Error())
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out[name] = x.Path
		got = append(got, part{name + " " + version, true})
	}
	a.parts = append(a.parts, got...)
	return out, nil
}

// publishable returns the names of the components whose programs some packages are, or nil if they are to be built.
func (a *Artifacts) publishable(version string, packages []string) (names []string) {
	if a.programs.From != plan.Published || a.publisher == nil {
		return nil
	}
	all := component.Names(func(c component.Component) bool { return c.Image(version) != "" || c.File(version, "") != "" })
	for _, pkg := range packages {
		i := slices.IndexFunc(all, func(name string) bool {
			row, _ := component.Of(name)
			return row.Builds(pkg)
		})
		if i < 0 {
			return nil
		}
		names = append(names, all[i])
	}
	return names
}

// Parts says by which way the programs came that the clusters are made of, "" if there are none.
func (a *Artifacts) Parts() string {
	a.building.Lock()
	defer a.building.Unlock()
	of := func(published bool) (names []string) {
		for _, p := range a.parts {
			if p.published == published && !slices.Contains(names, p.what) {
				names = append(names, p.what)
			}
		}
		return names
	}
	switch published, built := of(true), of(false); {
	case len(published) == 0 && len(built) == 0:
		return ""
	case len(built) == 0:
		return "as published"
	case len(published) == 0:
		return "built from source"
	default:
		return fmt.Sprintf("as published: %s; built from source: %s", strings.Join(published, ", "), strings.Join(built, ", "))
	}
}
