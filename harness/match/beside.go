package match

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match/healthy"
)

// Comparison is a dump beside what processes of the same component had that were well. Where there are no such
// processes, or it isn't known whose dump it is, there is no comparison.
type Comparison struct {
	Where     string            `json:"where"`
	Component string            `json:"component"`
	Version   string            `json:"version,omitempty"`
	With      string            `json:"with"`              // what it was compared with
	Differs   string            `json:"differs,omitempty"` // why a difference may not be the process's, but its version's
	Unusual   []healthy.Unusual `json:"unusual"`
}

// The most that is told: of comparisons that show something, and of the places in each.
const (
	maxCompared = 5
	maxUnusual  = 5
)

// compareWithHealthy compares the newest dump of each process with the baseline of its component: one at debug=2, or if there is
// none one without states. It returns those that show something, and of how many there is nothing to tell.
func (e *evidence) compareWithHealthy(all []*healthy.Baseline) (out []Comparison, plain []string) {
	for _, b := range all {
		for _, sub := range e.subjects(b.Component, nil) {
			if sub.component != b.Component {
				continue
			}
			versions := e.versions[b.Component]
			if len(sub.versions) > 0 {
				versions = sub.versions
			}
			for _, n := range sub.newest() {
				c := compare(b, n.Dump, versions, sub.changed)
				c.Where = n.where
				if len(c.Unusual) == 0 {
					if !n.Truncated { // what is cut off may be unusual
						plain = append(plain, c.Where)
					}
					continue
				}
				c.Unusual = first(c.Unusual, maxUnusual)
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Comparison) int { return healthy.Compare(a.Unusual[0], b.Unusual[0]) })
	return first(out, maxCompared), plain
}

// compare compares one dump.
func compare(b *healthy.Baseline, d *goroutine.Dump, versions []string, changed string) Comparison {
	dumps := 0
	for _, of := range b.Of {
		dumps += of.Dumps
	}
	c := Comparison{Component: b.Component, Unusual: b.Unusual(d),
		With: fmt.Sprintf("%s %s that was well, in %d dumps", b.Component, list(b.Versions()), dumps)}
	switch {
	case len(versions) == 0:
		c.Differs = "its version isn't known"
	case len(versions) > 1:
		c.Differs = "it is one of " + list(versions)
	case !slices.Contains(b.Versions(), versions[0]):
		c.Version, c.Differs = versions[0], "there is none of "+versions[0]
	default:
		c.Version = versions[0]
	}
	if changed != "" && c.Differs == "" {
		c.Differs = "it is a build with changes: " + changed
	}
	return c
}

// newest are the newest dumps of a subject's processes, and where they are.
func (sub *subject) newest() (out []counted) {
	for _, of := range processes(sub.view, sub.view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: sub.arm})) {
		last := of[len(of)-1]
		d := dumpOf(sub.view, last)
		if d == nil { // one that can't be read was told where a check asked for it
			continue
		}
		where := last.Path
		if _, foreign := sub.view.(*foreign); !foreign {
			where = sub.place + ", " + last.Path
		}
		out = append(out, counted{where, d})
	}
	if n := len(sub.counted); len(out) == 0 && n > 0 {
		out = sub.counted[n-1:]
	}
	return out
}

// counted is a dump, and where it is.
type counted struct {
	where string
	*goroutine.Dump
}
