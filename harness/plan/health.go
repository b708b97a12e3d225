package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// BuiltIn begins the names of what is asked of every arm of every scenario.
const BuiltIn = scenario.BuiltInList + "/"

// common is the health that every arm of every scenario must show beside the scenario's own: an incident that only moved leaves
// goroutines, memory or a loop elsewhere. Where the scenario has no collector of what a part reads, the part brings one.
var common = []struct {
	part, kind, collector string
	reads                 bundle.Kind
	every                 time.Duration
}{
	{scenario.HealthStuck, "goroutinesBack", "goroutines", bundle.Goroutines2, 10 * time.Second},
	{scenario.HealthHeap, "heapBack", "heap", bundle.Heap, 10 * time.Second},
	{scenario.HealthCPU, "cpuBack", "", bundle.Identity, 0}, // in every trial
}

// addHealth adds the common health to what the scenario itself asks, but for the parts that it leaves out.
func (t *Trial) addHealth(s *scenario.Scenario) error {
	for _, c := range common {
		if slices.ContainsFunc(s.Spec.Health.Without, func(w scenario.Omission) bool { return w.Part == c.part }) {
			continue
		}
		spec, err := kinds.Make[check.Check](kinds.Check, c.kind)
		if err != nil {
			return fmt.Errorf("the common health: %w", err)
		}
		t.Healed = append(t.Healed, Check{Name: BuiltIn + c.part, Kind: c.kind, Phase: check.Recovery, Spec: spec})
		if c.collector == "" {
			continue
		}
		if i := slices.IndexFunc(t.Collectors, func(have Collector) bool {
			return have.Component == "" && slices.Contains(have.Spec.Makes(), c.reads)
		}); i >= 0 {
			if t.Collectors[i].Every == 0 { // one that only looks when a phase begins shows nothing that stays
				t.Collectors[i].Every, t.Collectors[i].During = Duration(c.every), check.Recovery
			}
			continue
		}
		collector, err := kinds.Make[capture.Collector](kinds.Collector, c.collector)
		if err != nil {
			return fmt.Errorf("the common health: %w", err)
		}
		t.Collectors = append(t.Collectors, Collector{Name: BuiltIn + c.part, Kind: c.collector, Every: Duration(c.every),
			During: check.Recovery, Spec: collector})
	}
	return nil
}
