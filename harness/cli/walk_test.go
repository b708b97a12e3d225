package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// needCluster are the commands of the walk that no test without a cluster can run.
var needCluster = []string{"run"}

// TestWalkThroughAScenario types what docs/scenarios.md tells a newcomer to type, up to the first run: the commands in
// their order, and the files with the path in their first line.
func TestWalkThroughAScenario(t *testing.T) {
	script, lines := walk(t)
	if lines > 27 {
		t.Errorf("the minimal scenario has %d lines, want at most 27", lines)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "walk.txtar"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true})
}

// walk returns the page's first part as a script, and how many lines its scenario has.
func walk(t *testing.T) (script string, lines int) {
	t.Helper()
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "## From an upstream issue")
	part, _, ok := strings.Cut(part, "\n## ")
	if !ok {
		t.Fatal("the page doesn't begin with the walk")
	}
	var ran []string
	var steps, files strings.Builder
	fmt.Fprintln(&steps, "mkdir scenarios")
	fmt.Fprint(&files, "-- go.mod --\nmodule "+modulePath+"\n")
	for i, block := range strings.Split(part, "```") {
		if i%2 == 1 {
			text, ok := strings.CutPrefix(block, "yaml\n# ")
			path, text, cut := strings.Cut(text, "\n")
			if !ok || !cut {
				t.Fatalf("a block has no path in its first line:\n%s", block)
			}
			lines = strings.Count(text, "\n")
			fmt.Fprintf(&steps, "cp file%d %s\n", i, path)
			fmt.Fprintf(&files, "-- file%d --\n%s", i, text)
			continue
		}
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "relapse ")
			if !ok || !strings.HasPrefix(line, "    ") {
				continue
			}
			verb, _, _ := strings.Cut(command, " ")
			if !slices.Contains(needCluster, verb) {
				fmt.Fprintln(&steps, "exec relapse", command)
			}
			ran = append(ran, verb)
		}
	}
	for _, verb := range []string{"new", "list", "explain", "validate", "plan", "run"} {
		if !slices.Contains(ran, verb) {
			t.Errorf("the walk has no relapse %s", verb)
		}
	}
	fmt.Fprintln(&steps, "stdout '# derived$'") // the last step without a cluster is plan --defaults
	return steps.String() + files.String(), lines
}
