package match_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// The program ships with the rules of all scenarios, as they are. A scenario without them is read whole each time, of
// which the program's users would wait for the sum.
func TestTheShippedRules(t *testing.T) {
	rules := []match.Rules{}
	for _, s := range known(t) {
		rules = append(rules, match.RulesOf(s))
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(rules); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", match.ShippedFile)
	const renew = "go test ./harness/match -run TestTheShippedRules -update"
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return // this program has the old ones
	}
	for _, s := range known(t) {
		switch got, err := match.Shipped(s.Origin.File); {
		case err != nil || got == nil:
			t.Errorf("%s was changed, and %s has its old rules (%v): %s", s.Metadata.Name, match.ShippedFile, err, renew)
		case (got.Surveyed() == nil) != (s.Surveyed() == nil):
			t.Errorf("%s is taken without its survey", s.Metadata.Name)
		case len(got.Spec.Collectors) > 0:
			t.Errorf("%s is read whole", s.Metadata.Name)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the scenarios say (%v): %s", match.ShippedFile, err, renew)
	}
}

// The rules alone give the same answers as the whole scenarios.
func TestTheShippedRulesAnswerAlike(t *testing.T) {
	var rules []*scenario.Scenario
	for _, s := range known(t) {
		short, err := match.Shipped(s.Origin.File)
		if err != nil || short == nil {
			t.Fatalf("%s: %v", s.Metadata.Name, err)
		}
		rules = append(rules, short)
	}
	for _, name := range []string{"pleg-whole-dump", "families-crash", "fleet-watch", "listener-cpu-profile", "version-in-json"} {
		dir := filepath.Join("testdata/cases", name)
		short, err := match.Run(t.Context(), rules, shipped(t), []string{dir}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(short)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(run(t, nil, dir))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: by the rules alone\n%s\nwant\n%s", name, got, want)
		}
	}
}

// A scenario that differs from the shipped one in anything is read whole, and so is one of somebody's own.
func TestAnotherScenarioIsReadWhole(t *testing.T) {
	for name, change := range map[string]func(string) (file, text string){
		"a comment":      func(text string) (string, string) { return "pleg-deadlock/scenario.yaml", text + "# mine\n" },
		"another folder": func(text string) (string, string) { return "mine/scenario.yaml", text },
		"no file":        func(text string) (string, string) { return "pleg-deadlock/other.yaml", text },
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../scenarios/pleg-deadlock/scenario.yaml")
			if err != nil {
				t.Fatal(err)
			}
			file, changed := change(string(text))
			dir := files(t, map[string]string{file: changed})
			if s, err := match.Shipped(filepath.Join(dir, filepath.Dir(file), scenario.FileName)); s != nil || err != nil {
				t.Errorf("it is taken for the shipped one: %v, %v", s, err)
			}
		})
	}
}
