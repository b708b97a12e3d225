package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/plan"
)

// A plan that was edited says how its checks differ from its scenario's.
func TestNoteOtherChecks(t *testing.T) {
	s := load(t)
	for _, c := range []struct {
		name string
		edit func(*plan.Trial) (want []string)
	}{
		{"nothing was edited", func(*plan.Trial) []string { return nil }},
		{"a check is cut out", func(t *plan.Trial) []string {
			name := t.Healed[0].Name
			t.Healed = t.Healed[1:]
			return []string{"healed lacks the scenario's check " + name}
		}},
		{"a check asks later", func(t *plan.Trial) []string {
			t.Signature = slices.Clone(t.Signature)
			t.Signature[0].After = &metav1.Duration{Duration: time.Second}
			return []string{"the check " + t.Signature[0].Name + " in signature is not as the scenario has it"}
		}},
		{"a check is moved", func(t *plan.Trial) []string {
			c := t.Exposure[0]
			t.Exposure, t.Steady = t.Exposure[1:], append(slices.Clone(t.Steady), c)
			return []string{"the check " + c.Name + " in steady is none of the scenario's", "exposure lacks the scenario's check " + c.Name}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(s, plan.Options{Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			want := c.edit(&p.Trials[0])
			for range 2 { // said once, however often it is asked
				if err := p.NoteOtherChecks(s); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.Trials[0].Deviates; !slices.Equal(got, want) {
				t.Errorf("it says %q, want %q", strings.Join(got, "; "), strings.Join(want, "; "))
			}
		})
	}
}
