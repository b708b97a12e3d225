package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
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
func validated(t *testing.T, scenario, text string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), scenario, "scenario.yaml")
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

// place is the place in a file that an error begins with.
var place = regexp.MustCompile(`^\d+:\d+: `)

// Whoever writes a scenario makes such mistakes. Each is refused before anything is built, once, with its place, and
// nothing that only follows from it is said.
func TestMistakesAreRefused(t *testing.T) {
	for _, one := range []struct {
		scenario, file, edits string
		atLeast               int
		said                  func(line string) string
	}{
		{"mistakes", "testdata/mistakes/scenario.yaml", "edits.txt", 70, func(line string) string { return line }},
		// Its things with names stand in lists, as they may.
		{"service-without-families", "testdata/mistakes/families.yaml", "families.txt", 42,
			func(line string) string { return place.ReplaceAllString(line, "") }},
	} {
		t.Run(one.scenario, func(t *testing.T) {
			whole, err := os.ReadFile(one.file)
			if err != nil {
				t.Fatal(err)
			}
			edits := filepath.Join("testdata", "mistakes", one.edits)
			text, err := os.ReadFile(edits)
			if err != nil {
				t.Fatal(err)
			}
			if said := validated(t, one.scenario, string(whole)); len(said) != 1 || said[0] != " valid" {
				t.Fatalf("the scenario without mistakes: %q", said)
			}
			head, all := mistakes(t, string(text))
			if len(all) < one.atLeast {
				t.Errorf("there are %d mistakes (want at least %d)", len(all), one.atLeast)
			}
			for i := range all {
				t.Run(all[i].title, func(t *testing.T) {
					all[i].refused(t, one.scenario, string(whole), one.said)
				})
			}
			if *update {
				if err := os.WriteFile(edits, []byte(written(head, all)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// refused makes the mistake in a scenario, and compares what relapse validate says with what is wanted. said takes off
// what is not compared.
func (m *mistake) refused(t *testing.T, scenario, whole string, said func(string) string) {
	if n := strings.Count(whole, m.old); n != 1 {
		t.Fatalf("what it replaces is in the scenario %d times", n)
	}
	lines := validated(t, scenario, strings.Replace(whole, m.old, m.new, 1))
	for i, l := range lines {
		if !place.MatchString(l) {
			t.Errorf("%q has no place", l)
		}
		lines[i] = said(l)
	}
	if !*update && strings.Join(lines, "\n") != strings.Join(m.said, "\n") {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(m.said, "\n"))
	}
	m.said = lines
}

// written returns the text of a file of mistakes.
func written(head string, all []mistake) string {
	var out strings.Builder
	out.WriteString(head)
	prefix := func(with, text string) {
		for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" {
				out.WriteString(with + l + "\n")
			}
		}
	}
	for _, m := range all {
		out.WriteString("\n## " + m.title + "\n")
		prefix("-", m.old)
		prefix("+", m.new)
		prefix("! ", strings.Join(m.said, "\n"))
	}
	return out.String()
}
