package judge

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Arms that are upgraded run the same only if all their builds are the same, and each build is bound to its run.
func TestArmsOfSeveralBuilds(t *testing.T) {
	v := Verdict{Digests: map[string]string{"a": "2", "a/1": "1", "b": "2", "b/1": "1", "c": "2", "c/1": "0", "d": "2", "e": ""}}
	for _, c := range []struct {
		one, other string
		same       bool
	}{{"a", "b", true}, {"a", "c", false}, {"a", "d", false}, {"d", "a", false}, {"e", "e", false}} {
		if got := v.SameProgram(c.one, c.other); got != c.same {
			t.Errorf("%s and %s run the same: %v, want %v", c.one, c.other, got, c.same)
		}
	}
	w := bundle.World{Arms: []bundle.ArmWorld{{Arm: "a", Digest: "2", Before: []bundle.EarlierBuild{{Digest: "1"}}}}}
	entry := indexed(Trial{World: w})
	if out := otherArms(entry, w); out != "" {
		t.Errorf("its own builds are told as others%s", out)
	}
	w.Arms[0].Before[0].Digest = "9"
	if out := otherArms(entry, w); !strings.Contains(out, "its arm a/1 is the binary 9, and was 1") {
		t.Errorf("another first build is told as%q", out)
	}
}
