package survey

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/internal/printing"
)

// WriteText writes the table, one line for each release that is known or was asked for, and the answers below.
func (r *Record) WriteText(w io.Writer, width int) error {
	rows := r.Rows()
	_, err := fmt.Fprintf(w, "%s: %s of %s, beside the arms of pair %s\n\n%s\n%s\n\n%s", r.Scenario, r.Subject, r.Versions, r.Pair,
		tableOf(rows).Fit(width), strings.Join(Sentences(rows), "\n"), r.howMany(rows))
	return err
}

// WriteMarkdown writes a comment for an issue or a cherry-pick: the answers, which branches lack the fix, and the table.
func (r *Record) WriteMarkdown(w io.Writer) error {
	rows := r.Rows()
	unfixed, unknown := Unfixed(rows)
	lacking := "No branch of which something is known lacks the fix."
	if len(unfixed) > 0 {
		lacking = "Without the fix: " + strings.Join(unfixed, ", ") + "."
	}
	if len(unknown) > 0 {
		lacking += " Nothing is known of " + strings.Join(unknown, ", ") + "."
	}
	_, err := fmt.Fprintf(
		w,
		"**%s**: which releases have it, by running them\n\n- %s\n\n%s\n\n%s\n%s",
		r.Scenario,
		strings.Join(Sentences(rows), "\n- "),
		lacking,
		tableOf(rows).Markdown(),
		r.howMany(rows),
	)
	return err
}

func tableOf(rows []Row) printing.Table {
	t := printing.Table{
		Empty:  "-",
		Header: []string{"branch", "release", "class", "answer", "why"},
	}
	for _, row := range rows {
		for _, c := range row.Cells {
			class := ""
			if c.Class > 0 {
				class = fmt.Sprint(c.Class)
			}
			why := c.Why
			if c.StandIns != "" {
				why = strings.TrimPrefix(why+"; built with "+c.StandIns, "; ")
			}
			t.Add(row.Branch, c.Version, class, c.Text(), why)
		}
	}
	return t
}

// howMany says how much of the answer rests on runs.
func (r *Record) howMany(rows []Row) string {
	ran, all, seconds := 0, 0, 0.0
	for _, row := range rows {
		for _, c := range row.Cells {
			all++
			if c.Of > 0 {
				ran++
			}
		}
	}
	runs, controlled := 0, 0
	counted := map[string]bool{} // by folder: releases that shared a trial have the same
	for _, of := range r.Runs {
		for _, one := range of {
			if one.Dir != "" && counted[one.Dir] {
				continue
			}
			counted[one.Dir] = true
			seconds += one.Seconds
			runs += count(one.Result != Unbuildable)
			controlled += count(one.Controls)
		}
	}
	return fmt.Sprintf("%d of %d releases ran, in %s; the controls were as expected in %d of %d trials. The releases are of %d classes by %s, and of %d with what these import. %s Seed %d.\n",
		ran, all, (time.Duration(seconds) * time.Second), controlled, runs, r.Classes, Packages{Paths: r.Packages, From: r.Found}.Describe(), r.Near, r.Tried(), r.Seed)
}
