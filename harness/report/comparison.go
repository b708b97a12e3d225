package report

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

// Comparison returns runs as one Markdown table, in their order, with a row for each pair of a run. Whoever backports a
// fix to several branches has a run for each, and pastes the table into the pull request. Notes below it say why a row
// has no answer, or what weakens the answer. A run without a verdict has a row, too.
func Comparison(runs []Run) string {
	c := comparison{
		table: printing.Table{
			Empty: "unknown",
			Header: []string{"run", "scenario", "versions", "candidate", "verdict",
				"incident shown", "bundles"},
		},
	}
	for _, r := range runs {
		name := literal(filepath.Base(r.Dir))
		if r.Err != "" {
			c.table.Add(name, "", "", "", "none"+c.note(name, r.Err), "", "")
			continue
		}
		for _, p := range r.Verdict.Pairs {
			c.add(name, r.Verdict.Only(p.Name), p)
		}
	}
	out := c.table.Markdown() + "\nIncident shown: in how many of the trials that count the arm had the incident. " +
		"Bundles: each trial with the first 12 digits of the SHA-256 of its `manifest.json`.\n"
	if len(c.notes) > 0 {
		out += "\n" + strings.Join(c.notes, "\n") + "\n"
	}
	return out
}

// comparison is a table that is being made.
type comparison struct {
	table printing.Table
	notes []string
}

// note adds a note about a run, and returns what refers to it.
func (c *comparison) note(run, text string) string {
	n := len(c.notes) + 1
	c.notes = append(
		c.notes,
		fmt.Sprintf(
			"- note %d, on %s: %s",
			n,
			printing.Escape(run),
			printing.Escape(literal(printing.OneLine(text))),
		),
	)
	return fmt.Sprintf(" (note %d)", n)
}

// add adds the row of a pair. of is its run, with this pair alone.
func (c *comparison) add(run string, of judge.Verdict, p judge.Pair) {
	v := viewOf(of, bare(of))
	about := literal(v.Scenario)
	if len(v.Pairs) > 1 {
		about += ", pair " + literal(p.Name)
	}
	if l := issue(v.Bug); l != "" {
		about += ", " + linkTo(l)
	}
	var versions, made, shown, bundles []string
	for _, a := range p.Arms {
		versions = append(versions, literal(a.Arm+" "+cmp.Or(a.Version, "of unknown version")))
		if a.Role == scenario.Candidate {
			made = append(made, literal(a.String()+programsOf(v, a.Arm)))
		}
	}
	for _, r := range v.Rates {
		shown = append(shown, literal(r.Arm+" "+r.Counted().String()+r.Aside()))
	}
	for _, t := range v.Trials {
		bundles = append(bundles, literal(fmt.Sprintf("%s: %.12s", t.ID, t.Manifest)))
	}
	if len(made) == 0 {
		made = []string{"none"}
	}
	answer := string(v.Verdict.Verdict)
	if v.ExitCode == verdict.ExitInconclusive || v.ExitCode == verdict.ExitError {
		answer += c.note(run, v.whyNone())
	}
	if len(v.Weakens) > 0 {
		answer += c.note(run, "what weakens it: "+strings.Join(v.Weakens, "; "))
	}
	c.table.Add(
		run,
		about,
		strings.Join(versions, ", "),
		strings.Join(made, "; "),
		answer,
		strings.Join(shown, ", "),
		strings.Join(bundles, ", "),
	)
}

// whyNone says why a run has no answer: its sentence, the reasons of the arms that are not as expected, and what to do.
func (v view) whyNone() string {
	why, next := splitNext(v.Sentence)
	for _, b := range v.Builds {
		if b.Telling.Outcome != b.Telling.Expected {
			reason, _ := splitNext(b.Telling.Reason)
			why += fmt.Sprintf(
				"; %s is %s: %s",
				b.Arm,
				b.Telling.Outcome,
				strings.TrimRight(reason, ". \n"),
			)
		}
	}
	if next != "" {
		why += verdict.NextStep + next
	}
	return why
}

// programsOf names the programs that an arm ran, by their digests.
func programsOf(v view, arm string) string {
	var digests []string
	for _, b := range v.Builds {
		for _, d := range b.Digests {
			if b.Arm == arm && !slices.Contains(digests, d) {
				digests = append(digests, d)
			}
		}
	}
	for i, d := range digests {
		digests[i] = fmt.Sprintf("%.12s", d)
	}
	if len(digests) == 0 {
		return ", its program unknown"
	}
	return ", its program " + strings.Join(digests, " and ")
}

// issue returns the link to read of the bug first: an issue's, or else the first of all. It returns "" if no link leads
// to a web page.
func issue(b judge.Bug) string {
	links := slices.DeleteFunc(
		slices.Clone(b.Links),
		func(l string) bool { return address(l) == "" },
	)
	if len(links) == 0 {
		return ""
	}
	i := slices.IndexFunc(links, func(l string) bool { return strings.Contains(l, "/issues/") })
	return links[max(i, 0)]
}

// linkTo returns a link in Markdown to an address that is known to parse.
func linkTo(address string) string {
	u, _ := url.Parse(address)
	return "[" + literal(linkName(address)) + "](" + strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C").Replace(u.String()) + ")"
}

// literal makes Markdown show a text as it is. What would end a table's cell or begin HTML is left to printing.Escape.
func literal(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`).Replace(s)
}
