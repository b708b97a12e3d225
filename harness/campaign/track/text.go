package track

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/printing"
)

// group is all results of the same versions of a pair on one provider with the same settings, in the order of their
// dates.
type group struct {
	pair, provider, versions string
	runs                     []Run
}

// groups sorts the runs of a record by pair, the scenario's order, provider and versions.
func (r Record) groups(pairs []scenario.Pair) []group {
	var out []group
	for _, run := range r.Runs {
		is := group{
			pair:     pairOf(run.Conditions),
			provider: run.Provider,
			versions: versions(run.Arms),
		}
		i := slices.IndexFunc(out, func(g group) bool {
			return g.pair == is.pair && g.provider == is.provider && g.versions == is.versions
		})
		if i < 0 {
			i = len(out)
			out = append(out, is)
		}
		out[i].runs = append(out[i].runs, run)
	}
	order := func(g group) int {
		i := slices.IndexFunc(
			pairs,
			func(p scenario.Pair) bool { return p.Name == g.runs[0].Pair },
		)
		if i < 0 {
			return len(pairs)
		}
		return i
	}
	slices.SortFunc(out, func(a, b group) int {
		return cmp.Or(
			order(a)-order(b),
			cmp.Compare(a.pair, b.pair),
			cmp.Compare(a.provider, b.provider),
			cmp.Compare(a.versions, b.versions),
		)
	})
	return out
}

// last returns the newest run that was validated, with what came after it; ok is false if none ever was. Then last is
// the newest run.
func (g group) last() (last Run, later map[string]int, ok bool) {
	later = map[string]int{}
	for _, run := range slices.Backward(g.runs) {
		if run.Verdicts[validated] > 0 {
			return run, later, true
		}
		for verdict, n := range run.Verdicts {
			later[verdict] += n
		}
	}
	return g.runs[len(g.runs)-1], nil, false
}

// row returns what both tables of results have of a group: pair, provider, date, result, all results and versions.
func (g group) row() (row []string, last Run) {
	last, later, ok := g.last()
	all := map[string]int{}
	for _, run := range g.runs {
		for verdict, n := range run.Verdicts {
			all[verdict] += n
		}
	}
	date, result := last.Date, counts(last.Verdicts)
	if !ok {
		date, result = "never", result+" on "+last.Date
	}
	if len(later) > 0 {
		result += "; since then " + counts(later)
	}
	return []string{
		g.pair,
		cmp.Or(g.provider, notSaid),
		date,
		result,
		counts(all),
		cmp.Or(g.versions, notSaid),
	}, last
}

// counts returns "Validated 4 of 5, Inconclusive 1 of 5", the most frequent first.
func counts[K ~string](of map[K]int) string {
	total := 0
	for _, n := range of {
		total += n
	}
	var parts []string
	for _, k := range slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		if of[a] != of[b] {
			return of[b] - of[a]
		}
		return strings.Compare(string(a), string(b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d of %d", k, of[k], total))
	}
	return strings.Join(parts, ", ")
}

// versions returns the versions of the vulnerable and the fixed arm, once if they are the same; "" if neither is known.
func versions(arms map[string]string) string {
	v, f := arms[scenario.Vulnerable], arms[scenario.Fixed]
	if v == f {
		return v
	}
	return cmp.Or(v, notSaid) + ", " + cmp.Or(f, notSaid)
}

// pairOf returns the pair with what was run in another way than the scenario says.
func pairOf(c Conditions) string {
	pair := notSaid
	if c.Pair != "" {
		pair = code(c.Pair)
	}
	if c.Full {
		pair += " with --full"
	}
	return pair + settings(c.Set)
}

func settings(set map[string]string) string {
	var out string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out += fmt.Sprintf(", %s=%s", name, set[name])
	}
	return out
}

// platform returns the machine and what the clusters ran on.
func (c Conditions) platform() string {
	var parts []string
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add("Kubernetes %s", c.Kubernetes)
	add("%s node image", c.NodeImage)
	add("%s", c.Engine)
	add("Linux %s", c.Linux)
	if c.Cores > 0 {
		parts = append(parts, fmt.Sprintf("%d cores", c.Cores))
	}
	return strings.Join(parts, ", ")
}

// source returns which version of relapse ran it, or where else the result is from.
func (c Conditions) source() string {
	if c.From != "" {
		return c.From
	}
	return c.Relapse
}

// lastAnswer returns which of the oracles a candidate gave its newest answer to; -1 if there is none.
func (r Record) lastAnswer(candidate string) int {
	for i, o := range slices.Backward(r.Oracles) {
		if slices.ContainsFunc(o.Answers, func(a Answer) bool { return a.Candidate == candidate }) {
			return i
		}
	}
	return -1
}

// answers returns what a candidate gave as it is now, the newest answer last.
func (r Record) answers(k scenario.CandidateFile) (out []Answer) {
	for _, o := range r.Oracles {
		for _, a := range o.Answers {
			if a.Candidate == k.Metadata.Name && !a.Changed && a.Right == k.Spec.Right {
				out = append(out, a)
			}
		}
	}
	return out
}

// countWrong returns how many answers were wrong, or right by luck.
func countWrong(all []Answer) (n int) {
	for _, a := range all {
		if a.Grade == campaign.Wrong || a.Grade == campaign.ByLuck {
			n++
		}
	}
	return n
}

// current reports whether a candidate's newest answer is right, and none was wrong since it is as it is now.
func (r Record) current(k scenario.CandidateFile) bool {
	all := r.answers(k)
	return len(all) > 0 && all[len(all)-1].Grade == campaign.Right && countWrong(all) == 0
}

// given says what a candidate gave as it is now. A newer answer that is right doesn't hide one that was wrong.
func (r Record) given(k scenario.CandidateFile) string {
	all := r.answers(k)
	switch {
	case r.lastAnswer(k.Metadata.Name) < 0:
		return "none recorded"
	case len(all) == 0:
		return "not run yet as it is now"
	}
	last := all[len(all)-1]
	if wrong := countWrong(all); wrong > 0 {
		given := map[string]int{}
		for _, a := range all {
			for _, outcome := range a.Given {
				given[outcome]++
			}
		}
		return fmt.Sprintf("%s; wrong in %d of %d oracles", counts(given), wrong, len(all))
	}
	outcomes := strings.Join(slices.Compact(slices.Sorted(slices.Values(last.Given))), ", ")
	switch {
	case last.Grade == campaign.Right:
		return outcomes
	case outcomes == "":
		return string(last.Grade)
	}
	return string(last.Grade) + ": " + outcomes
}

// table returns a Markdown table, or a sentence if it has no rows.
func table(head []string, rows [][]string) string {
	if len(rows) == 0 {
		return "There is none yet.\n"
	}
	return printing.Table{Header: head, Rows: rows}.Markdown()
}

// notSaid stands for what nobody knows any more.
const notSaid = "not said"

func code(s string) string { return "`" + s + "`" }
