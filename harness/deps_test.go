package harness_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// stages are the folders below harness/ in the order of a run's story: imports go down this list, never up. "." is Run
// itself. It knows artifacts as an interface only, so they stand above it. A provider gets by itself what its clusters
// are made of, so it stands above build, and nothing but the command line knows it. Folders of internal/ and the kinds of
// scenarios have a place in it, too.
var stages = []string{
	"cmd/relapse", "relapsetest", "cli", "cluster/kind", "cluster/processes", "campaign", "survey", "conformance", "e2eframework", "watch", "kubernetes", "transfer", "artifacts", ".", "match/matched", "match/measure", "report", "judge", "trial", "ledger", "verdict",
	"match", "plan", "internal/checktest", "scenarios", "check/expr", "check/probes", "check/metrics", "check/goroutines", "check/objects", "check/logs",
	"check/question", "check", "internal/host", "build", "inject", "evidence", "scenario", "internal/clustertest", "cluster", "kinds", "event", "version", "internal/docker", "internal/embedded", "internal/printing", "internal/disktest", "internal/schematest", "internal/sums",
}

// hostPackages are what only kind's clusters need: docker, and what a host lacks for them.
var hostPackages = []string{"internal/docker", "internal/host"}

// hostParts are behind the door that internal/host is.
var hostParts = []string{"internal/host/engine", "internal/host/nodeimage"}

// testPackages are made for tests alone.
var testPackages = []string{"harness/relapsetest", "internal/clustertest", "internal/checktest", "internal/disktest", "internal/schematest", "internal/docker/dockertest", "fixtures/control/controltest"}

// kindPackages are the shared packages with kinds. Those of mutations are in build/mutate, which applies them, too.
var kindPackages = []string{"harness/cluster/seams", "harness/evidence/collectors", "harness/inject/faults", "harness/inject/loads",
	"harness/check/expr", "harness/check/goroutines", "harness/check/logs", "harness/check/metrics", "harness/check/objects",
	"harness/check/probes"}

// unrelated are parts of one stage that know nothing of each other.
var unrelated = [][]string{
	{"inject/fault", "inject/load"},
	{"inject/faults", "inject/loads"},
	{"evidence/goroutine", "evidence/klog", "evidence/churn", "evidence/heap", "evidence/metrics", "evidence/archive"},
}

// stageOf is the place of a package in stages; -1 if it is in none.
func stageOf(pkg string) int {
	if pkg == "harness" {
		return slices.Index(stages, ".")
	}
	return slices.IndexFunc(stages, func(s string) bool { return s != "." && below(pkg, stageFolder(s)) })
}

// stageFolder is the folder of a stage, from the root.
func stageFolder(stage string) string {
	if stage == "scenarios" || below(stage, "internal") {
		return stage
	}
	return path.Join("harness", stage)
}

// clients are the libraries that talk to a cluster.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/e2e-framework", "sigs.k8s.io/controller-runtime", "sigs.k8s.io/kind"}

// providers are the packages that make clusters.
var providers = []string{"harness/cluster/kind", "harness/cluster/processes"}

// importRule is one rule about what packages of ours import. Packages are named without the module's path.
type importRule struct {
	name, reason string
	of           func(pkg string) bool           // the packages that it is about; a rule about none fails
	refuses      func(pkg, imported string) bool // imported is without the module's path if it is ours
	tests        bool                            // it holds for test files, too
}

