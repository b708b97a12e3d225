package cli

import (
	"errors"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/docker"
)

var version3 = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// candidateHelp is the part of run's help about --candidate.
const candidateHelp = `Your own build becomes the arm candidate, and that arm is judged:
  --candidate bin:PATH             an executable
  --candidate src:DIR              a source tree, built in place, dirty or not; src:DIR@VERSION if no tag tells its version
  --candidate patch:FILE@VERSION   a patch upon a published version of the subject's module
  --candidate git:URL@REF          a branch, tag or commit of a repository
  --candidate pr:NUMBER            a pull request of the subject's own repository; pr:NUMBER@URL of another one
  --candidate release:VERSION      the program as its project published it
  --candidate mod:PATH@VERSION     a published version of the subject's module, or of a fork that replaces it
  --candidate image:REF            the program in an image that the engine has or can pull, or in an archive of docker save
  --candidate nodeimage:REF        the kubelet of a node image
Without a form, a file is an executable, a folder is a source tree, and v1.34.7 is that version of the subject's
module. Run refuses a candidate that can't work before it builds anything; see docs/candidates.md.`

// candidateSource returns the source that the user gave as --candidate for a scenario.
func candidateSource(cmd *cobra.Command, given, name string) (*scenario.Source, error) {
	s, err := loadScenario(cmd, name)
	if err != nil {
		return nil, err
	}
	src, err := candidate.Read(cmd.Context(), s, given, "", docker.OnDemand{})
	if errors.As(err, new(*cache.FullError)) {
		return nil, failed(err)
	}
	return src, asRefusal(err)
}

// placed returns err with the places of mistakes in the scenario's file, if the plan is of that file as it is now.
func placed(p *plan.Plan, err error) error {
	if err == nil {
		return nil
	}
	s, failed := scenario.Load(filepath.FromSlash(p.Source))
	if failed != nil || s.Origin.Digest != p.Digest {
		return err
	}
	var same *artifacts.PairError
	if errors.As(err, &same) {
		return usage(s.Locate(scenario.InField(same, "pairs", same.Pair)), same.Hint())
	}
	return s.Locate(err)
}

// asRefusal turns a refusal of a candidate, a pair or a fault into a usage error. Other errors stay unchanged.
func asRefusal(err error) error {
	var refused *candidate.Error
	var pair *artifacts.PairError
	var lacks *harness.CapabilityError
	var missing *release.Error
	switch {
	case errors.As(err, &refused):
		return usage(err, refused.Hint)
	case errors.As(err, &pair):
		return usage(err, pair.Hint())
	case errors.As(err, &missing):
		return usage(err, missing.Hint())
	case errors.As(err, &lacks):
		return usage(err, "relapse plan shows what is asked for; --without leaves a fault out")
	}
	return err
}
