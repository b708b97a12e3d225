package track

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// Page is the page that has the results of all scenarios, relative to the repository's root.
const Page = "docs/track-record.md"

// The parts of the pages that are written from the records. Each stands between its own two marks.
const (
	resultsPart    = "results"
	candidatesPart = "candidates"
	releasesPart   = "releases"
)

// releasesHeading is that of the section with the releases. A README gets it once there is a survey.
const releasesHeading = "## Which releases have it"

// Text is a page with its parts as the records have them.
type Text struct {
	Path    string
	content []byte
	Changed bool // whether the file has something else
}

// Texts returns the README of each scenario below root, and Page. A page without its marks is an error.
func Texts(root string) ([]Text, error) {
	files, err := filepath.Glob(filepath.Join(root, "scenarios", "*", scenario.FileName))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no scenario below %s", root)
	}
	var out []Text
	var results, candidates [][]string
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			return nil, err
		}
		known, err := s.Candidates()
		if err != nil {
			return nil, err
		}
		r, err := Load(s)
		if err != nil {
			return nil, err
		}
		parts := map[string]string{
			candidatesPart: r.candidateTable(known),
			resultsPart:    r.resultTable(s.Spec.Pairs),
		}
		if o := s.Surveyed(); o != nil {
			parts[releasesPart] = releaseTable(o)
		}
		t, err := withParts(filepath.Join(filepath.Dir(file), "README.md"), parts)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		results = append(results, r.resultRows(s.Spec.Pairs)...)
		candidates = append(candidates, r.oracleRow(known))
	}
	page, err := withParts(filepath.Join(root, filepath.FromSlash(Page)), map[string]string{
		resultsPart: table([]string{"scenario", "pair", "on", "last validated", "result", "in all", "versions", "platform", "recorded by"},
			results),
		candidatesPart: table([]string{"scenario", "always right as it is now", "all others", "run", "platform", "recorded by"},
			candidates),
	})
	return append(out, page), err
}

// Write writes the pages that have changed.
func Write(pages []Text) error {
	for _, p := range pages {
		if !p.Changed {
			continue
		}
		if err := renameio.WriteFile(p.Path, p.content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", p.Path, err)
		}
	}
	return nil
}

// withParts returns a page whose parts have these contents.
func withParts(path string, parts map[string]string) (Text, error) {
	was, err := os.ReadFile(path)
	if err != nil {
		return Text{}, err
	}
	text := string(was)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		begin, end := fmt.Sprintf(
			"<!-- begin %s: written by relapse record -->",
			name,
		), fmt.Sprintf(
			"<!-- end %s -->",
			name,
		)
		if name == releasesPart && !strings.Contains(text, begin) {
			text = strings.Replace(
				text,
				"\n## Results\n",
				fmt.Sprintf("\n%s\n\n%s\n%s\n\n## Results\n", releasesHeading, begin, end),
				1,
			)
		}
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			errs = append(errs, fmt.Errorf("%s lacks the lines %s and %s", path, begin, end))
			continue
		}
		text = before + begin + "\n\n" + parts[name] + "\n" + end + after
	}
	return Text{Path: path, content: []byte(text), Changed: text != string(was)}, errors.Join(errs...)
}

// candidateTable is the table of candidates in a scenario's README.
func (r Record) candidateTable(known []scenario.CandidateFile) string {
	var rows [][]string
	for _, k := range known {
		doc := k.Spec.Doc
		for _, name := range slices.Sorted(maps.Keys(k.Spec.Set)) {
			doc += fmt.Sprintf("; with %s=%s", name, k.Spec.Set[name])
		}
		rows = append(rows, []string{code(k.Metadata.Name), doc, k.Spec.Right, r.given(k)})
	}
	return table([]string{"candidate", "what it is", "right", "given"}, rows)
}

// resultTable is the table of results in a scenario's README.
func (r Record) resultTable(pairs []scenario.Pair) string {
	var rows [][]string
	for _, g := range r.groups(pairs) {
		row, _ := g.row()
		rows = append(rows, row)
	}
	return table([]string{"pair", "on", "last validated", "result", "in all", "versions"}, rows)
}

// releaseTable is the table of releases in the README of a scenario with a survey.
func releaseTable(o *scenario.Surveyed) string {
	is := func(states ...string) func(string) bool {
		return func(state string) bool { return slices.Contains(states, state) }
	}
	var rows [][]string
	marked := ""
	for _, b := range o.Branches {
		rows = append(rows, []string{b.Name, b.Places(is(scenario.SurveyedBad)), b.Places(is(scenario.SurveyedGood)),
			b.Places(func(state string) bool { return state != scenario.SurveyedBad && state != scenario.SurveyedGood })})
		for _, r := range b.Releases {
			if r.StandIns != "" {
				marked += fmt.Sprintf("%s ran with stand-ins for what can't be had of it: %s.\n", r.Version, r.StandIns)
			}
		}
	}
	return table([]string{"branch", "with the bug", "without it", "not known"}, rows) +
		fmt.Sprintf(
			"\nBy running releases of %s beside pair %s; `%s` says which ran, and which answer as others of their class.\n",
			o.Versions,
			code(o.Pair),
			scenario.SurveyFile,
		) + marked
}

// resultRows are the scenario's rows in the table of all results.
func (r Record) resultRows(pairs []scenario.Pair) [][]string {
	var rows [][]string
	for _, g := range r.groups(pairs) {
		row, last := g.row()
		rows = append(
			rows,
			slices.Concat([]string{r.link()}, row, []string{last.platform(), last.source()}),
		)
	}
	return rows
}

// oracleRow is the scenario's row in the table of all candidates. Its conditions are those of the oracle that most of
// the answers come from.
func (r Record) oracleRow(known []scenario.CandidateFile) []string {
	right := 0
	var others, dates []string
	answers := make([]int, len(r.Oracles))
	for _, k := range known {
		if at := r.lastAnswer(k.Metadata.Name); at >= 0 {
			dates = append(dates, r.Oracles[at].Date)
			answers[at]++
		}
		if r.current(k) {
			right++
		} else {
			others = append(others, fmt.Sprintf("%s: %s", code(k.Metadata.Name), r.given(k)))
		}
	}
	row := []string{
		r.link(),
		fmt.Sprintf("%d of %d", right, len(known)),
		strings.Join(others, "; "),
		"never",
		"",
		"",
	}
	if len(dates) == 0 {
		return row
	}
	first, last := slices.Min(dates), slices.Max(dates)
	if row[3] = last; first != last {
		row[3] = first + " to " + last
	}
	most := r.Oracles[slices.Index(answers, slices.Max(answers))]
	row[3] += fmt.Sprintf(
		", pair %s on %s",
		pairOf(most.Conditions),
		cmp.Or(most.Provider, notSaid),
	)
	row[4], row[5] = most.platform(), most.source()
	return row
}

func (r Record) link() string {
	return fmt.Sprintf("[`%s`](../scenarios/%[1]s/README.md)", r.Scenario)
}
