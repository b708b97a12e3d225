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

// A patch upon exactly what the vulnerable arm is has its control in that arm. With anything else in the build, the
// candidate may have no need of the patch, and then nothing was shown of the patch.
func TestAPatchUponTheVulnerableArmHasItsControl(t *testing.T) {
	vulnerable := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.34.4", Package: "k8s.io/kubernetes/cmd/kubelet"}
	fixed := vulnerable
	fixed.Version = "v1.34.8"
	patched := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.34.4", Dir: "/cache/patched/tree", Patch: "/home/me/fix.patch", PatchSum: "99"}
	doubt := func(version string) string {
		return "what " + version + " does without the patch was not tried: it may have no need of it (--candidate " + version + " tries it)"
	}
	for _, c := range []struct {
		name   string
		change func(vulnerable, fixed, candidate *scenario.Source)
		want   string
	}{
		{"upon the vulnerable arm's version", func(_, _, _ *scenario.Source) {}, ""},
		{"with an empty list in place of none", func(v, _, _ *scenario.Source) { v.Mutations = []scenario.Mutation{} }, ""},
		{"upon another version", func(_, _, c *scenario.Source) { c.Version = "v1.34.5" }, doubt("v1.34.5")},
		{"upon the fixed arm's version", func(_, _, c *scenario.Source) { c.Version = "v1.34.8" }, doubt("v1.34.8")},
		{"with the fixed arm's module in place of the vulnerable one's", func(v, f, _ *scenario.Source) {
			v.Version, f.Version = "v1.34.4", "v1.34.4"
			f.Replace = map[string]string{"go.etcd.io/bbolt": "v1.3.6"}
		}, doubt("v1.34.4")},
		{"with the vulnerable arm's module left out", func(v, _, _ *scenario.Source) {
			v.Replace = map[string]string{"go.etcd.io/bbolt": "v1.3.5"}
		}, doubt("v1.34.4")},
		{"of a fix that a mutation took out", func(v, _, _ *scenario.Source) {
			v.Mutations = []scenario.Mutation{{Kind: "testCut", Sites: 1, Spec: []byte(`{"ident":"Relist"}`)}}
		}, doubt("v1.34.4")},
		{"compiled in another way", func(v, _, _ *scenario.Source) { v.Unoptimized = []string{"k8s.io/kubernetes/pkg/kubelet"} }, doubt("v1.34.4")},
		{"with the race detector", func(_, f, _ *scenario.Source) { f.Race = true }, doubt("v1.34.4")},
	} {
		s := load(t)
		v, f, mine := vulnerable, fixed, patched
		c.change(&v, &f, &mine)
		s.Spec.Pairs[0].Arms = []scenario.Arm{{Name: "vulnerable", Role: scenario.Vulnerable, Source: v}, {Name: "fixed", Role: scenario.Fixed, Source: f}}
		p, err := plan.New(s, plan.Options{Candidates: []plan.Candidate{{Source: &mine}}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(p.Trials[0].Deviates.Texts(), "; "); got != c.want {
			t.Errorf("%s: the trial deviates by %q, want %q", c.name, got, c.want)
		}
	}
}

// Another arm's build in the place of the vulnerable arm's is no control of the patch.
func TestAPatchHasNoControlWhereBuildsAreSwapped(t *testing.T) {
	s := load(t)
	source := scenario.Source{Module: "k8s.io/kubernetes", Version: "v1.34.4", Package: "k8s.io/kubernetes/cmd/kubelet"}
	fixed := source
	fixed.Version = "v1.34.8"
	s.Spec.Pairs[0].Arms = []scenario.Arm{{Name: "vulnerable", Role: scenario.Vulnerable, Source: source}, {Name: "fixed", Role: scenario.Fixed, Source: fixed}}
	p, err := plan.New(s, plan.Options{Swap: map[string]string{"vulnerable": "fixed"}, Candidates: []plan.Candidate{{Source: &scenario.Source{
		Module: "k8s.io/kubernetes", Version: "v1.34.4", Dir: "/cache/patched/tree", Patch: "/home/me/fix.patch"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Trials[0].Deviates.Texts(), "; "); !strings.Contains(got, "what v1.34.4 does without the patch was not tried") {
		t.Errorf("the trial deviates by %q", got)
	}
}
