package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// BuiltIn is the prefix of the names of checks that relapse adds to every scenario.
const BuiltIn = scenario.BuiltInList + "/"

// common lists the parts of the common health, which every arm must show in addition to the scenario's own checks: an
// incident that only moved leaves goroutines, memory or a busy loop elsewhere. If no collector of the scenario records
// what a part reads, the part adds a collector.
var common = []struct {
	part, kind, collector string
	reads                 bundle.Kind
	every                 time.Duration
	await                 string // what a run says that it waits for
}{
	{scenario.HealthStuck, "goroutinesBack", "goroutines", bundle.Goroutines2, 10 * time.Second, "as few stuck goroutines as before the fault"},
	{scenario.HealthHeap, "heapBack", "heap", bundle.Heap, 10 * time.Second, "as little memory as before the fault"},
	// The identity is recorded in every trial.
	{scenario.HealthCPU, "cpuBack", "", bundle.Identity, 0, "as little use of the CPU as before the fault"},
}

// addHealth adds the parts of the common health to the trial's healed checks, except those that the scenario leaves
// out.
func (t *Trial) addHealth(s *scenario.Scenario) error {
	for _, c := range common {
		if slices.ContainsFunc(s.Spec.Health.Without, func(w scenario.Omission) bool { return w.Part == c.part }) {
			continue
		}
		spec, err := kinds.Make[check.Check](kinds.Check, c.kind)
		if err != nil {
			return fmt.Errorf("the common health: %w", err)
		}
		t.Healed = append(t.Healed, Check{
			Spec: spec,
			CheckHeader: scenario.CheckHeader{
				Name:  BuiltIn + c.part,
				Await: c.await,
				Kind:  c.kind,
				Phase: check.Recovery,
				After: orZero(nil),
			},
		})
		if c.collector == "" {
			continue
		}
		if i := slices.IndexFunc(t.Collectors, func(have Collector) bool {
			return have.Component == "" && slices.Contains(have.Spec.Makes(), c.reads)
		}); i >= 0 {
			if t.Collectors[i].Every.Duration == 0 { // a look at phase marks only can't show whether a change lasts
				t.Collectors[i].Every, t.Collectors[i].During = &metav1.Duration{
					Duration: c.every,
				}, check.Recovery
			}
			continue
		}
		collector, err := kinds.Make[capture.Collector](kinds.Collector, c.collector)
		if err != nil {
			return fmt.Errorf("the common health: %w", err)
		}
		t.Collectors = append(
			t.Collectors,
			Collector{
				During: check.Recovery,
				Spec:   collector,
				CollectorHeader: scenario.CollectorHeader{
					Name:  BuiltIn + c.part,
					Kind:  c.collector,
					Every: &metav1.Duration{Duration: c.every},
				},
			},
		)
	}
	return nil
}
