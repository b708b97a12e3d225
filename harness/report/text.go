package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// How wide the lines of the terminal's text are, and how many checks of an arm it has.
const (
	textWidth  = 120
	mostChecks = 8
)

// Text writes what a reader at a terminal needs: a line for each arm, the checks that its outcome rests on, the verdict
// and what to do next. If a pair had several trials, an arm is shown as it was in the trial that says most. report.md
// has the rest. The caller ends the text with LastLine.
func Text(w io.Writer, of judge.Verdict, color bool) error {
	p, v := printer{w: w}, viewOf(of, bare(of))
	p.bug(v.Verdict)
	p.arms(v.Builds)
	why, next := splitNext(v.Sentence)
	for _, b := range v.Builds {
		p.because(b, color)
		if _, own := splitNext(b.Telling.Reason); own != "" && own != next {
			p.printf("    next: %s\n", own)
		}
	}
	if v.Repeated {
		for _, r := range v.Rates {
			p.printf("pair %s, %s: %s\n", r.Pair, r.Arm, r.Sentence)
		}
		if v.Until != nil {
			for _, e := range v.Until.Pairs {
				p.printf("pair %s ended as %s\n", e.Pair, e.String())
			}
		}
	}
	for _, m := range v.Modelled {
		p.printf("modelled: %s\n", clip(m, textWidth-12))
	}
	for _, t := range v.Tried {
		p.printf("%s\n", t)
	}
	for _, d := range v.Weakens {
		p.printf("deviates: %s\n", d)
	}
	p.printf("took: %s\n", lasted(v.Seconds))
	if v.Others != nil {
		p.printf("%s\n", v.Others)
	}
	p.printf(
		"\n%s: %s.\n",
		paint(string(v.Verdict.Verdict), v.ExitCode == verdict.ExitOK, color),
		why,
	)
	if next != "" {
		p.printf("next: %s\n", next)
	}
	if v.Why != "" {
		p.printf("%s\n", v.Why)
	}
	return p.err
}

// bug writes what the run is about, and what each arm was built from.
func (p *printer) bug(v judge.Verdict) {
	p.printf("%s\n", v.Bug)
	for _, pair := range v.Pairs {
		if pair.About != "" {
			p.printf("%s: %s\n", pair.Name, clip(pair.About, textWidth*2))
		}
		var rows [][]string
		for _, b := range pair.Arms {
			rows = append(rows, []string{b.Arm, b.String()})
		}
		p.columns("  ", rows)
	}
	p.printf("\n")
}

// arms writes a line for each arm: its outcome, and which of its lists of checks are met.
func (p *printer) arms(builds []buildView) {
	rows := [][]string{
		strings.Fields(
			"PAIR ARM ROLE OUTCOME EXPECTED IDENTITY STEADY BASELINE EXPOSURE SIGNATURE " +
				"HEALED",
		),
	}
	for _, b := range builds {
		row := []string{
			cmp.Or(b.Pair, "-"),
			b.Arm,
			b.Role,
			b.Outcomes(),
			string(b.Telling.Expected),
		}
		for _, l := range b.Telling.Lists {
			row = append(row, l.word())
		}
		rows = append(rows, row)
	}
	p.columns("", rows)
	p.printf("\n")
}

// because writes why an arm has its outcome: a sentence, the checks that show it, and the first lines of the stack or
// log that shows what is wrong with the arm.
func (p *printer) because(b buildView, color bool) {
	a := b.Telling
	why, _ := splitNext(a.Reason)
	if len(a.Because) > 0 {
		why, _, _ = strings.Cut(why, ": ")
	}
	in := ""
	if b.Trials > 1 {
		in = fmt.Sprintf(" in trial %s of pair %s", a.Trial, b.Pair)
	}
	p.printf(
		"%s is %s%s: %s.\n",
		a.Name,
		paint(string(a.Outcome), a.Outcome == a.Expected, color),
		in,
		clip(why, 300),
	)
	var rows [][]string
	for _, f := range a.Because[:min(len(a.Because), mostChecks)] {
		rows = append(rows, []string{f.Met.String(), f.Name, f.Seen})
	}
	p.columns("  ", rows)
	if more := len(a.Because) - mostChecks; more > 0 {
		p.printf("  and %d more, in %s\n", more, ReportFile)
	}
	if a.Outcome != verdict.NotReproduced {
		p.stack(a)
	}
	if a.Restarted != "" {
		p.printf("%s\n", a.Restarted)
	}
}

// mostStack is how many lines of a decisive stack the terminal gets.
const mostStack = 6

// stack writes the beginning of the stack or log that decided, and in any case the call that the check asks for, which
// is marked.
func (p *printer) stack(a armView) {
	if a.Decisive == "" {
		return
	}
	for _, l := range excerpt(a.Decisive, a.Asks, mostStack) {
		mark := "    "
		if l.Hit {
			mark = "  > "
		}
		p.printf("%s%s\n", mark, l.Text)
	}
}

// columns writes rows in aligned columns. The last column is cut to fit the line.
func (p *printer) columns(indent string, rows [][]string) {
	widths := map[int]int{}
	for _, row := range rows {
		for i, c := range row[:len(row)-1] {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, row := range rows {
		line, last := indent, len(row)-1
		for i, c := range row[:last] {
			line += fmt.Sprintf("%-*s  ", widths[i], c)
		}
		p.printf("%s%s\n", line, clip(strings.ReplaceAll(row[last], "\n", " "),
			max(40, textWidth-2-utf8.RuneCountInString(line))))
	}
}

// printer writes text and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func paint(s string, good, color bool) string {
	switch {
	case !color:
		return s
	case good:
		return "\x1b[32m" + s + "\x1b[0m"
	}
	return "\x1b[31m" + s + "\x1b[0m"
}

// clip shortens a text to about n bytes, at a word. verdict.json has the whole text. The next step, with which a reason
// may end, stays.
func clip(s string, n int) string {
	why, next := splitNext(s)
	if next != "" {
		return clip(why, n) + verdict.NextStep + next
	}
	s = strings.TrimRight(s, ".\n ")
	if len(s) <= n {
		return s
	}
	cut := strings.ToValidUTF8(s[:n], "")
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut + " …"
}

// splitNext splits a reason into the reason itself and the next step that it may end with.
func splitNext(s string) (why, next string) {
	i := strings.LastIndex(s, verdict.NextStep)
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimRight(s[i+len(verdict.NextStep):], ".\n ")
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
