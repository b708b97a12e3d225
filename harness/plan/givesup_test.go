package plan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/plan"
)

// A plan says when exposure is given up: at the deadline only where a fault holds until then.
func TestAPlanSaysWhenExposureIsGivenUp(t *testing.T) {
	const line = "    exposure that isn't met is given up "
	for _, c := range []struct {
		name   string
		o      plan.Options
		change func(*plan.Trial)
		want   string // "" is nothing
	}{
		{"both hold", plan.Options{}, func(*plan.Trial) {}, line + "at the deadline: a fault without a duration holds until then (slow, flood)\n"},
		{"none holds", plan.Options{}, func(tr *plan.Trial) {
			for i := range tr.Faults {
				tr.Faults[i].Duration = &metav1.Duration{Duration: time.Minute}
			}
		}, line + "15s after an arm's last load and fault are over\n"},
		{"one holds in one arm", plan.Options{}, func(tr *plan.Trial) {
			tr.Faults[0].Duration, tr.Faults[1].Target.Arm = &metav1.Duration{Duration: time.Minute}, "fixed"
		}, line + "15s after an arm's last load and fault are over, or at the deadline: a fault without a duration holds until then (flood in arm fixed)\n"},
		{"nothing is injected", plan.Options{NoFaults: true}, func(*plan.Trial) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(load(t), c.o)
			if err != nil {
				t.Fatal(err)
			}
			c.change(&p.Trials[0])
			var b strings.Builder
			if err := p.Text(&b); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); !strings.Contains(got, c.want) || strings.Contains(got, line) != (c.want != "") {
				t.Errorf("it says %s\nwant %q", got, c.want)
			}
		})
	}
}
