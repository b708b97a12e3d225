package match_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
)

// mapCrash is the end of a kube-apiserver's log that shows concurrent-map-crash.
func mapCrash() string { return fmt.Sprintf(mapPanic, "v1.33.13", "log") }

// runOn asks about one file.
func runOn(t testing.TB, name, text string) match.Result {
	t.Helper()
	return run(t, nil, files(t, map[string]string{name: text}))
}

// goTestJSON is a text as go test -json gives it.
func goTestJSON(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		one, _ := json.Marshal(map[string]string{"Output": l})
		b.WriteString(`{"Time":"2026-02-11T08:00:00.1Z","Action":"output","Package":"k8s.io/x/things","Test":"TestThings",` + string(one[1:]) + "\n")
	}
	return b.String()
}

// What a test of Go has printed is of the test, though its frames are a component's.
func TestWhatATestPrinted(t *testing.T) {
	const begin, fail = "=== RUN   TestThings\n", "--- FAIL: TestThings (0.01s)\nFAIL\nFAIL\tk8s.io/kubernetes/pkg/things\t0.131s\n"
	stuck := kubelet("chan send, 217 minutes", "sleep")
	for name, around := range map[string]func(string) string{
		"go test -v":               func(s string) string { return begin + s + fail },
		"its beginning":            func(s string) string { return begin + s },
		"its end":                  func(s string) string { return s + fail },
		"of a package":             func(s string) string { return s + "FAIL\tk8s.io/kubernetes/pkg/things\t0.131s\n" },
		"with a collector's times": func(s string) string { return each("2026-02-11T08:00:00.123456789Z ", begin+s+fail) },
		"in a container's log":     func(s string) string { return each("2026-02-11T08:00:00.123456789Z stderr F ", begin+s+fail) },
		"quoted":                   func(s string) string { return each("> ", begin+s+fail) },
		"go test -json":            func(s string) string { return goTestJSON(begin + s + fail) },
		"gotestsum":                func(s string) string { return "=== FAIL: pkg/things TestThings (0.01s)\n" + s },
		"bazel": func(s string) string {
			return "==================== Test output for //pkg/things:go_default_test:\n" + s
		},
		"Ginkgo": func(s string) string {
			return "Running Suite: Things Suite - /src/pkg/things\n" + s + "\nRan 3 of 3 Specs in 0.141 seconds\n"
		},
		"testing's own log": func(s string) string { return "    things_test.go:77: it printed:\n" + s },
		"a report in XML": func(s string) string {
			return `<?xml version="1.0"?><testsuite name="things"><testcase name="TestThings"><failure><![CDATA[` + s + "]]></failure></testcase></testsuite>\n"
		},
		"in a fence":                 func(s string) string { return "It fails for us:\n\n```\n" + begin + s + fail + "```\n" },
		"far below what it printed":  func(s string) string { return begin + strings.Repeat("printed\n", 1500) + s },
		"far above where it says so": func(s string) string { return s + strings.Repeat("printed\n", 1500) + "--- FAIL: TestThings (0.01s)\n" },
	} {
		t.Run(name, func(t *testing.T) {
			answered(t, runOn(t, "kubelet.txt", around(stuck)), "pleg-deadlock", "suspected", "and not of kubelet")
			if strings.Contains(name, "far above") || strings.Contains(name, "json") {
				return // a log that goes on may be of a program that has survived it, and in JSON its words begin no line
			}
			answered(t, runOn(t, "kube-apiserver.log", around(mapCrash())), "concurrent-map-crash", "suspected", "it is of a test, by what stands around it, ")
		})
	}
}

// What stands in another fence than a test's output, or in another file, is not the test's.
func TestWhatStandsBesideATest(t *testing.T) {
	const test = "=== RUN   TestThings\n--- FAIL: TestThings (0.01s)\n"
	for name, text := range map[string]string{
		"another fence":   "The test fails:\n\n```\n" + test + "```\n\nAnd our API server died:\n\n```\n" + mapCrash() + "```\n",
		"another heading": "# Tests\n\n" + test + "\n# Log\n\n" + mapCrash(),
		"another file":    "==> test.log <==\n" + test + "==> kube-apiserver.log <==\n" + mapCrash(),
		"another pod":     each("[pod/tests-0/tests] ", test) + each("[pod/kube-apiserver-n1/kube-apiserver] ", mapCrash()),
	} {
		t.Run(name, func(t *testing.T) {
			answered(t, runOn(t, "kube-apiserver.txt", text), "concurrent-map-crash", "met", "died-of-it")
		})
	}
}

