package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/kube-relapse/relapse/harness/verdict"
)

// Text writes the verdict for a terminal: a table of the arms, one sentence for each that says why, with the decisive stack and line,
// and the verdict. The caller ends it with LastLine.
func Text(w io.Writer, of Verdict, color bool) error {
	v := viewOf(of)
	var arms []armView
	for _, t := range v.Trials {
		arms = append(arms, t.Arms...)
	}
	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "TRIAL\tARM\tROLE\tOUTCOME\tEXPECTED\tIDENTITY\tSTEADY\tBASELINE\tEXPOSURE\tSIGNATURE\tHEALED\n")
	for _, a := range arms {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s", a.Trial, a.Name, a.Role, a.Outcome, a.Expected)
		for _, l := range a.Lists {
			fmt.Fprintf(tw, "\t%s", l.Met)
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	p := printer{w: w}
	p.say("%s\n", table.String())
	for _, a := range arms {
		p.say("%s is %s: %s.\n", a.Name, paint(string(a.Outcome), a.Outcome == a.Expected, color), clip(a.Reason, 700))
		for line := range strings.Lines(a.Excerpt) {
			p.say("    %s\n", strings.TrimRight(line, "\r\n"))
		}
	}
	for _, a := range arms {
		if a.Restarted != "" {
			p.say("%s\n", a.Restarted)
		}
	}
	for _, a := range arms {
		for _, f := range a.Info {
			p.say("information (decides nothing): %s: %s is %s: %s\n", a.Name, f.Name, f.Met, clip(f.Seen, 300))
		}
	}
	if v.Repeated {
		for _, r := range v.Rates {
			p.say("pair %s, %s: %s\n", r.Pair, r.Arm, r.Sentence)
		}
		if v.Until != nil {
			for _, e := range v.Until.Pairs {
				p.say("pair %s ended as %s\n", e.Pair, e.said())
			}
		}
	}
	for _, m := range v.Modelled {
		p.say("modelled: %s\n", m)
	}
	for _, d := range v.Deviates {
		p.say("deviates: %s\n", d)
	}
	p.say("\n%s: %s.\n", paint(string(v.Verdict.Verdict), v.ExitCode == verdict.ExitOK, color), v.Sentence)
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) say(format string, args ...any) {
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

// clip shortens a text at a word; the whole of it is in verdict.json. The next step, with which a reason may end, stays.
func clip(s string, n int) string {
	if i := strings.LastIndex(s, verdict.NextStep); i >= 0 {
		return clip(s[:i], n) + strings.TrimRight(s[i:], ".\n ")
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

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
