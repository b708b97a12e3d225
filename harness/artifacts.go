package harness

import (
	"context"
	"maps"
	"os"
	"runtime"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/harness/version"
)

// Artifacts are what the trials of a plan take: the programs of its arms, its fixtures, and what its clusters are made
// of. This is all that a run knows of how they are made: package artifacts builds them, gets them as they were published,
// or has them carried from another machine.
type Artifacts interface {
	// Prepare makes them all, while the provider gets what its clusters are made of. It returns the versions that
	// verdicts name.
	Prepare(
		ctx context.Context,
		p *plan.Plan,
		on cluster.Provider,
	) (versions map[string]string, err error)
	// MixedParts says what weakens a trial because programs of its clusters came by another way than the rest.
	MixedParts(t plan.Trial) []string
	environment.Artifacts
}

// Maker makes Artifacts on this machine.
type Maker interface {
	Artifacts
	// Decide writes into a plan which programs are taken as published, and gets these. It comes before Prepare.
	Decide(ctx context.Context, p *plan.Plan) error
}

// versions returns the versions that the verdicts of a plan's trials name: those of this program and this machine, of
// Kubernetes, and of what provided is of.
func versions(p *plan.Plan, provided map[string]string) map[string]string {
	v := map[string]string{
		"relapse":    version.Relapse(),
		"go":         runtime.Version(),
		"platform":   runtime.GOOS + "/" + runtime.GOARCH,
		"kubernetes": strings.Join(p.Versions(), ", "),
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		v["kernel"] = string(kernel[:max(0, len(kernel)-1)])
	}
	maps.Copy(v, provided)
	return v
}
