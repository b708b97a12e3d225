package plan_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Without the vulnerable arm nothing shows that a trial brings the incident back, so nothing can be said of a
// candidate. Without the candidate itself another arm would be judged.
func TestACandidateNeedsTheVulnerableArm(t *testing.T) {
	s := load(t)
	with := func(arms ...string) plan.Options {
		return plan.Options{Arms: arms, Candidates: []plan.Candidate{{Source: &scenario.Source{Version: "v1.34.8"}}}}
	}
	for _, c := range []struct {
		arms []string
		want string
	}{
		{[]string{"fixed", "candidate"}, "the only arms are fixed, candidate: add the vulnerable arm to --arms, or leave --arms out to run them all"},
		{[]string{"fixed", "vulnerable"}, "selecting arms: fixed, vulnerable leaves out the candidate, and another arm would be judged in place of it: want candidate among them, or no selection"},
		{[]string{"candidate"}, "the only arms are candidate: add the vulnerable arm to --arms, or leave --arms out to run them all"},
	} {
		if _, err := plan.New(s, with(c.arms...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.arms, err, c.want)
		}
	}
	for _, arms := range [][]string{nil, {"vulnerable", "candidate"}} {
		if _, err := plan.New(s, with(arms...)); err != nil {
			t.Errorf("%v: %v", arms, err)
		}
	}
	p, err := plan.New(s, with())
	if err != nil {
		t.Fatal(err)
	}
	trial := &p.Trials[0]
	trial.Arms[0].Expected = "Broken"
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `arm "`+trial.Arms[0].Name+`", which is `+trial.Arms[0].Role+`, expects "Broken": want `) {
		t.Errorf("a plan that expects another outcome: %v", err)
	}
}

// A plan names a candidate's patch or commit with its hash, and knows whether the candidate says its version.
func TestAPlanNamesWhatACandidateIsMadeOf(t *testing.T) {
	for _, c := range []struct {
		source        scenario.Source
		want, version string
	}{
		{scenario.Source{Version: "v1.34.4", Dir: "/cache/patched/tree", Patch: "/home/me/fix.patch", PatchSum: "0123456789abcdef"},
			"k8s.io/kubernetes/cmd/kubelet of k8s.io/kubernetes@v1.34.4 with the patch fix.patch (SHA-256 0123456789ab)", "v1.34.4"},
		{scenario.Source{Version: "v1.34.4", Dir: "/cache/commit", Commit: "0123456789abcdef", Ref: "my-backport"},
			"k8s.io/kubernetes/cmd/kubelet from commit 0123456789ab (my-backport)", "v1.34.4"},
		{scenario.Source{Dir: "/home/me/kubernetes"}, "k8s.io/kubernetes/cmd/kubelet from /home/me/kubernetes", ""},
	} {
		c.source.Module = "k8s.io/kubernetes"
		p, err := plan.New(load(t), plan.Options{Candidates: []plan.Candidate{{Source: &c.source}}})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := p.Text(&text); err != nil || !strings.Contains(text.String(), c.want) {
			t.Errorf("the plan doesn't say %q: %v\n%s", c.want, err, text.String())
		}
		for _, a := range p.Trials[0].Arms {
			if got := p.Trials[0].VersionOf(a); a.Name == scenario.Candidate && got != c.version {
				t.Errorf("the candidate %s is of the version %q, want %q", c.want, got, c.version)
			}
		}
	}
}