var importRules = []importRule{
	{
		name:   "stages import downwards",
		reason: "whoever reads a stage must need nothing of what comes before it in a run",
		of:     func(pkg string) bool { return stageOf(pkg) >= 0 },
		refuses: func(pkg, imported string) bool {
			to := stageOf(imported)
			return to >= 0 && to < stageOf(pkg)
		},
	},
	{
		name:   "parts of a stage that know nothing of each other",
		reason: "each must be readable, testable and replaceable alone",
		of: func(pkg string) bool {
			return slices.ContainsFunc(unrelated, func(g []string) bool { return slices.Contains(g, strings.TrimPrefix(pkg, "harness/")) })
		},
		refuses: func(pkg, imported string) bool {
			return slices.ContainsFunc(unrelated, func(g []string) bool {
				return pkg != imported && slices.Contains(g, strings.TrimPrefix(pkg, "harness/")) && slices.Contains(g, strings.TrimPrefix(imported, "harness/"))
			})
		},
	},
	{
		name:    "only cluster/kind imports kind",
		reason:  "another provider must fit in beside it, and kind's habits must not spread",
		of:      func(pkg string) bool { return pkg != "harness/cluster/kind" },
		refuses: func(_, imported string) bool { return below(imported, "sigs.k8s.io/kind") }, tests: true,
	},
	{
		name:    "only cluster/processes imports envtest",
		reason:  "it is what clusters of processes are measured against, and nothing else starts control planes",
		of:      func(pkg string) bool { return pkg != "harness/cluster/processes" },
		refuses: func(_, imported string) bool { return below(imported, "sigs.k8s.io/controller-runtime/pkg/envtest") }, tests: true,
	},
	{
		name:   "only the command line imports a provider",
		reason: "everything else takes a cluster.Provider, whichever it is",
		of: func(pkg string) bool {
			return ours(pkg) && pkg != "harness/cli" && !below(pkg, "e2e")
		},
		refuses: func(pkg, imported string) bool {
			return slices.ContainsFunc(providers, func(p string) bool { return below(imported, p) && !below(pkg, p) })
		}, tests: true,
	},
	{
		name:   "only kind and the command line import docker and what brings a host there",
		reason: "a provider without them must need neither: what a provider needs of a host is its own to check and to get",
		of: func(pkg string) bool {
			return ours(pkg) && pkg != "harness/cluster/kind" && pkg != "harness/cli" && !oneBelow(pkg, hostPackages)
		},
		refuses: func(_, imported string) bool { return oneBelow(imported, hostPackages) }, tests: true,
	},
	{
		name:    "only internal/host imports its parts",
		reason:  "on a host with a registry and a healthy engine, nobody needs to read them",
		of:      func(pkg string) bool { return ours(pkg) && !below(pkg, "internal/host") },
		refuses: func(_, imported string) bool { return oneBelow(imported, hostParts) }, tests: true,
	},
	{
		name:    "only inject/faults imports Chaos Mesh's API",
		reason:  "its manifests are converted in one place; everything else knows our faults only",
		of:      func(pkg string) bool { return pkg != "harness/inject/faults" },
		refuses: func(_, imported string) bool { return below(imported, "github.com/chaos-mesh/chaos-mesh") }, tests: true,
	},
	{
		name:    "only e2e imports Ginkgo and Gomega",
		reason:  "unit tests are plain Go, and no library of ours may depend on a test framework",
		of:      func(pkg string) bool { return !below(pkg, "e2e") },
		refuses: func(_, imported string) bool { return below(imported, "github.com/onsi") }, tests: true,
	},
	{
		name:   "check, match, verdict and judge import no cluster client",
		reason: "a verdict is a function of the bundle alone: judging must need no cluster",
		of: func(pkg string) bool {
			return oneBelow(pkg, []string{"harness/check", "harness/judge"}) || pkg == "harness/match" || pkg == "harness/verdict"
		},
		refuses: func(_, imported string) bool { return oneBelow(imported, clients) },
	},
	{
		name:    "nothing imports k8s.io/kubernetes",
		reason:  "subjects are built in modules made at run time, from their own source, and never linked into the harness",
		of:      func(string) bool { return true },
		refuses: func(_, imported string) bool { return below(imported, "k8s.io/kubernetes") }, tests: true,
	},
	{
		name:    "only tests and what is made for them import testing",
		reason:  "a production program is not built on a test's machinery",
		of:      func(pkg string) bool { return !slices.Contains(testPackages, pkg) },
		refuses: func(_, imported string) bool { return below(imported, "testing") },
	},
	{
		name:    "only tests import what is made for them",
		reason:  "a fake has no place in a program that gives verdicts",
		of:      func(string) bool { return true },
		refuses: func(_, imported string) bool { return oneBelow(imported, testPackages) },
	},
	{
		name:   "only the list of kinds imports the kinds of a scenario",
		reason: "a kind that others need, too, is no scenario's own: it belongs to the harness",
		of:     func(pkg string) bool { return pkg != "scenarios" },
		refuses: func(pkg, imported string) bool {
			return below(imported, "scenarios") && imported != "scenarios"
		},
	},
	{
		name:   "the list of kinds is imported by whoever runs or judges",
		reason: "everything below them takes a kind by its name, whichever it is",
		of: func(pkg string) bool {
			return pkg != "harness" && pkg != "harness/cli" && !oneBelow(pkg, testPackages)
		},
		refuses: func(_, imported string) bool { return imported == "scenarios" },
	},
	{
		name:    "only the command line imports match",
		reason:  "reading somebody else's evidence asks the same checks, and nothing of a run depends on it",
		of:      func(pkg string) bool { return !below(pkg, "harness/match") && pkg != "harness/cli" },
		refuses: func(_, imported string) bool { return below(imported, "harness/match") },
	},
	{
		name:    "printing imports nothing of ours",
		reason:  "every stage may print, and must not get another stage with it",
		of:      func(pkg string) bool { return pkg == "internal/printing" },
		refuses: func(_, imported string) bool { return ours(imported) },
	},
	{
		name:   "fixtures import nothing of the harness",
		reason: "they run inside nodes, small and static, and speak to the harness over a wire",
		of:     func(pkg string) bool { return below(pkg, "fixtures") },
		refuses: func(_, imported string) bool {
			return below(imported, "harness") || below(imported, "internal") || below(imported, "e2e")
		}, tests: true,
	},
	{
		name:   "the harness imports of the fixtures their wire types only, and its tests what starts them",
		reason: "whatever else the two share would make one's bug the other's",
		of:     func(pkg string) bool { return oneBelow(pkg, []string{"harness", "internal", "scenarios"}) },
		refuses: func(_, imported string) bool {
			return below(imported, "fixtures") && imported != "fixtures/control" && imported != "fixtures/control/controltest"
		}, tests: true,
	},
}

