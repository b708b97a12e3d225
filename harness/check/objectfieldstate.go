package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// judge goes through the moments of a stretch: its beginning, and each at which an object changed.
func (c *ObjectField) judge(q *question, all []values, w bundle.Window) {
	now := map[string]values{}
	looked, absent := false, false
	look := func(at string) {
		n, there := 0, 0
		for _, x := range now {
			if x.met {
				n++
			}
			if !x.gone {
				there++
			}
		}
		met := there > 0 && n >= max(1, c.AtLeast) && (c.AtLeast > 0 || n == there)
		switch {
		case len(now) == 0:
			absent = true
			return
		case !looked || met == c.Ever: // what ever was, and what was ever otherwise, stands
			q.Met = Of(met)
		}
		looked = true
		if met == c.Ever {
			q.Differs = append(q.Differs, at+": "+states(now))
		}
	}
	begun := false
	for _, x := range all {
		if x.at.After(w.End) {
			break
		}
		if x.at.After(w.Start) && !begun {
			begun = true
			look(clock(w.Start))
		}
		if before, ok := now[x.object]; ok && before.fields == x.fields && before.gone == x.gone {
			continue
		}
		now[x.object] = x
		if begun {
			look(clock(x.at))
		}
	}
	if !begun {
		look(clock(w.Start))
	}
	q.Seen = states(now)
	if !looked {
		q.Seen = fmt.Sprintf("no such %s was ever seen by %s", c.Resource, clock(w.End))
	}
	switch {
	case q.Met == Met && c.Ever:
		q.Seen, q.Differs = q.Differs[0], nil
	case q.Met == Met && absent:
		q.Met, q.Differs = NotMet, append(q.Differs, clock(w.Start)+": it was not there")
	}
	q.Differs = few(q.Differs)
}

// states are the objects as they are, a few of them.
func states(now map[string]values) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		x := now[name]
		said := x.fields
		if x.gone {
			said = "gone"
		}
		out = append(out, name+": "+said)
	}
	return strings.Join(few(out), "; ")
}
