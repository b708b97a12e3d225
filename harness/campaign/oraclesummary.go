package campaign

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

// The files of an oracle's directory.
const (
	OracleFile         = "oracle.json"
	OracleMarkdownFile = "oracle.md"
)

// oracleSchema is the value of the schema field of OracleFile.
const oracleSchema = "relapse.dev/oracle/v1alpha1"

// OracleSummary is oracle.json: how a scenario's checks judged candidates whose answer is known.
type OracleSummary struct {
	Schema     string            `json:"schema"`
	Scenario   string            `json:"scenario"`
	StartedAt  time.Time         `json:"startedAt"`
	EndedAt    time.Time         `json:"endedAt"` // when it was last changed
	Relapse    string            `json:"relapse"`
	Versions   map[string]string `json:"versions,omitempty"` // of the latest run
	Settings   Settings          `json:"settings"`
	Beside     int               `json:"beside"`
	Candidates []Graded          `json:"candidates"`
	Grade      Grade             `json:"grade"` // of the first candidate whose exit code outranks the others
	ExitCode   int               `json:"exitCode"`
}

// Graded is one candidate with the right answer and the given one.
type Graded struct {
	Name  string `json:"name"`
	Doc   string `json:"doc"`
	Right string `json:"right"`
	Why   string `json:"why"` // why that is right
	// Because lists the checks by which the candidate has to be right.
	Because scenario.Grounds `json:"because"`
	Given   []string         `json:"given,omitempty"` // the outcome of its arm in each trial
	Grade   Grade            `json:"grade"`
	Reason  string           `json:"reason"` // why the outcome is what it is, or why there is none
	Dir     string           `json:"dir,omitempty"`
	// Set holds the parameters that only this candidate's trials were run with.
	Set     map[string]scenario.Scalar `json:"set,omitempty"`
	Seconds float64                    `json:"seconds"` // of its run, which other candidates may share
}

// describe returns the line that reports a candidate while others are still to come.
func (g Graded) describe() string {
	out := fmt.Sprintf("%s: %s (right is %s)", g.Name, g.answer(), g.Right)
	if g.Grade != Right {
		out += ": " + g.Reason
	}
	return out
}

// answer returns the given answer, with counts if there were several trials, and with the grade if that is not Right.
func (g Graded) answer() string {
	times := map[string]int{}
	for _, o := range g.Given {
		times[o]++
	}
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(times)) {
		if len(g.Given) > 1 {
			o = fmt.Sprintf("%s %d/%d", o, times[o], len(g.Given))
		}
		parts = append(parts, o)
	}
	out := strings.Join(parts, ", ")
	switch {
	case g.Grade == Right:
		return out
	case out == "":
		return string(g.Grade)
	}
	return fmt.Sprintf("%s: %s", g.Grade, out)
}

// Took returns the time from the first run to the end of the last.
func (s OracleSummary) Took() time.Duration { return s.EndedAt.Sub(s.StartedAt).Round(time.Second) }

// count returns how many candidates have a grade.
func (s OracleSummary) count(g Grade) int {
	n := 0
	for _, c := range s.Candidates {
		if c.Grade == g {
			n++
		}
	}
	return n
}

// Sentence sums up the grades in one sentence.
func (s OracleSummary) Sentence() string {
	var parts []string
	for _, g := range []Grade{Right, Wrong, ByLuck, NoAnswer, Errored, NotRun} {
		if n := s.count(g); n > 0 || g == Right {
			parts = append(parts, fmt.Sprintf("%d %s", n, g))
		}
	}
	return fmt.Sprintf(
		"%s: of %d candidates %s",
		s.Scenario,
		len(s.Candidates),
		strings.Join(parts, ", "),
	)
}

// Table returns a table of what each candidate was given.
func (s OracleSummary) Table() printing.Table {
	out := printing.Table{
		Header: []string{"candidate", "right", "given", "time", "run"},
		Empty:  "-",
	}
	for _, g := range s.Candidates {
		out.Add(
			g.Name,
			g.Right,
			g.answer(),
			time.Duration(g.Seconds*float64(time.Second)).Round(time.Second),
			g.Dir,
		)
	}
	return out
}

// Unexplained returns a sentence for each candidate whose answer was not right.
func (s OracleSummary) Unexplained() []string {
	var out []string
	for _, g := range s.Candidates {
		if g.Grade != Right {
			out = append(
				out,
				fmt.Sprintf("%s: %s; %s is right: %s", g.Name, g.Reason, g.Right, g.Why),
			)
		}
	}
	return out
}

// Markdown returns the table in the form that it has in the scenario's README.
func (s OracleSummary) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(
		&b,
		"%s with pair %s on the provider %s",
		s.StartedAt.Format(time.DateOnly),
		s.Settings.Pair,
		s.Settings.Provider,
	)
	for _, name := range slices.Sorted(maps.Keys(s.Settings.Set)) {
		fmt.Fprintf(&b, ", %s=%s", name, s.Settings.Set[name])
	}
	for _, v := range []struct{ name, says string }{{"kubernetes", "Kubernetes"}, {"engine", ""}, {"kernel", "Linux"},
		{"go", ""}} {
		if s.Versions[v.name] != "" {
			fmt.Fprintf(&b, ", %s", strings.TrimSpace(v.says+" "+s.Versions[v.name]))
		}
	}
	fmt.Fprintf(
		&b,
		", relapse %s: %s, in %s.\n\n",
		s.Relapse,
		strings.TrimPrefix(s.Sentence(), s.Scenario+": "),
		s.Took(),
	)
	t := printing.Table{Header: []string{"candidate", "what it is", "right", "because", "given"}}
	for _, g := range s.Candidates {
		t.Add("`"+g.Name+"`", g.Doc, g.Right, listed(g.Because), g.answer())
	}
	b.WriteString(t.Markdown())
	for i, u := range s.Unexplained() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s\n", printing.OneLine(u))
	}
	return b.Bytes()
}

// JSON returns the content of oracle.json.
func (s OracleSummary) JSON() ([]byte, error) { return judge.JSON(OracleFile, s) }

// sum sets the grade and the exit code of all candidates together.
func (s *OracleSummary) sum() {
	var exits []int
	for _, g := range s.Candidates {
		exits = append(exits, g.Grade.exit())
	}
	s.ExitCode = verdict.Combine(exits)
	for _, g := range s.Candidates {
		if g.Grade.exit() == s.ExitCode {
			s.Grade = g.Grade
			break
		}
	}
}

// write sums up the grades so far and writes oracle.json and oracle.md to the oracle's directory.
func (s *OracleSummary) write(o OracleOptions) error {
	s.EndedAt = o.Now().UTC()
	s.sum()
	raw, err := s.JSON()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", OracleFile, err)
	}
	for name, data := range map[string][]byte{OracleFile: raw, OracleMarkdownFile: s.Markdown()} {
		if err := renameio.WriteFile(filepath.Join(o.Dir, name), data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
