package check

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	register(kind{
		Name: "goroutinesBack",
		Doc: "No more goroutines are left than the baseline had, whatever the incident is.\n\n" +
			"Goroutines with the same entry function and the same creator form a group. A group counts by how many " +
			"goroutines every one of the last dumps shows above the most that the baseline had. Goroutines that wait " +
			"to send or for a lock have no reason to stay: three of them in all are too many. Others come and go " +
			"with clients: a group may grow by up to seven, or by less than a quarter. This check is part of the " +
			"common health that every arm is asked for. A scenario can leave it out with health.without.",
		Example: "name: as-many-goroutines\nkind: goroutinesBack\nphase: recovery\nspec:\n  dumps: 3\n",
		New:     func() Check { return &GoroutinesBack{Dumps: 3} },
	})
}

// GoroutinesBack asks that no goroutine was left behind, in whichever function.
type GoroutinesBack struct {
	Dumps int `json:"dumps,omitzero" jsonschema:"how many of the last dumps are compared with the baseline. There must be this many (2 or more)"`
}

// held lists the states in which a goroutine waits for another goroutine of its process, and not for a client or the
// time.
var held = []string{"chan send", "chan send (nil chan)", "chan receive (nil chan)", "select (no cases)", "sync.Mutex.Lock",
	"sync.RWMutex.Lock", "sync.RWMutex.RLock"}

// crowd is by how many goroutines a small group has to grow to count as too large. Less is allowed because a client
// brings a few goroutines for each of its connections and watches.
const crowd = 8

// Reads names debug=2 dumps.
func (c *GoroutinesBack) Reads() []bundle.Kind { return []bundle.Kind{bundle.Goroutines2} }

// Validate refuses fewer than two dumps, which can't tell goroutines that stay from goroutines at work.
func (c *GoroutinesBack) Validate() error {
	return refuse(c.Dumps < 2, "dumps is %d (want at least 2: one can't tell stuck from busy)", c.Dumps)
}

// Eval compares the last dumps of the window with all of the baseline's.
func (c *GoroutinesBack) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("in each of the last %d dumps fewer than %d goroutines more than in the baseline that wait to "+
		"send or for a lock, and no group of others that is larger by %d or more, and by a quarter", c.Dumps, fewest, crowd))
	if !ok {
		return q.Finding
	}
	return against(q, "dumps", c.Dumps, "", dumpsIn, func(before, last []goroutines) Truth {
		return All(c.released(q, before, last), c.asMany(q, before, last))
	})
}

// released answers whether few enough goroutines are left that wait for another goroutine of their process. A goroutine
// counts if each of the last dumps shows its id waiting like that. Of a group, at most as many count as the group has
// grown by since the baseline.
func (c *GoroutinesBack) released(q *question, before, last []goroutines) Truth {
	waiting := func(in goroutines) map[goroutine.Origin]int64 {
		out := map[goroutine.Origin]int64{}
		for _, g := range in {
			if slices.Contains(held, g.State) {
				out[g.Origin()]++
			}
		}
		return out
	}
	grown, all := lasting(before, last, waiting), 0
	var most group
	for o, g := range remaining(last, held).groups() {
		if g.n = min(g.n, int(grown[o])); g.n > 0 {
			all, most = all+g.n, largerGroup(most, g)
		}
	}
	q.Seen += fmt.Sprintf("; %d more wait to send or for a lock", all)
	return c.judgeCount(q, all < fewest, most)
}

// asMany answers whether every group of goroutines, in any state, is about as large as in the baseline. Ids say nothing
// here: a group that is larger in each dump has too many goroutines, even if these take turns.
func (c *GoroutinesBack) asMany(q *question, before, last []goroutines) Truth {
	had := map[goroutine.Origin]int64{}
	for _, d := range before {
		for o, n := range d.counts() {
			had[o] = max(had[o], n)
		}
	}
	now := last[len(last)-1].groups()
	var most, over group
	for o, n := range lasting(before, last, goroutines.counts) {
		g := group{n: int(n), one: now[o].one}
		if g.n <= 0 || g.one == nil {
			continue
		}
		most = largerGroup(most, g)
		if g.n >= crowd && n*4 >= had[o] {
			over = largerGroup(over, g)
		}
	}
	if most.one != nil {
		q.Seen += fmt.Sprintf("; %s grew most, by %d", most.name(), most.n)
	}
	return c.judgeCount(q, over.one == nil, over)
}

// judgeCount returns so as a Truth. If so is false, judgeCount adds the group that is too large to the finding, with
// one of its stacks.
func (c *GoroutinesBack) judgeCount(q *question, so bool, of group) Truth {
	if !so {
		q.Seen += fmt.Sprintf(": too many, %d of them in %s", of.n, of.name())
		if q.Detail == "" {
			q.Detail = of.one.Text()
		}
	}
	return Of(so)
}
