package artifacts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Examine reads the sources of a plan's arms, and finds what would make their builds fail: versions and packages that
// don't exist, mutations that don't hit their sites, constants that can't be read. It builds nothing. Flags that a
// scenario gives to a component are compared with those that the program knows, if it is in the cache. untried says what
// could not be examined.
//
// p is a plan of s, with the candidate k unless that is nil. The error has the mistakes as Violations of their files.
func (a *Artifacts) Examine(ctx context.Context, s *scenario.Scenario, p *plan.Plan,
	k *scenario.CandidateFile) (untried []string, err error) {
	a.building.Lock()
	defer a.building.Unlock()
	var errs []error
	seen := map[string]bool{}
	for i := range p.Trials {
		t := &p.Trials[i]
		sources := map[string]build.Source{} // by arm
		for _, arm := range t.Arms {
			if arm.Source.Given() {
				untried = append(untried, fmt.Sprintf("arm %s is an executable", arm.Name))
				continue
			}
			from, err := a.resolve(arm.Source)
			if err != nil {
				errs = append(errs, a.noFixture(arm.Source, err, inSource(t, arm.Arm, "fixture")))
				continue
			}
			src := sourceOf(arm.Arm, from)
			sources[arm.Name] = src
			if key := armKey(arm.Arm); !seen[key] && (k == nil || arm.Role == scenario.Candidate) {
				seen[key] = true
				errs = append(errs, a.examineArm(ctx, t, arm.Arm, src, k))
				if arm.Role != scenario.Candidate {
					errs = append(errs, a.examineEarlier(ctx, t, arm.Arm))
				}
			}
		}
		if ctx.Err() != nil {
			return untried, context.Cause(ctx)
		}
		if k != nil { // the rest is what the scenario has without the candidate
			continue
		}
		errs = append(errs, a.examineVersions(ctx, t))
		more, err := a.examineFlags(ctx, s, t, sources)
		untried, errs = append(untried, more...), append(errs, err)
	}
	return untried, s.Locate(errors.Join(errs...))
}

// examineVersions returns an error if a cluster of a trial has a version of Kubernetes that wasn't published. Versions of
// arms are examined with their sources.
func (a *Artifacts) examineVersions(ctx context.Context, t *plan.Trial) error {
	var errs []error
	for _, c := range t.Clusters {
		v := c.Topology.Version
		if slices.ContainsFunc(t.Arms, func(arm plan.Arm) bool { return arm.Source.Version == v }) {
			continue
		}
		if _, err := build.Resolve(ctx, component.KubernetesModule, v); err != nil {
			errs = append(errs, scenario.InField(err, "version"))
		}
	}
	return errors.Join(errs...)
}

// inSource returns the path in the scenario to a field of an arm's source.
func inSource(t *plan.Trial, arm scenario.Arm, field ...string) []string {
	return slices.Concat([]string{"pairs", t.Pair, "arms", arm.Name, "source"}, field)
}

// blame returns the mistakes in the source of an arm that explain why its build failed. If there are none, blame returns
// failed, the error of the build.
func (a *Artifacts) blame(ctx context.Context, t *plan.Trial, arm scenario.Arm, failed error) error {
	if ctx.Err() != nil || arm.Source.Given() || arm.Role == scenario.Candidate || errors.As(failed, new(*cache.FullError)) {
		return failed
	}
	from, err := a.resolve(arm.Source)
	if err != nil {
		return a.noFixture(arm.Source, err, inSource(t, arm, "fixture"))
	}
	if wrong := a.examineArm(ctx, t, arm, sourceOf(arm, from), nil); wrong != nil && ctx.Err() == nil {
		return fmt.Errorf("arm %s: %w", arm.Name, wrong)
	}
	return failed
}

// noFixture says that an arm's source can't be found, and which fixtures there are.
func (a *Artifacts) noFixture(s scenario.Source, err error, path []string) error {
	if s.Fixture == "" {
		return scenario.InField(err, path[:len(path)-1]...)
	}
	if scenario.OwnFixture(s.Fixture) {
		return scenario.InField(fmt.Errorf("%q is no Go module: %w", s.Fixture, err), path...)
	}
	files, _ := filepath.Glob(filepath.Join(a.root, "fixtures", "*", "go.mod"))
	var known []string
	for _, f := range files {
		known = append(known, filepath.Base(filepath.Dir(f)))
	}
	if _, e := os.Stat(filepath.Join(a.root, "fixtures", s.Fixture, "go.mod")); errors.Is(e, os.ErrNotExist) {
		err = fmt.Errorf("%q is no fixture with a go.mod of its own %s", s.Fixture, scenario.OneOf(s.Fixture, known))
	}
	return scenario.InField(err, path...)
}

