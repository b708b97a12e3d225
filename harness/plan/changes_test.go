package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A plan that was edited says how its arms and checks differ from its scenario's.
func TestNoteChanges(t *testing.T) {
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
		{"an arm is of another version", func(t *plan.Trial) []string {
			t.Arms[1].Source.Version = "v1.34.1"
			return []string{"the arm " + t.Arms[1].Name + " is not built as the scenario has it"}
		}},
		{"an arm has another name", func(t *plan.Trial) []string {
			t.Arms[0].Name = "mine"
			return []string{"the arm mine is none of the scenario's"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(s, plan.Options{Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := plan.Encode(p)
			if err != nil {
				t.Fatal(err)
			}
			if p, err = plan.Decode(raw); err != nil { // as run -f reads it
				t.Fatal(err)
			}
			want := c.edit(&p.Trials[0])
			for range 2 { // said once, however often it is asked
				if err := p.NoteChanges(s); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.Trials[0].Deviates; !slices.Equal(got, want) {
				t.Errorf("it says %q, want %q", strings.Join(got, "; "), strings.Join(want, "; "))
			}
		})
	}
}

// A trial is apart from its scenario's if it was weakened or changed. Declared parameters and a candidate don't make it so.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		name    string
		options plan.Options
		want    []string
	}{
		{"as it is", plan.Options{}, nil},
		{"one arm", plan.Options{Arms: []string{"fixed"}}, nil},
		{"the null control", plan.Options{NoFaults: true}, []string{"no fault is injected: this is the null control"}},
		{"swapped", plan.Options{Swap: map[string]string{"vulnerable": "fixed"}}, []string{"arm vulnerable runs the build of arm fixed"}},
		{"a field is set", plan.Options{Params: map[string]string{"pairs.modern.arms.fixed.source.version": "v1.34.1"}},
			[]string{"pairs.modern.arms.fixed.source.version is set to v1.34.1"}},
		{"a candidate without a version", plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Binary: "/kubelet"}}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(load(t), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Apart(&p.Trials[0]); !slices.Equal(got, c.want) {
				t.Errorf("it is apart by %q, want %q", got, c.want)
			}
		})
	}
	p := &plan.Plan{Values: map[string]string{"pods": "7"}, Params: map[string]string{"pods": "7", "version": "v1.34.4"},
		Trials: []plan.Trial{{Deviates: []string{"pods is set to 7", "version is set to v1.34.4"}}}}
	if got := p.Apart(&p.Trials[0]); !slices.Equal(got, []string{"version is set to v1.34.4"}) {
		t.Errorf("with a declared parameter and a field: %q", got)
	}
}