// Lines of a log that a test has printed count for nothing that a component does.
func TestLinesThatATestPrinted(t *testing.T) {
	line := `I0301 10:00:00.000000       1 a.go:1] "Starting" version="v1.34.2"` + "\n" +
		strings.Repeat(`E0301 10:00:00.000000       1 job_controller.go:600] "Unhandled Error" err="Job.batch \"a\" is invalid: status.ready: Invalid value: 2: more ready pods than active"`+"\n", 4)
	answered(t, runOn(t, "kube-controller-manager.log", line), "job-status-refused", "met", "refused")
	answered(t, runOn(t, "kube-controller-manager.log", "=== RUN   TestThings\n"+line), "job-status-refused", "suspected", "it is of a test, by what stands around it, === RUN   TestThings")
}

// Source code is no evidence, however it was printed.
func TestSourceCodeInOtherForms(t *testing.T) {
	source := "// Package x parses.\npackage x_test\n\nimport \"testing\"\n\nconst crash = `" + mapCrash() + "`\n\nfunc TestParse(t *testing.T) {\n\tparse(crash)\n}\n"
	python := "import re\n\nCRASH = \"\"\"" + mapCrash() + "\"\"\"\n"
	numbered := func(text string) string {
		var b strings.Builder
		for i, l := range strings.Split(strings.TrimSpace(text), "\n") {
			fmt.Fprintf(&b, "%6d\t%s\n", i+1, l)
		}
		return b.String()
	}
	for name, form := range map[string]func(string) string{
		"quoted":                   func(s string) string { return each("> ", s) },
		"numbered":                 numbered,
		"with a collector's times": func(s string) string { return each("2026-02-11T08:00:00.123456789Z ", s) },
		"in a container's log":     func(s string) string { return each("2026-02-11T08:00:00.123456789Z stdout F ", s) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{source, python} {
				if i := of(t, runOn(t, "kube-apiserver.log", form(text)), "concurrent-map-crash"); i.Word() != "unknown" {
					t.Errorf("it is %s: %s", i.Word(), i.Why)
				}
			}
		})
	}
	for name, text := range map[string]string{
		"in a fence": "Add this:\n\n```go\n" + source + "```\n",
		"in a patch": "diff --git a/x_test.go b/x_test.go\n--- /dev/null\n+++ b/x_test.go\n@@ -0,0 +1,30 @@\n" + each("+", source),
	} {
		t.Run(name, func(t *testing.T) {
			answered(t, runOn(t, "kube-apiserver.txt", text), "concurrent-map-crash", "suspected", "it is of source code, by what stands around it, ")
		})
	}
}

// A text that explains something is an explanation, too, where a collector of logs has put a time before each line.
func TestExplanationsInLogs(t *testing.T) {
	stuck := kubelet("chan send, 217 minutes", "sleep")
	manual := "# How to recognise it\n\nIf you see that your node is NotReady, take a dump. When the kubelet is stuck you will see something like this:\n\n" + stuck + "\n\nThen you should restart it.\n"
	blog := "A bad night\n\nIn this post we look at a deadlock that we had in our clusters, and this is what the dump showed.\n\n" + stuck + "\nThanks for reading.\n"
	for name, before := range map[string]string{
		"times":            "2026-02-11T08:00:00.123456789Z ",
		"CRI":              "2026-02-11T08:00:00.123456789Z stdout F ",
		"journald":         "Feb 11 08:00:00 node-1 viewer[123]: ",
		"kubectl --prefix": "[pod/docs-0/web] ",
		"both":             "[pod/docs-0/web] 2026-02-11T08:00:00.123456789Z ",
		"a web server's":   "2026/02/11 08:00:00 ",
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{manual, blog} {
				if i := of(t, runOn(t, "kubelet.txt", each(before, text)), "pleg-deadlock"); i.Word() == "met" {
					t.Errorf("it is met: %s", i.Why)
				}
			}
			answered(t, runOn(t, "kubelet.txt", each(strings.NewReplacer("docs-0/web", "kubelet-0/kubelet", "viewer", "kubelet").Replace(before), "SIGQUIT: quit\n\n"+stuck)), "pleg-deadlock", "met", "")
		})
	}
}
