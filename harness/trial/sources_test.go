package trial_test

import (
	"io"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// A bundle has how an arm's source differs from what it is compared with, and what of it was never committed.
func TestABundleShowsWhatAnArmIsMadeOf(t *testing.T) {
	inBubble(t, "two kinds of differences", func(t *testing.T) {
		r := newRun(t, pair, plan.Options{})
		b := r.builds["fixed"]
		b.Diff, b.Local = []byte("+published\n"), []byte("+uncommitted\n")
		r.builds["fixed"] = b
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		sealed, err := bundle.Open(r.dir.Trial("001"))
		if err != nil {
			t.Fatal(err)
		}
		for kind, want := range map[bundle.Kind]string{bundle.SourceDiff: "+published\n", bundle.SourceLocal: "+uncommitted\n"} {
			found := sealed.Artifacts(bundle.Query{Kind: kind})
			if len(found) != 1 || found[0].Arm != "fixed" {
				t.Errorf("%s: there are %+v, want one of the arm fixed", kind, found)
				continue
			}
			in, err := sealed.Open(found[0])
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(in); err != nil || string(got) != want {
				t.Errorf("%s is %q, want %q: %v", kind, got, want, err)
			}
			in.Close()
		}
	})
}
