package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
)

// triedTitle stands above what a judged arm survived.
const triedTitle = "What was tried, and what was not"

// Markdown writes report.md: the verdict, the reason for the outcome of each arm, every check, what happened when, and
// the versions and binaries of the run. trials are the verdict's, as Read returns them.
func Markdown(w io.Writer, of judge.Verdict, trials []Trial) error {
	p, v := printer{w: w}, viewOf(of, trials)
	p.printf("# %s: %s\n\n", v.Scenario, v.Verdict.Verdict)
	p.printf("**%s** (exit %d): %s.\n\n", v.Verdict.Verdict, v.ExitCode, escaped(v.Sentence))
	if !v.StartedAt.IsZero() {
		p.printf(
			"Started %s, took %s, seed %d.\n\n",
			clock(v.StartedAt),
			lasted(v.Seconds),
			v.Seed,
		)
	}
	p.about(v.Verdict)
	p.bullets("What weakens this run", v.Weakens)
	p.bullets(triedTitle, v.Tried)
	if v.Why != "" {
		p.printf("%s.\n\n", escaped(v.Why))
	}
	if v.Repeated {
		p.rates(v.Verdict)
	}
	for _, t := range v.Trials {
		p.printf("## Trial %s, pair %s: %s\n\n", t.ID, t.Pair, t.Verdict)
		p.printf("%s.\n\n", escaped(t.Sentence))
		for _, a := range t.Arms {
			p.arm(a)
		}
		p.built(t)
		p.chart(t.Trial, chartFile(v.Verdict, t.Trial))
		p.loads(t.Trial)
		p.timeline(t)
		p.coverage(t.Trial)
	}
	p.bullets("What was only modelled", v.Modelled)
	p.pairs("Versions", v.Versions)
	p.pairs("Digests (SHA-256 of each arm's binary)", v.Digests)
	if len(v.Timings) > 0 {
		p.printf("## Timings\n\n| stage | seconds |\n|---|---|\n")
		for _, k := range sortedKeys(v.Timings) {
			p.printf("| %s | %.1f |\n", inTable(k), v.Timings[k])
		}
	}
	if p.err != nil {
		return fmt.Errorf("writing %s: %w", ReportFile, p.err)
	}
	return nil
}

// about writes what the bug is, and what each arm was built from.
func (p *printer) about(v judge.Verdict) {
	p.printf("## The bug\n\n%s.\n\n", escaped(strings.TrimRight(v.Bug.Title, ". ")))
	for _, l := range v.Bug.Links {
		p.printf("- [%s](%s)\n", inTable(linkName(l)), l)
	}
	if v.Others != nil {
		p.printf("\n%s.\n", inTable(v.Others.String()))
	}
	for _, pair := range v.Pairs {
		p.printf("\n### Pair %s\n\n", inTable(pair.Name))
		if pair.About != "" {
			p.printf("%s\n\n", inTable(pair.About))
		}
		for _, b := range pair.Arms {
			p.printf("- **%s** (%s): %s\n", inTable(b.Arm), b.Role, inTable(b.String()))
			for _, does := range b.Does {
				p.printf("  - %s\n", inTable(does))
			}
		}
		for _, b := range pair.Arms {
			if b.Text != "" {
				p.printf("\nWhat was changed in %s, [whole](%s):\n\n", inTable(b.Arm), b.Diff)
				p.verbatim("diff", b.Text)
			}
		}
	}
	p.printf("\n")
}

