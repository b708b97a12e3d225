package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// some are scenarios of these names, one of which has a rule.
func some(t *testing.T) (out []*scenario.Scenario) {
	t.Helper()
	for _, name := range []string{"pleg-deadlock", "scheduler-nil-pointer"} {
		s, err := scenario.Load(filepath.Join("../../../scenarios", name, scenario.FileName))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// lay lays a case down, with a file of evidence.
func lay(t *testing.T, caseFile, evidence string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "one")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{CaseFile: caseFile, "a.txt": evidence} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const rest = "form: log\nwhy: so\nsource: made by hand\n"

// Every mistake in a case's file is named with its line.
func TestCasesAreReadStrictly(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a field":              {"files: [a.txt]\nshows: other\nanswer: none\nfrom: here\n" + rest, ":4:1: from: unknown field"},
		"a scenario":           {"files: [a.txt]\nshows: other\nanswer: {pleg-deadlok: unknown}\n" + rest, ":3:10: answer.pleg-deadlok: unknown field"},
		"a word":               {"files: [a.txt]\nshows: other\nanswer: {pleg-deadlock: perhaps}\n" + rest, ":3:25: answer.pleg-deadlock: unknown"},
		"one word for all":     {"files: [a.txt]\nshows: other\nanswer: met\n" + rest, ":3:9: answer: "},
		"what it shows":        {"files: [a.txt]\nshows: nothing\nanswer: none\n" + rest, `:2:8: shows: unknown shows "nothing"`},
		"no file":              {"files: [a.txt, b.txt]\nshows: other\nanswer: none\n" + rest, `:1:16: files[1]: "b.txt" is no file beside the case`},
		"a file elsewhere":     {"files: [../one/a.txt]\nshows: other\nanswer: none\n" + rest, `is no file beside the case`},
		"no files":             {"files: []\nshows: other\nanswer: none\n" + rest, ": files: is an empty list"},
		"no reason":            {"files: [a.txt]\nshows: other\nanswer: none\nform: log\nsource: x\n", "why: is missing"},
		"met of another":       {"files: [a.txt]\nshows: healthy\nanswer: {pleg-deadlock: met}\n" + rest, ":3:25: answer.pleg-deadlock: met can't be right: the case shows healthy"},
		"nothing of its own":   {"files: [a.txt]\nshows: pleg-deadlock\nanswer: none\n" + rest, ":3:9: answer: there is no right answer for pleg-deadlock"},
		"two mistakes at once": {"files: [a.txt]\nshows: other\nanswer: none\nfrom: here\nto: there\n" + rest, ":5:1: to: unknown field"},
		"nothing":              {"", "is empty (want a case)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Cases(some(t), []string{lay(t, c.text, "")})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), CaseFile) {
				t.Errorf("want %q in:\n%v", c.want, err)
			}
		})
	}
}

const overdue = `E0301 10:00:00.000000    1 kubelet.go:2000] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 5m1s ago; threshold is 3m0s"` + "\n"

// An answer is right or wrong by the case's own words, and an open case can't hide that it is right.
func TestWrongAnswers(t *testing.T) {
	for name, c := range map[string]struct{ text, wrong, open, cell string }{
		"right":           {"shows: pleg-deadlock\nanswer: {pleg-deadlock: [suspected, met]}\n", "", "", "0/1/0/0"},
		"another word":    {"shows: pleg-deadlock\nanswer: {pleg-deadlock: met}\n", "pleg-deadlock is suspected: ", "", "0/1/0/0, 1 WRONG"},
		"not named":       {"shows: other\nanswer: none\n", "want unknown or not met", "", "none"},
		"says":            {"shows: pleg-deadlock\nanswer: {pleg-deadlock: suspected}\nsays: moon\n", "that doesn't say moon", "", "0/1/0/0, 1 WRONG"},
		"open":            {"shows: pleg-deadlock\nanswer: {pleg-deadlock: met}\nopen: later\n", "", "(open: later)", "0/1/0/0, 1 WRONG"},
		"open, but right": {"shows: pleg-deadlock\nanswer: {pleg-deadlock: suspected}\nopen: later\n", "it is right, but marked as open: later", "", "0/1/0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(t)
			cases, err := Cases(all, []string{filepath.Dir(lay(t, "files: [a.txt]\n"+c.text+rest, overdue))})
			if err != nil {
				t.Fatal(err)
			}
			tables, err := RunCases(t.Context(), all, nil, cases)
			if err != nil {
				t.Fatal(err)
			}
			said := func(all []Mistake) (text string) {
				for _, m := range all {
					text += m.Case + ": " + m.Message
				}
				return text
			}
			pleg := tables[0]
			if wrong, open := said(pleg.Wrong), said(pleg.Open); !strings.Contains(wrong, c.wrong) || (wrong == "") != (c.wrong == "") ||
				!strings.Contains(open, c.open) || (open == "") != (c.open == "") {
				t.Errorf("wrong: %q; open: %q", wrong, open)
			}
			if got := pleg.total(ofOwn, "log").describe(); got != c.cell {
				t.Errorf("the cell is %s, want %s", got, c.cell)
			}
			if text := pleg.Text(); !strings.Contains(text, "log ") || !strings.Contains(text, "all ") || !strings.Contains(pleg.Markdown(), "| log | ") {
				t.Errorf("the table:\n%s", text)
			}
		})
	}
	if (Case{Shows: noBug, Answer: Answers{}}).Wrong(match.Incident{Name: "x", Answer: match.Met}) == "" {
		t.Error("an incident that is met in healthy evidence is right")
	}
}
