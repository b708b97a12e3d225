package match

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match/healthy"
)

// Comparison says what a dump has that healthy processes of the same component don't. There is no comparison if no such
// processes are known, or if it isn't known whose dump it is.
type Comparison struct {
	Where     string            `json:"where"`
	Component string            `json:"component"`
	Version   string            `json:"version,omitempty"`
	With      string            `json:"with" jsonschema:"the processes that it was compared with"`
	Differs   string            `json:"differs,omitempty" jsonschema:"why the version may explain a difference"`
	Unusual   []healthy.Unusual `json:"unusual"`
}

// The limits of what is reported: comparisons that show something, and places in each of them.
const (
	maxCompared = 5
	maxUnusual  = 5
)

// compareWithHealthy compares the newest dump of each process with the baseline of its component. That is the newest at
// debug=2, or if there is none, the newest without states. It returns the comparisons that show something, and names
// the dumps in which nothing is unusual.
func (e *evidence) compareWithHealthy(
	all []*healthy.Baseline,
) (out []Comparison, plain []string) {
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
					if !n.Truncated { // the part that is cut off may be unusual
						plain = append(plain, c.Where)
					}
					continue
				}
				c.Unusual = first(c.Unusual, maxUnusual)
				out = append(out, c)
			}
		}
	}
	slices.SortStableFunc(
		out,
		func(a, b Comparison) int { return healthy.Compare(a.Unusual[0], b.Unusual[0]) },
	)
	return first(out, maxCompared), plain
}

// compare compares one dump with a baseline.
func compare(
	b *healthy.Baseline,
	d *goroutine.Dump,
	versions []string,
	changed string,
) Comparison {
	dumps := 0
	for _, of := range b.Of {
		dumps += of.Dumps
	}
	c := Comparison{
		Component: b.Component,
		Unusual:   b.Unusual(d),
		With: fmt.Sprintf(
			"%s %s that was well, in %d dumps",
			b.Component,
			list(b.Versions()),
			dumps,
		),
	}
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

// newest returns the newest dump of each of a subject's processes, and where the dump is.
func (sub *subject) newest() (out []counted) {
	for _, of := range processes(sub.view, sub.view.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: sub.arm})) {
		last := of[len(of)-1]
		d := dumpOf(sub.view, last)
		if d == nil { // a dump that can't be read is reported by the check that asks for it
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

// counted is a dump, and where that dump is.
type counted struct {
	where string
	*goroutine.Dump
}
