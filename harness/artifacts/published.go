package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// Decide gets the programs of the plan's arms that are taken as published, and writes into the plan which they are. If
// the plan leaves open whether any are, it is one decision for all: they are if each can be had so, or else each is
// built here. An open plan stays as it is without a publisher, and then all is built, and where all arms are executables
// that are given.
func (a *Artifacts) Decide(ctx context.Context, p *plan.Plan) error {
	open := p.Programs == nil && a.publisher != nil && slices.ContainsFunc(p.Trials, func(t plan.Trial) bool {
		return slices.ContainsFunc(t.Arms, func(a plan.Arm) bool { return !a.Source.Given() })
	})
	if open {
		p.Programs = &plan.Programs{From: plan.Published, Why: "all of them can be had"}
		if why := p.MustBuild(); why != "" {
			p.Programs = &plan.Programs{From: plan.Built, Why: why}
		}
	}
	err := a.getPublished(ctx, p)
	var missing *release.Error
	if open && p.Programs.From == plan.Published && errors.As(err, &missing) {
		p.Programs = &plan.Programs{From: plan.Built, Why: missing.Error()}
		err = a.getPublished(ctx, p) // a candidate may be published in any case
	}
	if err != nil || p.Programs == nil {
		return err
	}
	a.programs = *p.Programs
	a.events.Say(event.Note, p.Programs.String())
	p.NoteMixed()
	return nil
}

// SupposePublished returns the plan as Decide would decide it if the publisher had each program that it may have
// published. It asks nobody. Foresee then counts only what is built in any case.
func (a *Artifacts) SupposePublished(p *plan.Plan) *plan.Plan {
	a.programs = plan.Programs{}
	if a.publisher == nil {
		return p
	}
	p = p.SupposePublished()
	a.programs = *p.Programs
	return p
}

// getPublished gets the programs that are taken as published: those that the plan says, and all others that may be, if
// they are to be. It changes the plan once it has all of them.
func (a *Artifacts) getPublished(ctx context.Context, p *plan.Plan) error {
	got := map[*scenario.Source]*scenario.Release{}
	for i := range p.Trials {
		t := &p.Trials[i]
		for j := range t.Arms {
			s, name := &t.Arms[j].Source, t.Arms[j].Name
			why := plan.Unpublished(t.Subject, *s)
			if s.Release == nil && (why != "" || p.Programs == nil || p.Programs.From != plan.Published) {
				continue
			}
			switch {
			case why != "":
				return fmt.Errorf(
					"arm %s %s, and the plan takes its program as published",
					name,
					why,
				)
			case a.publisher == nil:
				return fmt.Errorf(
					"the plan takes the program of arm %s as published, and nobody was named who publishes it",
					name,
				)
			}
			a.events.Say(
				event.Progress,
				fmt.Sprintf("getting %s %s as it was published", t.Subject, s.Version),
			)
			x, err := a.publisher.Get(ctx, a.cache, t.Subject, s.Version)
			var missing *release.Error
			if s.Release != nil && t.Arms[j].Role == scenario.Candidate && errors.As(err, &missing) {
				return &candidate.Error{Given: "release:" + s.Version, Err: missing.Err, Hint: missing.Hint()}
			}
			if err != nil {
				return err
			}
			if s.Release != nil && s.Release.SHA256 != "" && s.Release.SHA256 != x.SHA256 {
				return fmt.Errorf(
					"arm %s: the program at %s has SHA-256 %s, and the plan's had %s",
					name,
					x.From,
					x.SHA256,
					s.Release.SHA256,
				)
			}
			got[s] = &scenario.Release{From: x.From, SHA256: x.SHA256, Go: x.Go}
			a.published[x.SHA256] = x.Path
		}
	}
	if len(got) == 0 && p.Programs != nil && p.Programs.From == plan.Published {
		return fmt.Errorf(
			"no program of this run is published: %s",
			cmp.Or(p.MustBuild(), "all are executables that are given"),
		)
	}
	for s, r := range got {
		s.Release = r
	}
	return nil
}

// takePublished returns the published program of an arm. Its constants are those of its version's source, or unknown.
func (a *Artifacts) takePublished(
	ctx context.Context,
	arm scenario.Arm,
	constants []scenario.Constant,
) (b environment.Build, err error) {
	r := arm.Source.Release
	path, ok := a.published[r.SHA256]
	if !ok {
		return b, fmt.Errorf("the published program of arm %s was not got", arm.Name)
	}
	b = environment.Build{Path: path, Digest: r.SHA256, GoVersion: r.Go, Constants: map[string]int64{}, Changes: []string{
		fmt.Sprintf("%s as it was published at %s, built by %s with its project's flags", filepath.Base(path), r.From, r.Go)}}
	if a.programs.From == plan.Published {
		b.Changes = append(b.Changes, a.programs.String())
	}
	source := arm.Source
	source.Unoptimized = nil // which was asked of today's compiler
	if err := a.readConstants(ctx, sourceOf(arm, source), references(constants), &b); err != nil {
		return b, err
	}
	a.events.Say(
		event.Note,
		fmt.Sprintf("arm %s: %s, sha256 %.12s", arm.Name, b.Changes[0], b.Digest),
	)
	return b, nil
}
