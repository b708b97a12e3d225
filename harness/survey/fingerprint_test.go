package survey_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/survey"
)

// sourcesOf serves packages of releases from folders: VERSION/PACKAGE.
func sourcesOf(t *testing.T, files map[string]string) survey.Sources {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func(_ context.Context, version, pkg string) (string, bool, error) {
		if version == "refused" {
			return "", false, errors.New("the proxy refuses it")
		}
		return filepath.Join(root, version, pkg), filepath.Base(filepath.Dir(pkg)) != "foreign", nil
	}
}

// Only what goes into the program makes another fingerprint.
func TestFingerprintsAreOfSyntax(t *testing.T) {
	const plain = "package a\n\nimport \"b\"\n\nfunc F() int { return b.N }\n"
	from := sourcesOf(t, map[string]string{
		"plain/a/a.go":           plain,
		"comments/a/a.go":        "// Package a is one.\npackage a\n\nimport \"b\"\n\n// F.\nfunc F() int {\n\treturn b.N // why\n}\n",
		"tests/a/a.go":           plain,
		"tests/a/a_test.go":      "package a\n\nvar T = 1\n",
		"windows/a/a.go":         plain,
		"windows/a/a_windows.go": "package a\n\nvar W = 1\n",
		"other/a/a.go":           "package a\n\nimport \"b\"\n\nfunc F() int { return b.N + 1 }\n",
		"embed/a/a.go":           "package a\n\nimport \"b\"\n\n//go:noinline\nfunc F() int { return b.N }\n",
		"more/a/a.go":            plain,
		"more/a/more.go":         "package a\n\nvar M = 1\n",
		"nearby/a/a.go":          plain,
		"plain/b/b.go":           "package b\n\nconst N = 1\n",
		"nearby/b/b.go":          "package b\n\nconst N = 2\n",
		"empty/a/README":         "It was here.",
	})
	print := func(version string) survey.Release {
		r := survey.Release{Version: version}
		if err := survey.Fingerprint(t.Context(), from, &r, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	of := print("plain")
	for _, version := range []string{"comments", "tests", "windows", "nearby"} {
		if got := print(version); got.Print != of.Print || got.Why != "" {
			t.Errorf("%s: %+v, want the fingerprint of %+v", version, got, of)
		}
	}
	for _, version := range []string{"other", "embed", "more"} {
		if got := print(version); got.Print == of.Print {
			t.Errorf("%s has the fingerprint of plain", version)
		}
	}
	if print("nearby").Near == of.Near {
		t.Error("a change of what the package imports is not seen")
	}
	if got := print("refused"); got.Why != "the proxy refuses it" || got.Print != "" {
		t.Errorf("%+v", got)
	}
	// What has none of the packages is like nothing, not even like another such release.
	none, empty := print("none"), print("empty")
	if none.Print == of.Print || none.Print == empty.Print || none.Why+empty.Why != "" || len(none.Lacks) != 1 || len(empty.Lacks) != 1 {
		t.Errorf("releases without the package: %+v, %+v", none, empty)
	}
}
