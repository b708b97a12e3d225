package check

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/kube-relapse/relapse/harness/bundle"
)

// alsoListed are the objects that a list of a load's namespace has besides its own: kube-root-ca.crt, which Kubernetes puts into every
// namespace, and which sorts after them.
const alsoListed = 1

// calls are the calls in which a worker got as far as a failed delete. With one worker a call, which is kube-apiserver's default, each
// writes one line and goes no further: what is in its list behind that object is left.
type calls struct {
	lines  int
	over   int // those with more items left than the channel holds
	lo, hi int // items left, of any of them
	items  int // in a list
	paths  []string
	doubt  string
}

// calls counts the calls of a window by their log lines.
func (c *LeakedGoroutines) calls(v bundle.View, cell string, w bundle.Window) (out calls) {
	load, path, err := loadOf(v, cell, c.Load)
	if err != nil {
		return calls{doubt: err.Error()}
	}
	l := c.Failed.find(v, cell, w)
	out = calls{items: load.Objects + alsoListed, paths: append([]string{path}, l.paths...), doubt: l.doubt}
	re, err := c.Failed.compile()
	if err != nil {
		out.doubt = err.Error()
		return out
	}
	for _, line := range l.found {
		text := re.FindStringSubmatch(line.Text)[re.SubexpIndex("index")]
		index, err := strconv.Atoi(text)
		if err != nil || index >= load.Objects {
			out.doubt = fmt.Sprintf("a line of %s names object %q, and load %s made %d", clock(line.Time), text, c.Load, load.Objects)
			continue
		}
		left := out.items - (index + 1)
		if out.lines == 0 {
			out.lo, out.hi = left, left
		}
		out.lines, out.lo, out.hi = out.lines+1, min(out.lo, left), max(out.hi, left)
		if left > c.MoreThan {
			out.over++
		}
	}
	return out
}

func (c calls) said(moreThan int) string {
	out := fmt.Sprintf("%d calls with a failed delete", c.lines)
	if c.lines > 0 {
		out += fmt.Sprintf(", %d of them with more than %d items left (%d..%d of %d)", c.over, moreThan, c.lo, c.hi, c.items)
	}
	return out
}

// left is the line about the items that goes below the leaked stack.
func (c calls) left() string {
	if c.lines == 0 {
		return ""
	}
	return fmt.Sprintf("\nitems left: %d..%d of %d", c.lo, c.hi, c.items)
}

// loadOf reads what a load said of itself, by its name.
func loadOf(v bundle.View, cell, name string) (found bundle.Load, path string, err error) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.LoadSummary, Cell: cell}) {
		if a.Missing || a.Error != "" {
			return found, "", fmt.Errorf("a load's summary: %s", broken(a))
		}
		var one bundle.Load
		rc, err := v.Open(a)
		if err == nil {
			var raw []byte
			raw, err = io.ReadAll(rc)
			rc.Close()
			if err == nil {
				err = json.Unmarshal(raw, &one)
			}
		}
		if err != nil {
			return found, "", fmt.Errorf("reading %s: %w", a.Path, err)
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
