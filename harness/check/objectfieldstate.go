package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// judge goes through the moments of a stretch: its beginning, and each at which an object changed.
func (c *ObjectField) judge(all []values, w bundle.Window) Finding {
	now := map[string]values{}
	var f Finding
	f.Met = Unknown
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
		case !looked:
			f.Met = Of(met)
		case c.Ever && met, !c.Ever && !met:
			f.Met = Of(met)
		}
		looked = true
		if met == c.Ever {
			f.Differs = append(f.Differs, at+": "+states(now))
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
	f.Seen = states(now)
	if f.Met == Met && absent && !c.Ever {
		f.Met = NotMet
		f.Differs = append(f.Differs, clock(w.Start)+": it was not there")
	}
	if !looked {
		f.Seen = fmt.Sprintf("no such %s was ever seen by %s", c.Resource, clock(w.End))
	}
	if c.Ever && f.Met == Met {
		f.Seen = f.Differs[0]
	}
	if f.Met == Met {
		f.Differs = nil
	}
	f.Differs = few(f.Differs)
	return f
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
