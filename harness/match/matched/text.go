// Package matched writes the result of relapse match: for a terminal, for a ticket and as a page.
package matched

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/internal/printing"
)

// Options say what a text has.
type Options struct {
	Explain bool // the evidence for each sign, in place of what is unexplained
	Settle  bool // the command that would settle each unknown
}

// Write writes a result in a form: text, markdown or html. The options are those of the text. Write redacts nothing.
func Write(b *bytes.Buffer, r match.Result, form printing.Format, o Options) error {
	switch form {
	case printing.HTML:
		return page(b, r)
	case printing.Markdown:
		markdown(b, r)
	default:
		text(b, r, o)
	}
	return nil
}

// text writes a result for a terminal: the answers, what to do about those that are met or suspected, and then the rest.
func text(b *bytes.Buffer, r match.Result, o Options) {
	t := printing.Table{Header: []string{"incident", "answer", "why"}}
	known, unknown := recognised(r)
	for _, i := range known {
		t.Add(i.Name, i.Word(), i.Why)
	}
	if len(known) > 0 {
		b.WriteString(t.Text())
	}
	if len(unknown) > 0 {
		fmt.Fprintf(b, "%s: %s\n", unrecognised, strings.Join(unknown, ", "))
	}
	for _, i := range r.Incidents {
		if o.Explain {
			explained(b, i)
		} else if i.Answer == match.Met || i.Answer == match.Suspected {
			brief(b, i)
		}
		if i.Settle != "" && (o.Settle || o.Explain || i.Answer == match.Suspected) {
			fmt.Fprintf(
				b,
				"\n%s is %s; this would settle it:\n  %s\n",
				i.Name,
				i.Word(),
				i.Settle,
			)
		}
		if i.Prove != "" {
			fmt.Fprintf(b, "\n%s on that very version:\n  %s\n", i.Name, i.Prove)
		}
	}
	if !o.Explain {
		unexplained(b, r.Unexplained)
	}
	fmt.Fprintf(b, "\nread: %s\n", inputs(r.Inputs))
	for _, lacks := range lacking(r.Inputs) {
		fmt.Fprintf(b, "  %s\n", lacks)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(b, "problem: %s: %s\n", p.Path, p.Message)
	}
}

// unrecognised is why incidents are unknown of which recognised returns the names only.
const unrecognised = "unknown, because nothing here is known to be of their components"

// recognised splits the incidents of a result: those that the evidence says something of, and the names of the others.
// One incident alone is never left to its name.
func recognised(r match.Result) (known []match.Incident, unknown []string) {
	for _, i := range r.Incidents {
		if i.Answer == match.Unknown && len(r.Incidents) > 1 && !i.Recognised() {
			unknown = append(unknown, i.Name)
		} else {
			known = append(known, i)
		}
	}
	return known, unknown
}

// maxDecisive is how many lines of the evidence the first screen has for a sign.
const maxDecisive = 6

// brief writes what a reader needs first of an incident that is met or suspected: of which process, the lines that show
// it, the fix and where to read on.
func brief(b *bytes.Buffer, i match.Incident) {
	fmt.Fprintf(b, "\n%s: %s: %s\n", i.Name, i.Word(), i.Title)
	for _, j := range i.Subjects {
		if j.Met != check.True && !j.Suspected {
			continue
		}
		whose := j.Whose
		if whose == "" {
			whose = "nothing shows of which program"
		}
		fmt.Fprintf(b, "  process: %s\n", whose)
		if j.Version != "" {
			fmt.Fprintf(b, "  version: %s\n", j.Version)
		}
		for _, s := range j.Signs {
			if s.Met != check.True && !s.Likely {
				continue
			}
			fmt.Fprintf(b, "  %s (%s) at %s\n", s.Name, s.Is, strings.Join(places(s.Where), ", "))
			if s.Detail != "" {
				lines := strings.Split(strings.TrimSpace(s.Detail), "\n")
				fmt.Fprintf(b, "      %s\n", strings.Join(first(lines, maxDecisive), "\n      "))
			}
			if s.Is == "decisive" { // the others add nothing
				break
			}
		}
	}
	if i.Fixed != "" {
		fmt.Fprintf(b, "  what to do: it is fixed in %s\n", i.Fixed)
	}
	for _, ref := range first(i.References, 2) {
		fmt.Fprintf(b, "  %s\n", ref)
	}
}

