package plan

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Programs says by which way the arms' programs come, all of them if they can.
type Programs struct {
	From string `json:"from"` // Published or Built
	Why  string `json:"why"`  // for people, in one sentence
}

// The ways by which programs come.
const (
	Published = "published" // as the subject's project published them; only what it didn't is built
	Built     = "built"     // from their sources, on this host
)

// String returns the decision as a sentence, without a period.
func (p Programs) String() string {
	if p.From == Published {
		return "programs are taken as published: " + p.Why
	}
	return "programs are built here: " + p.Why
}

// programs says by which way the plan's programs come, or may come.
func (p *Plan) programs() string {
	why := p.MustBuild()
	switch {
	case p.Programs != nil:
		return p.Programs.String()
	case why != "":
		return Programs{Built, why}.String()
	}
	return "programs are taken as published if all of them can be had, or else built here"
}

// MustBuild says why the programs of the plan's arms have to be built here, or "" if all of them may be published. It
// asks nobody. An executable that the user gives is neither.
func (p *Plan) MustBuild() string {
	for _, t := range p.Trials {
		for _, a := range t.Arms {
			if a.Source.Given() {
				continue
			}
			if why := Unpublished(t.Subject, a.Source); why != "" {
				return "arm " + a.Name + " " + why
			}
		}
	}
	return ""
}

// SomePublished reports whether the program of at least one arm may be published. It asks nobody.
func (p *Plan) SomePublished() bool {
	return slices.ContainsFunc(p.Trials, func(t Trial) bool {
		return slices.ContainsFunc(
			t.Arms,
			func(a Arm) bool { return Unpublished(t.Subject, a.Source) == "" },
		)
	})
}

// SupposePublished returns a copy of the plan with the programs decided as if each that may be published could be had so.
// It asks nobody.
func (p *Plan) SupposePublished() *Plan {
	out := *p
	if why := p.MustBuild(); out.Programs == nil && why != "" {
		out.Programs = &Programs{Built, why}
	} else if out.Programs == nil {
		out.Programs = &Programs{Published, "all of them may be had"}
	}
	out.Trials = slices.Clone(p.Trials)
	for i := range out.Trials {
		t := &out.Trials[i]
		t.Arms = slices.Clone(t.Arms)
		for j := range t.Arms {
			if s := &t.Arms[j].Source; out.Programs.From == Published && s.Release == nil && Unpublished(t.Subject, *s) == "" {
				s.Release = &scenario.Release{}
			}
		}
	}
	return &out
}

// Unpublished says of a source what its project doesn't publish, or "" if it may have published the program.
func Unpublished(subject string, s scenario.Source) string {
	row, _ := component.Of(subject)
	switch {
	case s.Given():
		return "is an executable"
	case s.Fixture != "":
		return "is a fixture"
	case s.Patch != "":
		return "has a patch"
	case !s.Published():
		return "is a source of its own"
	case len(s.Mutations) > 0:
		return "has a mutation"
	case len(s.Replace) > 0:
		return "has other modules than its version requires"
	case s.Race:
		return "has the race detector"
	case len(s.Before) > 0:
		return "runs several builds"
	case row.Image(s.Version) == "" && row.File(s.Version, "") == "":
		return fmt.Sprintf("is a %s, which is published as no program of its own", subject)
	case !row.Builds(s.Package):
		return "is built from " + s.Package
	}
	return ""
}

// NoteMixed notes in each trial if some of its arms run published programs and others don't: then they differ in more than
// the fix.
func (p *Plan) NoteMixed() {
	for i := range p.Trials {
		t := &p.Trials[i]
		var published, built *Arm
		for j := range t.Arms {
			switch a := &t.Arms[j]; {
			case a.Source.Release != nil:
				published = a
			case !a.Source.Given():
				built = a
			}
		}
		if published != nil && built != nil {
			t.Deviates.add(CodeOption, fmt.Sprintf("arm %s runs the program that was published (by %s, with its project's flags) and arm "+
				"%s one that was built here: they differ in compiler and flags, too", published.Name, published.Source.Release.Go, built.Name))
		}
	}
}
