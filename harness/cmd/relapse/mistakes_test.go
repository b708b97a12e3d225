package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/kube-relapse/relapse/scenarios"
)

// mistake is a block of testdata/mistakes/edits.txt.
type mistake struct {
	title, old, new string
	said            []string
}

// mistakes returns the blocks, and the text before them.
func mistakes(t *testing.T, text string) (head string, all []mistake) {
	t.Helper()
	blocks := strings.Split(text, "\n## ")
	for _, block := range blocks[1:] {
		lines := strings.Split(block, "\n")
		m := mistake{title: lines[0]}
		for _, l := range lines[1:] {
			switch {
			case strings.HasPrefix(l, "-"):
				m.old += l[1:] + "\n"
			case strings.HasPrefix(l, "+"):
				m.new += l[1:] + "\n"
			case strings.HasPrefix(l, "!"):
				m.said = append(m.said, strings.TrimPrefix(l[1:], " "))
			case l != "":
				t.Fatalf("%s: %q is neither old, new nor said", m.title, l)
			}
		}
		all = append(all, m)
	}
	return blocks[0], all
}

// validated returns what relapse validate says about a scenario's text, without the file's name.
func validated(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mistakes", "scenario.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := newRootCmd()
	cmd.SetArgs([]string{"validate", file})
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	err := cmd.ExecuteContext(t.Context())
	lines := strings.Split(strings.TrimSuffix(said.String(), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, file+":")
	}
	if valid := lines[0] == " valid"; valid != (err == nil) {
		t.Errorf("it says %q, and the error is %v", lines, err)
	}
	return lines
}

// Whoever writes a scenario makes such mistakes. Each is refused before anything is built, once, with its place, and
// nothing that only follows from it is said.
func TestMistakesAreRefused(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "mistakes", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	whole, edits := read("scenario.yaml"), read("edits.txt")
	if said := validated(t, whole); len(said) != 1 || said[0] != " valid" {
		t.Fatalf("the scenario without mistakes: %q", said)
	}
	head, all := mistakes(t, edits)
	if len(all) < 41 {
		t.Errorf("there are %d mistakes only", len(all))
	}
	var anew strings.Builder
	anew.WriteString(head)
	for _, m := range all {
		t.Run(m.title, func(t *testing.T) {
			if n := strings.Count(whole, m.old); n != 1 {
				t.Fatalf("what it replaces is in the scenario %d times", n)
			}
			said := validated(t, strings.Replace(whole, m.old, m.new, 1))
			if !*update && strings.Join(said, "\n") != strings.Join(m.said, "\n") {
				t.Errorf("it says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(m.said, "\n"))
			}
			m.said = said
			for _, l := range said {
				if len(l) == 0 || l[0] < '0' || l[0] > '9' {
					t.Errorf("%q has no place", l)
				}
			}
		})
		prefix := func(with, text string) {
			for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
				if text != "" {
					anew.WriteString(with + l + "\n")
				}
			}
		}
		anew.WriteString("\n## " + m.title + "\n")
		prefix("-", m.old)
		prefix("+", m.new)
		prefix("! ", strings.Join(m.said, "\n"))
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "mistakes", "edits.txt"), []byte(anew.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