// places returns each place once.
func places(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

func explained(b *bytes.Buffer, i match.Incident) {
	fmt.Fprintf(b, "\n%s\n", i.Title)
	for _, ref := range i.References {
		fmt.Fprintf(b, "  %s\n", ref)
	}
	if i.Fixed != "" {
		fmt.Fprintf(b, "  the fix is in %s\n", i.Fixed)
	}
	for _, j := range i.Subjects {
		fmt.Fprintf(b, "\n%s %s: %s: %s\n", j.Place, j.Version, j.Met, j.Why)
		for _, s := range j.Signs {
			fmt.Fprintf(b, "  %s (%s): %s: %s\n    %s\n", s.Name, s.Is, s.Met, s.Seen, s.Ground)
			if s.Met == check.Unknown {
				continue
			}
			for _, at := range s.Where {
				fmt.Fprintf(b, "    at %s\n", at)
			}
			if s.Detail != "" {
				fmt.Fprintf(b, "      %s\n", strings.ReplaceAll(s.Detail, "\n", "\n      "))
			}
		}
	}
}

func unexplained(b *bytes.Buffer, u match.Unexplained) {
	all := notes(u)
	if len(all) > 0 {
		fmt.Fprint(b, "\nunexplained:\n")
	}
	for _, n := range all {
		fmt.Fprintf(b, "  %s\n", n.Says)
		for _, l := range n.Lines {
			fmt.Fprintf(b, "    %s\n", l)
		}
	}
}

// note is something that stands out, in words.
type note struct {
	Says  string
	Lines []string // frames, or the first line
}

func notes(u match.Unexplained) (out []note) {
	group := func(g match.Group, what string) note {
		return note{fmt.Sprintf("%d goroutines%s%s in %s", g.Count, state(g.State, g.Minutes), what, g.Where), g.Frames}
	}
	for _, c := range u.Compared {
		out = append(out, compared(c)...)
	}
	if n := len(u.AsUsual); n > 0 {
		out = append(
			out,
			note{
				fmt.Sprintf("nothing unusual beside healthy processes: %d dumps", n),
				first(u.AsUsual, 3),
			},
		)
	}
	for _, g := range u.Goroutines {
		out = append(out, group(g, ""))
	}
	for _, g := range u.Running {
		out = append(out, group(g, " that run or could"))
	}
	for _, r := range u.Restarts {
		says := fmt.Sprintf("%s of %s restarted %d times", r.Container, r.Place, r.Restarts)
		if !r.At.IsZero() {
			says += fmt.Sprintf(
				", the last time after %s with exit code %d at %s",
				r.Reason,
				r.ExitCode,
				r.At.UTC().Format("2006-01-02 15:04:05"),
			)
		}
		out = append(out, note{says, nil})
	}
	for _, w := range u.Warnings {
		out = append(
			out,
			note{
				fmt.Sprintf("%d warnings of %s about %s", w.Count, w.Reason, w.About),
				[]string{w.Message},
			},
		)
	}
	for _, l := range u.Loops {
		says := fmt.Sprintf(
			"%d of %d lines of %s were logged at %s",
			l.Lines,
			l.Of,
			l.Where,
			l.At,
		)
		out = append(out, note{says, []string{l.First}})
	}
	return out
}

// compared says what a dump has that healthy processes don't, and which processes these were.
func compared(c match.Comparison) (out []note) {
	for i, u := range c.Unusual {
		at := u.At
		if !strings.HasPrefix(at, "created by ") {
			at = "at " + at
		}
		says := fmt.Sprintf(
			"unusual: %d goroutines%s %s, of which a healthy process has %s",
			u.Count,
			state(u.State, u.Minutes),
			at,
			atMost(u.Usual),
		)
		if i == 0 {
			says += fmt.Sprintf(", in %s (beside %s", c.Where, c.With)
			if c.Differs != "" {
				says += "; but " + c.Differs
			}
			says += ")"
		}
		if u.State != "" && u.Minutes == 0 {
			says += ", which may be passing"
		}
		out = append(out, note{says, u.Frames})
	}
	return out
}

// state says what goroutines wait for and for how long, as far as their dump says.
func state(s string, minutes int) string {
	switch {
	case s == "":
		return ""
	case minutes > 0:
		return fmt.Sprintf(" [%s, up to %d minutes]", s, minutes)
	}
	return " [" + s + "]"
}

func atMost(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("at most %d", n)
}

func first(all []string, n int) []string { return all[:min(len(all), n)] }

// inputs names the files that were read, or only counts them if there are many.
func inputs(all []match.Input) string {
	if len(all) > 6 {
		return fmt.Sprintf("%d files; -o json lists them", len(all))
	}
	var out []string
	for _, i := range all {
		out = append(out, i.Path+" as "+i.As)
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "; ")
}

// lacking says what the forms that were read can't hold. Each form is named once.
func lacking(all []match.Input) (out []string) {
	for _, i := range all {
		form, _, _ := strings.Cut(i.As, " ")
		if said := strings.TrimRight(form, ",") + ": " + i.Lacks; i.Lacks != "" && !slices.Contains(out, said) {
			out = append(out, said)
		}
	}
	return out
}