// examineArm returns what is wrong with the source of an arm. Of the candidate k, that is what is wrong with its own
// mutations: whatever it shares with another arm is examined there.
func (a *Artifacts) examineArm(
	ctx context.Context,
	t *plan.Trial,
	arm scenario.Arm,
	src build.Source,
	k *scenario.CandidateFile,
) error {
	src.Constants = references(t.Constants)
	var errs, own []error
	for _, m := range a.builder.Examine(ctx, src) {
		switch {
		case arm.Role == scenario.Candidate && k == nil:
			errs = append(errs, fmt.Errorf("arm %s: %w", arm.Name, m.Err))
		case arm.Role == scenario.Candidate:
			if of := m.Index - len(src.Mutations) + len(k.Spec.Mutations); m.Part == build.PartMutation && of >= 0 {
				own = append(own, scenario.InField(m.Err, m.Part, strconv.Itoa(of)))
			}
		case m.Part == build.PartConstant:
			errs = append(errs, scenario.InField(m.Err, m.Part, t.Constants[m.Index].Name))
		case m.Part == build.PartMutation:
			errs = append(errs, scenario.InField(m.Err, inSource(t, arm, m.Part, strconv.Itoa(m.Index))...))
		default:
			errs = append(errs, scenario.InField(m.Err, inSource(t, arm, m.Part)...))
		}
	}
	if len(own) > 0 {
		errs = append(errs, k.Locate(errors.Join(own...)))
	}
	return errors.Join(errs...)
}

// examineEarlier returns what is wrong with the builds that an arm runs before its last one.
func (a *Artifacts) examineEarlier(ctx context.Context, t *plan.Trial, arm scenario.Arm) error {
	var errs []error
	for i, e := range arm.Source.Before {
		s := e.Source()
		if s.Given() {
			continue
		}
		at := func(field ...string) []string {
			return inSource(t, arm, append([]string{"before", strconv.Itoa(i)}, field...)...)
		}
		from, err := a.resolve(s)
		if err != nil {
			errs = append(errs, a.noFixture(s, err, at("fixture")))
			continue
		}
		for _, m := range a.builder.Examine(ctx, sourceOf(scenario.Arm{Role: scenario.Fixed, Source: s}, from)) {
			path := at(m.Part)
			if m.Part == build.PartMutation {
				path = append(path, strconv.Itoa(m.Index))
			}
			errs = append(errs, scenario.InField(m.Err, path...))
		}
	}
	return errors.Join(errs...)
}

// examineFlags compares the flags that a trial gives to components with those that their programs know. sources has
// what the trial's arms are built from.
func (a *Artifacts) examineFlags(ctx context.Context, s *scenario.Scenario, t *plan.Trial,
	sources map[string]build.Source) (untried []string, err error) {
	var errs []error
	known := map[string][]string{} // by source
	try := func(args map[string]map[string]string, path func(component, flag string) []string) {
		for _, name := range slices.Sorted(maps.Keys(args)) {
			all, why := programsOf(name, t, sources)
			if why != "" {
				untried = append(untried, why)
			}
			for _, src := range all {
				have, done := known[src.String()]
				if !done {
					var err error
					have, err = a.builder.Flags(ctx, src)
					errs = append(errs, err)
					known[src.String()] = have
				}
				if len(have) == 0 {
					untried = append(
						untried,
						fmt.Sprintf(
							"the flags of %s, which isn't built here, or doesn't list them",
							src,
						),
					)
					continue
				}
				for _, flag := range slices.Sorted(maps.Keys(args[name])) {
					if !slices.Contains(have, flag) {
						errs = append(errs, scenario.InField(fmt.Errorf("%s has no flag --%s%s", src, flag,
							scenario.Meant(flag, have)), path(name, flag)...))
					}
				}
			}
		}
	}
	try(
		s.Spec.Args,
		func(component, flag string) []string { return []string{"args", component, flag} },
	)
	for _, p := range s.Spec.Pairs {
		if p.Name == t.Pair {
			try(
				p.Args,
				func(component, flag string) []string { return []string{"pairs", p.Name, "args", component, flag} },
			)
		}
	}
	for _, f := range t.Faults {
		r, ok := f.Spec.(fault.Reflagger)
		if !ok {
			continue
		}
		if component, flags := r.Flagged(); len(flags) > 0 {
			try(
				map[string]map[string]string{component: flags},
				func(_, flag string) []string { return []string{"faults", f.Name, "spec", "flags", flag} },
			)
		}
	}
	return untried, errors.Join(errs...)
}

// programsOf returns the programs of a component in a trial: the arms', or that of each of its clusters. why says why
// there are none that take flags.
func programsOf(
	name string,
	t *plan.Trial,
	sources map[string]build.Source,
) (out []build.Source, why string) {
	row, _ := component.Of(name)
	switch {
	case row.Kubeadm.Config != "":
		return nil, fmt.Sprintf(
			"the configuration of %s, which has fields in place of flags",
			name,
		)
	case name == t.Subject:
		for _, arm := range slices.Sorted(maps.Keys(sources)) {
			out = append(out, sources[arm])
		}
	case row.Kubernetes:
		var versions []string
		for _, c := range t.Clusters {
			if v := c.Topology.Version; !slices.Contains(versions, v) {
				versions = append(versions, v)
				out = append(
					out,
					build.Source{
						Module:   component.KubernetesModule,
						Version:  v,
						Packages: []string{row.Package()},
					},
				)
			}
		}
	case name == "etcd":
		out = []build.Source{{Module: component.EtcdModule, Version: component.EtcdVersion, Packages: []string{row.Package()}}}
	default:
		return nil, fmt.Sprintf("the flags of %s, which isn't the subject", name)
	}
	return out, ""
}
