package trial_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A subject that a fault upgrades is judged as the build that it is upgraded to, and each stretch is asked for its own
// binary. One that became that build of itself is not judged by it.
func TestASubjectThatIsUpgraded(t *testing.T) {
	for _, c := range []struct {
		name, candidate, want string
		verdict               verdict.Verdict
	}{
		{"well", "", "Reproduced NotReproduced NotReproduced", verdict.Validated},
		{"ill", leaks, "Reproduced NotReproduced Reproduced", verdict.StillVulnerable},
		{"crashes", crashes, "Reproduced NotReproduced Broken", verdict.VerdictBroken},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			s := killsFirst(t, "replace")
			for i := range s.Spec.Pairs {
				for j := range s.Spec.Pairs[i].Arms {
					src := &s.Spec.Pairs[i].Arms[j].Source
					src.Before = []scenario.Earlier{{Module: src.Module, Package: src.Package, Version: src.Version}}
				}
			}
			r := newRunOf(t, s, map[string]string{"before": "", "vulnerable": leaks, "fixed": "", scenario.Candidate: c.candidate}, plan.Options{})
			for _, arm := range []string{"vulnerable", "fixed", scenario.Candidate} {
				b := r.builds[arm]
				b.Before = []environment.Build{r.builds["before"]}
				r.builds[arm] = b
			}
			if err := r.trial(t.Context(), t, 0); err != nil {
				t.Fatal(err)
			}
			v := r.judge(t, 0)
			if got := r.outcomes("vulnerable", "fixed", scenario.Candidate); got != c.want || v.Verdict != c.verdict {
				t.Errorf("it is %s: %s", v.Verdict, got)
			}
			sealed, err := bundle.Open(r.dir.Trial("001"))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range sealed.World().Arms {
				if want := []string{r.builds["before"].Digest, r.builds[w.Arm].Digest}; !slices.Equal(w.Digests(), want) {
					t.Errorf("the bundle lists %q of %s, want %q", w.Digests(), w.Arm, want)
				}
			}
			for _, a := range v.Arms {
				i := slices.IndexFunc(a.Identity, func(f check.Finding) bool { return f.Name == verdict.CheckBinary })
				want := fmt.Sprintf(", then %.12s in ", r.builds[a.Name].Digest)
				if f := a.Identity[i]; f.Met != check.True || !strings.HasPrefix(f.Seen, fmt.Sprintf("SHA-256 %.12s in ", r.builds["before"].Digest)) ||
					!strings.Contains(f.Seen, want) {
					t.Errorf("of %s it is said: %s %s", a.Name, f.Met, f.Seen)
				}
			}
		})
	}
}
