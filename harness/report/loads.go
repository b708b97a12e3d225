package report

import (
	"fmt"
	"strings"
	"time"
)

// loads writes what was asked of the cluster, how fast, and what the cluster answered.
func (p *printer) loads(t Trial) {
	if len(t.Loads) == 0 {
		return
	}
	p.printf("#### Loads\n\n")
	for _, l := range t.Loads {
		what := fmt.Sprintf("%d objects of %d bytes in each namespace", l.Objects, l.Bytes)
		if l.Objects == 0 {
			what = fmt.Sprintf("%d bytes in each request", l.Bytes)
		}
		p.printf(
			"- %s in %s, by %s: %s; answers: %s\n",
			inTable(l.Name),
			inTable(l.Arm),
			inTable(l.Way),
			what,
			inTable(codes(l.Codes)),
		)
	}
	p.printf(
		"\n| load | arm | round | start | calls | sent in | rate achieved | rate wanted | took effect after | "+
			"last answer after |\n|%s\n",
		strings.Repeat("---|", 10),
	)
	for _, l := range t.Loads {
		for _, r := range l.Rounds {
			wanted := fmt.Sprintf("%.1f/s", r.Wanted)
			if r.Wanted == 0 {
				wanted = "all at once"
			}
			p.printf(
				"| %s | %s | %d | %s | %d | %s | %.1f/s | %s | %s | %s |\n",
				inTable(l.Name),
				inTable(l.Arm),
				r.Round,
				clock(r.Start),
				r.Calls,
				since(r.Start, r.Sent),
				r.Rate,
				wanted,
				since(r.Start, r.Began),
				since(r.Start, r.End),
			)
		}
	}
	p.printf("\n")
}

// since returns the time from the start of a round to a later moment, "never" if the moment never came.
func since(start, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%.2f s", t.Sub(start).Seconds())
}

// codes lists response codes with how many calls got each.
func codes(m map[string]int) string {
	if len(m) == 0 {
		return "none"
	}
	var out []string
	for _, k := range sortedKeys(m) {
		out = append(out, fmt.Sprintf("%d x %s", m[k], k))
	}
	return strings.Join(out, ", ")
}
