package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// TestPageOfCI reads the examples of docs/ci.md as those would who get them: GitHub's workflows with actionlint, all
// others as YAML, and the commands with the flags that relapse has. The inputs are those of action.yml and validate.yaml.
func TestPageOfCI(t *testing.T) {
	raw, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	workflows, others := 0, 0
	for i, block := range strings.Split(page, "```") {
		text, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok {
			continue
		}
		if !strings.HasPrefix(text, "# .github/") {
			others++
			if _, err := parser.ParseBytes([]byte(text), 0); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			continue
		}
		workflows++
		for _, e := range lint(t, "workflow.yaml", []byte(text)) {
			t.Errorf("%s in\n%s", e, text)
		}
		wantInputs(t, text)
	}
	if workflows != 3 || others != 3 {
		t.Errorf("%d workflows of GitHub and %d other examples were read, want 3 and 3", workflows, others)
	}
	called, err := os.ReadFile("../../.github/workflows/validate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wantInputs(t, string(called))
	commands := 0
	for _, m := range regexp.MustCompile(`\brelapse"? ((?:run|judge|attest|redact|cache key) [^\n]*)`).FindAllStringSubmatch(page, -1) {
		commands++
		wantFlags(t, m[1])
	}
	if commands < 5 {
		t.Errorf("only %d commands were found", commands)
	}
}

// wantFlags wants a command line to be one of relapse's, with flags that the command has.
func wantFlags(t *testing.T, line string) {
	t.Helper()
	root := newRootCmd()
	cmd, _, err := root.Find(strings.Fields(line))
	if err != nil || cmd == root {
		t.Errorf("relapse %s: %v", line, err)
		return
	}
	for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(line, -1) {
		if cmd.Flag(m[1]) == nil {
			t.Errorf("relapse %s: %s has no flag --%s", line, cmd.Name(), m[1])
		}
	}
}

// wantInputs wants a workflow to give our action and our workflow only inputs that they have.
func wantInputs(t *testing.T, text string) {
	t.Helper()
	var w struct {
		Jobs map[string]struct {
			Uses  string
			With  map[string]any
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	var of struct {
		Inputs map[string]any
		On     struct {
			Call struct{ Inputs map[string]any } `yaml:"workflow_call"`
		}
	}
	used := 0
	check := func(file string, with map[string]any) {
		raw, err := os.ReadFile("../../" + file)
		if err == nil {
			err = yaml.Unmarshal(raw, &of)
		}
		if err != nil {
			t.Fatal(err)
		}
		used++
		for name := range with {
			if _, ok := of.Inputs[name]; ok && file == "action.yml" {
				continue
			}
			if _, ok := of.On.Call.Inputs[name]; ok && file != "action.yml" {
				continue
			}
			t.Errorf("%s has no input %s", file, name)
		}
	}
	for _, j := range w.Jobs {
		if file, ok := strings.CutPrefix(j.Uses, "kube-relapse/relapse/"); ok {
			file, _, _ = strings.Cut(file, "@")
			check(file, j.With)
		}
		for _, s := range j.Steps {
			if strings.HasPrefix(s.Uses, "kube-relapse/relapse@") {
				check("action.yml", s.With)
			}
		}
	}
	if used == 0 {
		t.Errorf("it uses nothing of ours:\n%s", text)
	}
}
