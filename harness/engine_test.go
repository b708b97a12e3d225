package harness_test

import (
	"slices"
	"strings"
	"testing"
)

// Whoever reads how a scenario runs and is judged needs to read no kind, and nothing that a kind speaks to.
func TestTheEngineLinksNoKinds(t *testing.T) {
	all := listPackages(t)
	for _, kind := range append(slices.Clone(kindPackages), "scenarios", "fixtures") {
		if way := wayTo(all, "harness", kind, nil); way != nil {
			t.Errorf("%s: whoever runs or judges links the kinds", strings.Join(way, " -> "))
		}
		if wayTo(all, "harness/cli", kind, nil) == nil {
			t.Errorf("the command line doesn't link %s", kind)
		}
	}
}

// Whoever reads how a scenario runs and is judged needs to read neither what verdicts look like nor how builds travel.
func TestTheEngineWritesNoReports(t *testing.T) {
	all := listPackages(t)
	for _, pkg := range []string{"harness/report", "harness/transfer"} {
		if way := wayTo(all, "harness", pkg, nil); way != nil {
			t.Errorf("%s: the engine links what only the command line uses", strings.Join(way, " -> "))
		}
		if wayTo(all, "harness/cli", pkg, nil) == nil {
			t.Errorf("the command line doesn't link %s", pkg)
		}
	}
	if wayTo(all, "harness", "harness/judge", nil) == nil {
		t.Error("the engine doesn't link harness/judge, so that nothing judges a run")
	}
}
