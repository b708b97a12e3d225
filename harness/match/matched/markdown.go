package matched

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/match"
	"github.com/kube-relapse/relapse/internal/printing"
)

// markdown writes a result for a ticket: the answers in a table, the evidence for incidents that are met or suspected,
// and then what would settle the others.
func markdown(b *bytes.Buffer, r match.Result) {
	t := printing.Table{Header: []string{"incident", "answer", "why"}}
	known, unknown := recognised(r)
	for _, i := range known {
		t.Add("`"+i.Name+"`", "**"+i.Word()+"**", i.Why)
	}
	fmt.Fprint(b, "## Known incidents\n\n")
	if len(known) > 0 {
		fmt.Fprintf(b, "%s\n", t.Markdown())
	}
	if len(unknown) > 0 {
		fmt.Fprintf(b, "%s: `%s`.\n", unrecognised, strings.Join(unknown, "`, `"))
	}
	for _, i := range r.Incidents {
		if i.Met == check.True || i.Suspected {
			incident(b, i)
		}
	}
	open := 0
	for _, i := range r.Incidents {
		if i.Settle == "" || !i.Recognised() && i.Answer == match.Unknown {
			continue
		}
		if open++; open == 1 {
			fmt.Fprint(b, "\n## What would settle it\n\n")
		}
		fmt.Fprintf(b, "- `%s` is %s:\n%s", i.Name, i.Word(), fenced("  ", i.Settle))
	}
	if all := notes(r.Unexplained); len(all) > 0 {
		fmt.Fprint(b, "\n## Unexplained\n\n")
		for _, n := range all {
			fmt.Fprintf(b, "- %s\n", printing.Escape(n.Says))
			if len(n.Lines) > 0 {
				fmt.Fprint(b, fenced("  ", strings.Join(n.Lines, "\n")))
			}
		}
	}
	fmt.Fprintf(b, "\n## Read\n\n%s.\n\n", printing.Escape(inputs(r.Inputs)))
	for _, lacks := range lacking(r.Inputs) {
		fmt.Fprintf(b, "- %s\n", printing.Escape(lacks))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(
			b,
			"- problem: `%s`: %s\n",
			printing.Escape(p.Path),
			printing.Escape(p.Message),
		)
	}
}

func incident(b *bytes.Buffer, i match.Incident) {
	fmt.Fprintf(b, "\n## %s: %s\n\n%s.\n\n", i.Name, i.Word(), strings.TrimRight(i.Title, "."))
	if i.Fixed != "" {
		fmt.Fprintf(b, "- what to do: it is fixed in %s\n", i.Fixed)
	}
	if i.Prove != "" {
		fmt.Fprintf(b, "- on that very version: `%s`\n", i.Prove)
	}
	for _, ref := range i.References {
		fmt.Fprintf(b, "- <%s>\n", ref)
	}
	for _, j := range i.Subjects {
		if j.Met != check.True && !j.Suspected {
			continue
		}
		fmt.Fprintf(
			b,
			"\n### %s %s\n\n%s.\n\n",
			printing.Escape(j.Place),
			j.Version,
			printing.Escape(j.Why),
		)
		for _, s := range j.Signs {
			if s.Met != check.True && !s.Likely {
				continue
			}
			fmt.Fprintf(
				b,
				"- `%s` (%s): %s. %s\n",
				s.Name,
				s.Is,
				printing.Escape(s.Seen),
				printing.Escape(strings.Join(places(s.Where), ", ")),
			)
			if s.Detail != "" {
				fmt.Fprint(b, fenced("  ", s.Detail))
			}
		}
	}
}

// fenced returns a text unchanged but indented, in a fence that the text doesn't contain.
func fenced(indent, s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return indent + fence + "\n" + indent + strings.ReplaceAll(
		s,
		"\n",
		"\n"+indent,
	) + "\n" + indent + fence + "\n"
}
