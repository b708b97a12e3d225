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

// Whoever reads how a scenario runs and is judged need not read how Kubernetes is built: harness.Artifacts is the one
// door to that. Behind it are all packages that make programs, but for those that know a full disk and pack a program
// into an image.
func TestTheEngineBuildsNothing(t *testing.T) {
	all := listPackages(t)
	engine, commands := linkedBy(all, "harness"), linkedBy(all, "harness/cli")
	behind := 0
	for name := range all {
		if !oneBelow(name, []string{"harness/artifacts", "harness/build", "harness/plan/candidate"}) ||
			name == "harness/build/cache" || name == "harness/build/image" {
			continue
		}
		behind++
		if engine[name] {
			t.Errorf("harness links %s, and a run needs to know nothing of how programs are made", name)
		}
		if !commands[name] {
			t.Errorf("the command line doesn't link %s", name)
		}
	}
	if behind < 5 {
		t.Errorf("only %d packages make programs", behind)
	}
	if !engine["harness/trial/environment"] {
		t.Error("harness doesn't link harness/trial/environment: the search finds nothing")
	}
}

// linkedBy returns all packages that a package imports, and those that they import.
func linkedBy(all map[string]listed, name string) map[string]bool {
	found := map[string]bool{}
	var walk func(string)
	walk = func(name string) {
		for _, imported := range all[name].Imports {
			if imported := short(imported); !found[imported] {
				found[imported] = true
				walk(imported)
			}
		}
	}
	walk(name)
	return found
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