func TestImportRules(t *testing.T) {
	all := listPackages(t)
	for _, r := range importRules {
		t.Run(r.name, func(t *testing.T) {
			about := 0
			for name, p := range all {
				if !p.ours || !r.of(name) {
					continue
				}
				about++
				imports := p.Imports
				if r.tests {
					imports = slices.Concat(imports, p.TestImports, p.XTestImports)
				}
				for _, imported := range imports {
					if imported = short(imported); r.refuses(name, imported) {
						t.Errorf("%s imports %s: %s, because %s", name, imported, r.name, r.reason)
					}
				}
			}
			if about == 0 {
				t.Error("the rule is about no package, so that it says nothing")
			}
		})
	}
}

// What a rule allows to one package must be there, or its prefix may be misspelt.
func TestImportRulesNameWhatExists(t *testing.T) {
	all := listPackages(t)
	if !slices.ContainsFunc(all["harness/cluster/kind"].Imports, func(i string) bool { return below(i, "sigs.k8s.io/kind") }) {
		t.Error("harness/cluster/kind doesn't import kind")
	}
	for importer, wanted := range map[string][]string{"harness/cluster/kind": hostPackages, "internal/host": hostParts} {
		for _, pkg := range wanted {
			if !slices.Contains(all[importer].Imports, module+pkg) {
				t.Errorf("%s doesn't import %s", importer, pkg)
			}
		}
	}
	for _, pkg := range testPackages {
		if !slices.Contains(all[pkg].Imports, "testing") {
			t.Errorf("%s doesn't import testing", pkg)
		}
	}
	for _, stage := range stages {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(p string) bool { return below(p, stageFolder(stage)) }) {
			t.Errorf("the stage %s doesn't exist", stage)
		}
	}
	for name, p := range all {
		if p.ours && oneBelow(name, []string{"harness", "internal", "scenarios"}) && stageOf(name) < 0 {
			t.Errorf("%s is in no stage", name)
		}
	}
	for name, p := range all {
		kindsOf := below(name, "scenarios") && path.Base(name) == "kinds" || slices.Contains(kindPackages, name)
		if p.ours && kindsOf && !slices.Contains(all["scenarios"].Imports, module+name) {
			t.Errorf("scenarios/kinds.go doesn't list %s: its kinds are unknown to whoever runs or judges", name)
		}
	}
	for _, name := range kindPackages {
		if !all[name].ours {
			t.Errorf("the package of kinds %s doesn't exist", name)
		}
	}
	for name := range all {
		if path.Dir(name) == "harness/check" && name != "harness/check/question" && !slices.Contains(kindPackages, name) {
			t.Errorf("%s is not listed among the packages of kinds", name)
		}
	}
	for _, group := range unrelated {
		for _, part := range group {
			if !all["harness/"+part].ours {
				t.Errorf("the part %s doesn't exist", part)
			}
		}
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append([]string{"github.com/chaos-mesh/chaos-mesh/api", "github.com/onsi/ginkgo/v2", "github.com/onsi/gomega"}, clients...) {
		if !strings.Contains(string(mod), path+" v") {
			t.Errorf("go.mod doesn't require %s", path)
		}
	}
}
