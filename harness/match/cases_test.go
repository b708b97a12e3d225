package match_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
	"sigs.k8s.io/yaml"
)

// outside is evidence as somebody outside has it, with its right answer.
type outside struct {
	Files    []string `json:"files"`
	Incident string   `json:"incident"` // the scenario that it is about
	Answer   []string `json:"answer"`   // each of these is right
	Says     string   `json:"says"`     // what the answer has to say; "" for anything
	Why      string   `json:"why"`
	Source   string   `json:"source"`
	Open     string   `json:"open"` // why the answer isn't right yet; "" where it is
}

// cases returns the cases below testdata/cases by name.
func cases(t testing.TB) map[string]outside {
	t.Helper()
	all, err := filepath.Glob("testdata/cases/*/case.yaml")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	out := map[string]outside{}
	for _, f := range all {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var c outside
		if err := yaml.UnmarshalStrict(b, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if len(c.Files) == 0 || len(c.Answer) == 0 || c.Why == "" || c.Source == "" {
			t.Fatalf("%s lacks its files, answer, reason or source", f)
		}
		out[filepath.Base(filepath.Dir(f))] = c
	}
	return out
}

// wrong says what is wrong with a result, "" if it is right: the answer about the case's incident, and that no other
// incident is met or suspected.
func (c outside) wrong(t testing.TB, r match.Result) string {
	i := of(t, r, c.Incident)
	if !slices.Contains(c.Answer, i.Word()) || !strings.Contains(i.Why, c.Says) {
		return "it is " + i.Word() + ": " + i.Why
	}
	for _, other := range r.Incidents {
		if other.Name != c.Incident && (other.Word() == "met" || other.Word() == "suspected") {
			return other.Name + " is " + other.Word() + ", too: " + other.Why
		}
	}
	return ""
}

// Evidence as people have it is answered rightly. A case that is open is wrong, and loses its mark once it is right.
func TestOutsideCases(t *testing.T) {
	open := 0
	for name, c := range cases(t) {
		if c.Open != "" {
			open++
		}
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, f := range c.Files {
				paths = append(paths, filepath.Join("testdata/cases", name, f))
			}
			r := run(t, nil, paths...)
			switch bad := c.wrong(t, r); {
			case c.Open == "" && bad != "":
				t.Errorf("%s; want %s: %s", bad, strings.Join(c.Answer, " or "), c.Why)
			case c.Open != "" && bad == "":
				t.Errorf("it is right; take its mark off (open: %s)", c.Open)
			case c.Open != "" && of(t, r, c.Incident).Word() == "met":
				t.Errorf("it is open and met, which no open case may be: %s", bad)
			}
		})
	}
	t.Logf("%d of %d cases are open", open, len(cases(t)))
}