// verbatim writes a text as a block of code.
func (p *printer) verbatim(language, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	p.printf("%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(text, "\n"), fence)
}

func (p *printer) arm(a armView) {
	p.printf("### %s (%s): %s, expected %s\n\n%s.\n\n", a.Name, a.Role, a.Outcome, a.Expected,
		escaped(strings.TrimRight(a.Reason, ". \n")))
	if a.Decisive != "" {
		if a.Asks.Func != "" {
			p.printf(
				"Decided by %s, which asks for `%s`:\n\n",
				inTable(a.DecidedBy),
				what(a.Asks),
			)
		}
		p.verbatim("", a.Decisive)
	}
	p.printf("| list | check | met | seen | wanted | nearly | evidence |\n|---|---|---|---|---|---|---|\n")
	for _, l := range a.All() {
		for _, r := range l.Rows {
			name := l.Name
			if r.Part {
				name += ", any of"
			}
			evidence := r.Evidence
			if n := len(evidence); n > 4 {
				evidence = append(evidence[:3:3], fmt.Sprintf("and %d more", n-3))
			}
			p.printf(
				"| %s | %s | %s | %s | %s | %s | %s |\n",
				inTable(name),
				inTable(r.Name),
				r.Word,
				inTable(r.Seen),
				inTable(r.Wanted),
				inTable(strings.Join(r.Differs, "; ")),
				inTable(strings.Join(evidence, ", ")),
			)
		}
	}
	p.printf("\n")
}

// built writes what each arm was built from, what was changed for it, and which numbers the faults were computed from.
// It also writes which arms were restarted, and which containers ran on their nodes.
func (p *printer) built(t trialView) {
	for _, c := range t.World.Arms {
		p.printf(
			"- arm %s on %s: Go %s, flags `%s`, module graph %s\n",
			inTable(c.Arm),
			inTable(c.Node),
			inTable(c.GoVersion),
			clip(strings.Join(c.Flags, " "), 600),
			inTable(c.Graph),
		)
		for i, b := range c.Before {
			p.printf("  - before that, its build %d with SHA-256 %s\n", i+1, inTable(b.Digest))
			for _, ch := range b.Changes {
				p.printf("    - changed to build it: %s\n", inTable(ch))
			}
		}
		for _, ch := range c.Changes {
			p.printf("  - changed to build it: %s\n", inTable(ch))
		}
		for _, k := range sortedKeys(c.Constants) {
			p.printf("  - constant %s = %d\n", inTable(k), c.Constants[k])
		}
	}
	for _, k := range sortedKeys(t.World.Computed) {
		p.printf("- computed %s: %s\n", inTable(k), inTable(t.World.Computed[k]))
	}
	for _, a := range t.Arms {
		if a.Restarted != "" {
			p.printf("- %s\n", inTable(a.Restarted))
		}
	}
	for _, c := range t.Censuses {
		p.printf(
			"- containers on the node of %s at %s: ran: %s; only reported: %d pods with %d containers (%s)\n",
			inTable(c.Arm),
			clock(c.Time), inTable(strings.Join(c.Ran, ", ")), c.ReportedPods, c.ReportedContainers, inTable(c.ReportedAs))
	}
	p.printf("\n")
}

// timeline writes phases, faults, stages and whatever went wrong, with the times of the monotonic clock.
func (p *printer) timeline(t trialView) {
	p.printf("#### Timeline\n\n| after | type | arm | what |\n|---|---|---|---|\n")
	for _, e := range t.Happened {
		p.printf(
			"| %s | %s | %s | %s |\n",
			e.Mono.Round(100*time.Millisecond),
			e.Type,
			inTable(e.Arm),
			inTable(strings.TrimSpace(e.Stage+" "+e.Message)),
		)
	}
	p.printf("\n")
}

// coverage writes the gaps in the evidence.
func (p *printer) coverage(t Trial) {
	p.printf("#### Coverage\n\n")
	whole := 0
	for _, a := range t.Streams {
		if len(a.Coverage.Gaps) == 0 && a.Coverage.Suppressed == 0 && !a.Coverage.First.IsZero() {
			whole++
			continue
		}
		p.printf("- %s of %s: %s\n", a.Kind, inTable(owner(a)), inTable(coverageOf(a)))
	}
	p.printf("- %d of %d streams have no gap and no suppressed line\n", whole, len(t.Streams))
	for _, a := range t.Failed {
		p.printf("- %s of %s at %s is not there: %s\n", a.Kind, inTable(owner(a)), clock(a.Time),
			inTable(a.Error))
	}
	p.printf("\n")
}

func coverageOf(a bundle.Artifact) string {
	if a.Coverage.First.IsZero() {
		return "nothing was ever received"
	}
	var parts []string
	for _, g := range a.Coverage.Gaps {
		parts = append(
			parts,
			fmt.Sprintf("gap of %s from %s: %s", g.To.Sub(g.From).Round(100*time.Millisecond),
				clock(g.From), g.Reason),
		)
	}
	if a.Coverage.Suppressed > 0 {
		parts = append(
			parts,
			fmt.Sprintf("%d lines suppressed by the source", a.Coverage.Suppressed),
		)
	}
	return strings.Join(parts, "; ")
}

func (p *printer) bullets(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.printf("## %s\n\n", title)
	for _, s := range items {
		p.printf("- %s\n", inTable(s))
	}
	p.printf("\n")
}

func (p *printer) pairs(title string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	p.printf("## %s\n\n| what | value |\n|---|---|\n", title)
	for _, k := range sortedKeys(m) {
		p.printf("| %s | %s |\n", inTable(k), inTable(m[k]))
	}
	p.printf("\n")
}

// inTable makes a text fit a cell of a table.
func inTable(s string) string {
	return strings.NewReplacer("|", "\\|", "\r", "", "\n", " ").Replace(escaped(clip(s, 600)))
}

// escaped writes a text so that Markdown shows it as it is: *v1.Pod and <nil>, too. What stands between backticks is
// code, as the text meant it.
func escaped(s string) string {
	lone := -1
	if strings.Count(s, "`")%2 == 1 { // its partner was cut off
		lone = strings.LastIndexByte(s, '`')
	}
	var out strings.Builder
	code := false
	for i, c := range []byte(s) {
		if c == '`' && i != lone {
			code = !code
		} else if !code && marksUp(s, i) {
			out.WriteByte('\\')
		}
		out.WriteByte(c)
	}
	return out.String()
}

// marksUp reports whether Markdown would take the byte at i for more than itself. Within a word, _ is only itself.
func marksUp(s string, i int) bool {
	var before, after byte
	if i > 0 {
		before = s[i-1]
	}
	if i+1 < len(s) {
		after = s[i+1]
	}
	switch s[i] {
	case '`', '*':
		return true
	case '<':
		return isWord(after) || after != 0 && strings.IndexByte("/!?", after) >= 0
	case '_':
		return !isWord(before) || !isWord(after)
	case '~':
		return after == '~' || before == '~'
	case ']':
		return after == '('
	case '\\':
		return after > ' ' && after < utf8.RuneSelf && !isWord(after)
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// clockForm is how every report writes a time.
const clockForm = "2006-01-02 15:04:05 UTC"

func clock(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(clockForm)
}
