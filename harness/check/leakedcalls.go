package check

import (
	"fmt"
	"strconv"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// alsoListed are the objects that a list of a load's namespace has besides its own: kube-root-ca.crt, which Kubernetes puts into every
// namespace, and which sorts after them.
const alsoListed = 1

// calls are the calls in which a worker got as far as a failed delete, by what the log or the load says. With one worker a call, which is kube-apiserver's
// default, each writes one line and goes no further: what is in its list behind that object is left. The load only knows bounds of how many calls there
// were, and the least that each left.
type calls struct {
	n      int // calls, at least
	most   int // calls, at most
	over   int // those with more items left than the channel holds, at least
	upto   int // and at most
	lo, hi int // items left, of any of them
	items  int // in a list
	seen   bool
	paths  []string
	doubt  string
}

// callsLogged counts the calls of the window by their log lines.
func callsLogged(q *question, lines LogLines, name string, moreThan int) (out calls) {
	load, path, err := loadOf(q, name)
	if err != nil {
		return calls{doubt: err.Error()}
	}
	l := lines.find(q)
	out = calls{items: load.Objects + alsoListed, paths: append([]string{path}, l.paths...), doubt: l.doubt}
	re, err := lines.compile()
	if err != nil {
		out.doubt = err.Error()
		return out
	}
	for _, line := range l.found {
		text := re.FindStringSubmatch(line.Text)[re.SubexpIndex("index")]
		index, err := strconv.Atoi(text)
		if err != nil || index >= load.Objects {
			out.doubt = fmt.Sprintf("a line of %s names object %q, and load %s made %d", clock(line.Time), text, name, load.Objects)
			continue
		}
		out.add(1, 1, out.items-(index+1), moreThan)
	}
	return out
}

// callsSeen counts the calls of the window's rounds by what the load saw: they were deleting when the round began, the API server ended them with a failure,
// and when their collection had stood still for a while, some of it was left, but not all. Such a call never came to the end of its list, and what the list
// of all shows is in the rest of each: every worker has behind it only what is gone.
func callsSeen(q *question, name string, moreThan int) (out calls) {
	load, path, err := loadOf(q, name)
	if err != nil {
		return calls{doubt: err.Error()}
	}
	out = calls{items: load.Objects + alsoListed, seen: true, paths: []string{path}}
	for _, r := range load.Rounds {
		switch {
		case !contains(q.window, r.Start):
		case r.Cut == nil:
			out.doubt = fmt.Sprintf("in how many calls of round %d of load %s a worker deleted was not seen", r.Round, name)
		case r.Cut.Failed == 0 || r.Cut.Deleting == 0 && r.Cut.Left != nil: // none that failed had been seen to delete
		case r.Cut.Left == nil:
			out.doubt = fmt.Sprintf("how many objects round %d of load %s left is not known", r.Round, name)
		case *r.Cut.Left > 0 && *r.Cut.Left < load.Objects:
			out.add(r.Cut.AtLeast(), r.Cut.Failed, *r.Cut.Left, moreThan)
		}
	}
	if len(load.Rounds) == 0 {
		out.doubt = fmt.Sprintf("load %s made no round", name)
	}
	return out
}

// add counts calls that left so many items. What the load saw is the least that they left, so any of them may have left more than the channel holds.
func (c *calls) add(least, most, left, moreThan int) {
	if c.most == 0 {
		c.lo, c.hi = left, left
	}
	c.n, c.most, c.lo, c.hi = c.n+least, c.most+most, min(c.lo, left), max(c.hi, left)
	if left > moreThan {
		c.over += least
	}
	if left > moreThan || c.seen {
		c.upto += most
	}
}

// explains says that so many goroutines are as many as the calls that must have left one.
func (c calls) explains(n int) bool { return c.over <= n && n <= c.upto && n > 0 }

func (c calls) said(moreThan int) string {
	out := fmt.Sprintf("%d calls with a failed delete", c.n)
	if c.seen {
		out = fmt.Sprintf("%d calls that deleted and failed, as the load saw them", c.n)
	}
	if c.most > c.n {
		out += fmt.Sprintf(" (%d at most)", c.most)
	}
	if c.most > 0 {
		out += fmt.Sprintf(", %d of them with more than %d items left (%s)", c.over, moreThan, c.left())
	}
	return out
}

// left is how many items the calls left.
func (c calls) left() string {
	if c.seen {
		return fmt.Sprintf("at least %d of %d", c.lo, c.items)
	}
	return fmt.Sprintf("%d..%d of %d", c.lo, c.hi, c.items)
}

// loadOf reads what a load said of itself, by its name.
func loadOf(q *question, name string) (found bundle.Load, path string, err error) {
	for _, a := range q.view.Artifacts(bundle.Query{Kind: bundle.LoadSummary, Cell: q.cell}) {
		one, err := document[bundle.Load](q.view, a, "a load's summary")
		if err != nil {
			return found, "", err
		}
		if one.Name == name {
			found, path = one, a.Path
		}
	}
	if path == "" {
		return found, "", fmt.Errorf("no load %s summed up what it did", name)
	}
	return found, path, nil
}
