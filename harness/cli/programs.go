package cli

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/pflag"

	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/plan"
)

// programFlags say by which way the arms' programs come. Commands without them build all.
type programFlags struct {
	build, release bool
	mirror         string

	publisher *release.Publisher // set by open, which apply calls
}

func (f *programFlags) register(fl *pflag.FlagSet) {
	fl.BoolVar(&f.build, "build", false, "build all arms from source (default: only if one of them can't be had as published)")
	fl.BoolVar(&f.release, "release", false, "take published programs for all arms that have one, also beside arms that are built here; "+
		"the verdict then lists that arms differ in their compilers and flags")
	fl.StringVar(&f.mirror, "mirror", "", "the URL of a mirror of registry.k8s.io and dl.k8s.io, asked in place of both (default: $"+release.MirrorEnv+")")
}

// apply writes into a plan what the flags decide, and makes the publisher that a run asks for the rest.
func (f *programFlags) apply(p *plan.Plan) error {
	var decided *plan.Programs
	switch {
	case f.build && f.release:
		return usage(errors.New("--build has all programs built, and --release takes those that are published"), "leave out one of them")
	case f.build:
		decided = &plan.Programs{From: plan.Built, Why: "--build asks for it"}
	case f.release:
		decided = &plan.Programs{From: plan.Published, Why: "--release asks for it"}
	}
	if decided != nil && p.Programs != nil && p.Programs.From != decided.From {
		return usage(
			errors.New("the plan says that "+p.Programs.String()),
			"leave out --build and --release, or plan anew",
		)
	}
	p.Programs = cmp.Or(decided, p.Programs)
	return f.open()
}

// applyToOne does what apply does for one of many plans, where --release can't be for each: one without any published
// program is built, and not refused.
func (f *programFlags) applyToOne(p *plan.Plan) error {
	if err := f.apply(p); err != nil || !f.release || p.SomePublished() {
		return err
	}
	p.Programs = &plan.Programs{
		From: plan.Built,
		Why: "--release asks for published ones, and there are none: " + cmp.Or(
			p.MustBuild(),
			"all are executables that are given",
		),
	}
	return nil
}

// open makes the publisher.
func (f *programFlags) open() (err error) {
	f.publisher, err = release.New(release.Options{Mirror: f.from()})
	return usage(err, "--mirror https://HOST/PATH")
}

// from returns the mirror that published programs come from, "" for their project's own hosts.
func (f *programFlags) from() string { return cmp.Or(f.mirror, os.Getenv(release.MirrorEnv)) }
