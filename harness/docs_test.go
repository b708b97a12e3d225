package harness_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kube-relapse/relapse/harness/check"
)

var (
	link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	file = regexp.MustCompile("`((?:[a-z0-9]+/)*[a-z0-9_-]+(?:/[a-z0-9_-]+|\\.(?:go|md|yaml)))`")
)

// Scripts look up what a finding's code means.
func TestEveryCodeIsExplained(t *testing.T) {
	text, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []check.Code
	_, table, _ := strings.Cut(string(text), "| code |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		explained = append(explained, check.Code(m[1]))
	}
	if !slices.Equal(explained, check.Codes) {
		t.Errorf("the page explains %q, want %q", explained, check.Codes)
	}
}

// A page that sends its reader to a file that isn't there is worse than none.
func TestPagesNameFilesThatExist(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md", "../scenarios/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages were found: %v", len(pages), pages)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if !exists(filepath.Join(filepath.Dir(page), m[1])) {
				t.Errorf("%s links to %s, which isn't there", page, m[1])
			}
		}
	}
	named := 0
	for _, page := range []string{"../docs/architecture.md", "../docs/compatibility.md", "../CONTRIBUTING.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range file.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "bin/") || !strings.Contains(m[1], "/") && !strings.HasSuffix(m[1], ".go") {
				continue
			}
			named++
			if !exists(filepath.Join("..", m[1])) && !exists(m[1]) && !exists(filepath.Join("..", "docs", m[1])) {
				t.Errorf("%s names %s, which isn't there", page, m[1])
			}
		}
	}
	if named < 30 {
		t.Errorf("only %d files were found in the pages' text", named)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// What nobody can take in at a glance hides mistakes.
func TestScenariosHaveNoLongLines(t *testing.T) {
	files, err := filepath.Glob("../scenarios/*/scenario.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("only %d scenarios were found: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := utf8.RuneCountInString(line); n > 120 {
				t.Errorf("%s:%d has %d columns (want at most 120)", file, i+1, n)
			}
		}
	}
}
