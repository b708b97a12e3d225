package cli

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/plan"
)

// The command that an archive is for decides itself what the exporting host's network decided.
func TestTheCommandOfAnArchive(t *testing.T) {
	t.Setenv("RELAPSE_MIRROR", "https://mirror.example.org")
	auto := plan.Options{NodeImage: "auto"}
	for _, c := range []struct {
		flags runFlags
		plan  plan.Plan
		want  string
	}{
		{runFlags{planFlags: planFlags{options: auto}}, plan.Plan{}, "relapse run x --provider kind"},
		{runFlags{planFlags: planFlags{options: plan.Options{Pair: "all", NodeImage: "assembled"}}},
			plan.Plan{Programs: &plan.Programs{From: plan.Built}}, "relapse run x --pair all --provider kind --node-image assembled --build"},
		{runFlags{planFlags: planFlags{options: auto}}, plan.Plan{Provider: providers.Processes, Programs: &plan.Programs{From: plan.Published}},
			"relapse run x --provider processes --mirror https://mirror.example.org"},
		{runFlags{planFlags: planFlags{options: auto}, programs: programFlags{release: true, mirror: "http://own"}}, plan.Plan{Programs: &plan.Programs{From: plan.Published}},
			"relapse run x --provider kind --release --mirror http://own"},
	} {
		if got := c.flags.command("x", &c.plan); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
