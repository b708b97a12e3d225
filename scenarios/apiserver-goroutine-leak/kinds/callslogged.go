package kinds

import (
	"regexp"
	"strconv"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// callsLogged counts the calls of the window by their log lines. From the object that a line names follows how many
// items were left.
func callsLogged(
	q *question.Question,
	lines logs.LogLines,
	name string,
	moreThan int,
) (out calls) {
	load, path, err := question.LoadOf(q, name)
	if err != nil {
		return calls{doubt: err}
	}
	l := lines.Find(q)
	out = calls{items: load.Objects + alsoListed, paths: append([]string{path}, l.Paths...), doubt: l.Doubt}
	re, err := lines.Compile()
	if err != nil {
		out.doubt = check.Doubt(check.BadCheck, "%w", err)
		return out
	}
	for _, about := range collections(l.Found, name) {
		lo, hi := out.items, -1 // the fewest and the most items left, by the lines about this collection
		for _, line := range about {
			text := re.FindStringSubmatch(line.Text)[re.SubexpIndex("index")]
			index, err := strconv.Atoi(text)
			if err != nil || index >= load.Objects {
				out.doubt = check.Doubt(
					check.NotConclusive,
					"a line of %s names object %q, and load %s made %d",
					question.Clock(line.Time),
					text,
					name,
					load.Objects,
				)
				continue
			}
			left := out.items - (index + 1)
			lo, hi = min(lo, left), max(hi, left)
			out.most++
			if left > moreThan {
				out.upto++
			}
		}
		if hi < 0 {
			continue
		}
		if out.n == 0 {
			out.lo, out.hi = lo, hi
		}
		out.n, out.lo, out.hi = out.n+1, min(out.lo, lo), max(out.hi, hi)
		if lo > moreThan { // any of the lines may be the call's last
			out.over++
		}
	}
	return out.limitedToLoad(load, q.Window)
}

// collections groups log lines by the collection of the load that they name, in the order in which the log first names
// each collection. Lines that name no collection form one group.
func collections(lines []bundle.LogLine, load string) (out [][]bundle.LogLine) {
	namespace := regexp.MustCompile(`relapse-` + regexp.QuoteMeta(load) + `-[0-9]+`)
	at := map[string]int{}
	for _, l := range lines {
		name := namespace.FindString(l.Text)
		i, have := at[name]
		if !have {
			i, at[name] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], l)
	}
	return out
}

// limitedToLoad returns c with each count of calls limited to the calls that the load made in a window. There is no
// limit for the namespace controller: nobody knows how often it tried again.
func (c calls) limitedToLoad(load bundle.Load, w bundle.Window) calls {
	if load.Way == bundle.ByNamespaceController {
		return c
	}
	made := 0
	for _, r := range load.Rounds {
		if question.Contains(w, r.Start) {
			made += r.Calls
		}
	}
	for _, n := range []*int{&c.n, &c.most, &c.over, &c.upto} {
		*n = min(*n, made)
	}
	return c
}
