package goroutines

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "goroutinesBack",
		Doc: "No more goroutines are left than the baseline had, whatever the incident is.\n\n" +
			"Goroutines with the same entry function and the same creator form a group. A group counts by how many " +
			"goroutines every one of the last dumps shows above the most that the baseline had. Goroutines that wait " +
			"to send or for a lock have no reason to stay: three of them in all are too many. Others come and go " +
			"with clients: a group may grow by up to seven, or by less than a quarter. This check is part of the " +
			"common health that every arm is asked for. A scenario can leave it out with health.without.",
		Example: "name: as-many-goroutines\nkind: goroutinesBack\nphase: recovery\nspec:\n  dumps: 3\n",
		New:     func() check.Check { return &GoroutinesBack{Dumps: 3} },
	})
}

// GoroutinesBack asks that no goroutine was left behind, in whichever function.
type GoroutinesBack struct {
	Dumps int `json:"dumps,omitzero" jsonschema:"how many of the last dumps are compared with the baseline. There must be this many (2 or more)"`
}

// held lists the states in which a goroutine waits for another goroutine of its process, and not for a client or the
// time.
var held = []string{
	"chan send",
	"chan send (nil chan)",
	"chan receive (nil chan)",
	"select (no cases)",
	"sync.Mutex.Lock",
	"sync.RWMutex.Lock",
	"sync.RWMutex.RLock",
}

// tooManyHeld is how many added goroutines in the held states are too many, over all groups.
const tooManyHeld = 3

// crowd is by how many goroutines a small group has to grow to count as too large. Less is allowed because a client
// brings a few goroutines for each of its connections and watches.
const crowd = 8

// Reads names debug=2 dumps.
func (c *GoroutinesBack) Reads() []bundle.Kind { return []bundle.Kind{bundle.Goroutines2} }

// NeedsBaselineProcess returns that the subject must be the process of the baseline, with which it is compared.
func (*GoroutinesBack) NeedsBaselineProcess() bool { return true }

// Validate refuses fewer than two dumps, which can't tell goroutines that stay from goroutines at work.
func (c *GoroutinesBack) Validate() error {
	return question.Refuse(
		c.Dumps < 2,
		"dumps is %d (want at least 2: one can't tell stuck from busy)",
		c.Dumps,
	)
}

// Eval compares the last dumps of the window with all of the baseline's.
func (c *GoroutinesBack) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("in each of the last %d dumps fewer than %d goroutines more than in the baseline that wait to "+
		"send or for a lock, and no group of others that is larger by %d or more, and by a quarter", c.Dumps, tooManyHeld, crowd))
	if !ok {
		return q.Finding
	}
	return question.CompareWithBaseline(q, "dumps", c.Dumps, "", ReadDumps, func(before, last []ByID) check.Truth {
		return check.All(c.released(q, before, last), c.asMany(q, before, last))
	})
}

// released answers whether few enough goroutines are left that wait for another goroutine of their process. A goroutine
// counts if each of the last dumps shows its id waiting like that. Those of the baseline that waited in the same way are
// taken off: a short wait, which one dump of the baseline happens to show, is none of them.
func (c *GoroutinesBack) released(q *question.Question, before, last []ByID) check.Truth {
	had, all := heldBefore(before, len(last)), 0
	var most OriginGroup
	for o, g := range Remaining(last, held).groups() {
		if g.N -= had[o]; g.N > 0 {
			all, most = all+g.N, largerGroup(most, g)
		}
	}
	q.Add("; %d more wait to send or for a lock", question.N("moreWaiting", all))
	return c.judgeCount(q, all < tooManyHeld, most)
}

// heldBefore returns how many goroutines of each group waited through so many dumps of the baseline in a row, or through
// all of them if they are fewer; of several such rows, the most.
func heldBefore(baseline []ByID, row int) map[goroutine.Origin]int {
	most := map[goroutine.Origin]int{}
	row = min(row, len(baseline))
	for i := range len(baseline) - row + 1 {
		for o, g := range Remaining(baseline[i:i+row], held).groups() {
			most[o] = max(most[o], g.N)
		}
	}
	return most
}

// asMany answers whether every group of goroutines, in any state, is about as large as in the baseline. Ids say nothing
// here: a group that is larger in each dump has too many goroutines, even if these take turns.
func (c *GoroutinesBack) asMany(q *question.Question, before, last []ByID) check.Truth {
	had := map[goroutine.Origin]int64{}
	for _, d := range before {
		for o, n := range d.counts() {
			had[o] = max(had[o], n)
		}
	}
	now := last[len(last)-1].groups()
	var most, over OriginGroup
	for o, n := range question.LastingGrowth(before, last, ByID.counts) {
		g := OriginGroup{N: int(n), Example: now[o].Example}
		if g.N <= 0 || g.Example == nil {
			continue
		}
		most = largerGroup(most, g)
		if g.N >= crowd && n*4 >= had[o] {
			over = largerGroup(over, g)
		}
	}
	if most.Example != nil {
		q.Add("; %s grew most, by %d", most.Name(), question.N("largestGrowth", most.N))
	}
	return c.judgeCount(q, over.Example == nil, over)
}

// judgeCount returns so as a Truth. If so is false, judgeCount adds the group that is too large to the finding, with
// one of its stacks.
func (c *GoroutinesBack) judgeCount(q *question.Question, so bool, of OriginGroup) check.Truth {
	if !so {
		q.Add(": too many, %d of them in %s", of.N, of.Name())
		if q.Detail == "" {
			q.Detail = of.Example.Text()
		}
	}
	return check.Of(so)
}
