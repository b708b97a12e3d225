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
	version   string // of Kubernetes; "" for what runs beside every version
	published bool
	missing   []string // what of it couldn't be had as published, and is built for want of that
}

// publishedParts gets programs of the clusters as they were published, by program name. out is nil if they are to be
// built: because the arms are, because no component has such a program, or because one of them can't be had. Only in the
// last case, missing has the names of the programs.
func (a *Artifacts) publishedParts(
	ctx context.Context,
	version string,
	packages []string,
) (out map[string]string, missing []string, err error) {
	names := a.publishable(version, packages)
	if names == nil {
		return nil, nil, nil
	}
	got := []part(nil)
	out = map[string]string{}
	for _, name := range names {
		x, err := a.publisher.Get(ctx, a.cache, name, version)
		var refused *release.Error
		if errors.As(err, &refused) {
			a.events.Say(event.Note, "it is built here: "+refused.Error())
			return nil, names, nil
		}
		if err != nil {
			return nil, nil, err
		}
		out[name] = x.Path
		got = append(
			got,
			part{what: name + " " + version, version: versionOf(name, version), published: true},
		)
	}
	a.parts = append(a.parts, got...)
	return out, nil, nil
}

// versionOf returns the version of Kubernetes that a component's program belongs to, "" if that is any.
func versionOf(name, version string) string {
	if row, _ := component.Of(name); !row.Kubernetes {
		return ""
	}
	return version
}

// publishable returns the names of the components whose programs some packages are, or nil if they are to be built.
func (a *Artifacts) publishable(version string, packages []string) (names []string) {
	if a.programs.From != plan.Published || a.publisher == nil {
		return nil
	}
	all := component.Names(
		func(c component.Component) bool { return c.Image(version) != "" || c.File(version, "") != "" },
	)
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

// MixedParts says which programs in a trial's clusters were built here because they couldn't be had as published, while
// others of the run were published: they differ in compiler and flags. It returns nil if there are none. A program that no
// project publishes, such as kwok, has one way only and is none of them.
func (a *Artifacts) MixedParts(t plan.Trial) (said []string) {
	a.building.Lock()
	defer a.building.Unlock()
	for _, p := range a.parts {
		mine := p.version == "" ||
			slices.ContainsFunc(
				t.Clusters,
				func(c plan.Cluster) bool { return c.Topology.Version == p.version },
			)
		if len(p.missing) == 0 || !mine {
			continue
		}
		text := fmt.Sprintf(
			"the clusters' %s was built here and other programs of the run were published: they differ in compiler and flags",
			strings.Join(p.missing, ", "),
		)
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
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
		return fmt.Sprintf(
			"as published: %s; built from source: %s",
			strings.Join(published, ", "),
			strings.Join(built, ", "),
		)
	}
}
