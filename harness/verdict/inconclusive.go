package verdict

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WhyInconclusive tells the reader of an Inconclusive verdict where its causes are explained.
const WhyInconclusive = "relapse explain inconclusive says what each cause means and what to do next"

// Cause is one way in which a run ends without an answer.
type Cause struct {
	Says  string // what the verdict or the finding says of it; … stands for what differs from run to run
	Means string // why there is no answer
	See   string // how to see what lies behind it
	Next  string // what to do
}

// CauseGroup is a place in which a verdict names a cause.
type CauseGroup struct {
	Title, About string
	Causes       []Cause
}

// Causes lists all causes of an Inconclusive verdict, from the whole run down to a single check.
func Causes() []CauseGroup {
	return []CauseGroup{
		{"What a run says", "The last sentence of a run that was cut short, or that runs until it is confident.",
			runCauses},
		{"What a trial says", "The last sentence of a run with one trial, and that of each trial in the report. It " +
			"follows from the outcomes of all arms.", trialCauses},
		{"What an arm says", "The reason of an arm in verdict.json and the report. It is the first row of the " +
			"outcome table that fits.", armCauses},
		{"What an unknown check says", "The code of a finding in verdict.json. Beside it, seen says in a sentence " +
			"what was found, and evidence in which files.", codeCauses},
	}
}

// howToRead introduces the groups.
const howToRead = `Inconclusive means that the evidence doesn't answer. It is neither a pass nor a failure: what was
not recorded proves nothing. The verdict names its cause, and after "next:" the next step for this very run.

Read from the top: the verdict says which arm gave no answer, the arm's reason says which checks are unknown, and each
of these has a code. This lists the unknown checks of the last run that decide something:

    jq -r '.arms[] | .trial as $t | .name as $a | .identity, .steady, .baseline, .exposure, .signature, .healed
      | .[]? | select(.met == null) | [$t, $a, .name, .code, .seen] | @tsv' runs/latest/verdict.json

An unknown check matters only where the reason names it.`

// WriteCauses writes the text of relapse explain inconclusive.
func WriteCauses(w io.Writer) error {
	var b strings.Builder
	b.WriteString(howToRead + "\n")
	for _, g := range Causes() {
		fmt.Fprintf(&b, "\n%s\n\n%s\n", strings.ToUpper(g.Title), wrapped("", "", g.About))
		for _, c := range g.Causes {
			fmt.Fprintf(&b, "\n  %s\n%s\n%s\n%s\n", c.Says, wrapped("    means: ", "           ", c.Means),
				wrapped("    see:   ", "           ", c.See), wrapped("    next:  ", "           ", c.Next))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCausesPage writes docs/inconclusive.md.
func WriteCausesPage(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"# Why Inconclusive\n\n`relapse explain inconclusive` says the same: both are written from "+
			"`harness/verdict/inconclusivetexts.go`.\n\n%s\n",
		howToRead,
	)
	for _, g := range Causes() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", g.Title, wrapped("", "", g.About))
		for _, c := range g.Causes {
			fmt.Fprintf(
				&b,
				"\n### `%s`\n\n%s\n%s\n%s\n",
				c.Says,
				wrapped("- It means: ", "  ", c.Means),
				wrapped("- See: ", "  ", c.See),
				wrapped("- Next: ", "  ", c.Next),
			)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pageWidth is how wide the lines of the causes are.
const pageWidth = 120

// wrapped breaks a text into lines. The first begins with first, all others with rest.
func wrapped(first, rest, text string) string {
	var lines []string
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > pageWidth:
			lines = append(lines, line)
			line = rest + word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
