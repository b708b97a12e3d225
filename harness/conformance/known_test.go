package conformance_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A scenario's checks are only as good as the candidates that test them. So each scenario has many candidates, some
// for every answer, and all can be planned in one trial.
func TestEveryScenarioHasCandidatesOfEveryAnswer(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios %v, error %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			s, err := scenario.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.Candidates()
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				t.Skip("it has no candidates yet")
			}
			o := plan.Options{Oracle: true}
			if s.Spec.Oracle != nil {
				o.Pair = s.Spec.Oracle.Pair
			}
			if o.Pair == "" {
				i := slices.IndexFunc(s.Spec.Pairs, func(p scenario.Pair) bool { return p.Default })
				o.Pair = s.Spec.Pairs[max(i, 0)].Name
			}
			answers := map[string]int{}
			for _, k := range all {
				if len(k.Spec.Because) == 0 {
					t.Errorf("%s: nothing says which checks its outcome has to come from", k.File)
				}
				if k.For(o.Pair) {
					o.Candidates = append(o.Candidates, plan.Candidate{Known: &k})
					answers[k.Spec.Right]++
				}
				if strings.HasSuffix(strings.TrimSpace(k.Spec.Doc), ".") || len(k.Spec.Why) < 20 {
					t.Errorf("%s: want a doc without a full stop, and a reason: %q, %q", k.File, k.Spec.Doc, k.Spec.Why)
				}
			}
			if len(o.Candidates) < 4 || answers["NotReproduced"] < 1 || answers["Reproduced"] < 1 || answers["Broken"] < 1 {
				t.Errorf("%d candidates for pair %s, by answer %v; want at least 4, of which 1 cure, 1 with the incident and 1 with another illness",
					len(o.Candidates), o.Pair, answers)
			}
			p, err := plan.New(s, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(p.Trials[0].Arms); n != len(o.Candidates)+2 {
				t.Errorf("%d arms, want one for each candidate and two controls", n)
			}
		})
	}
}
