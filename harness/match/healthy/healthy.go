// Package healthy knows which goroutines a component has while it is well, by dumps of processes that were, and says
// what another dump of that component has beyond them. It decides nothing: what a process has more of may be its load.
package healthy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// Schema is the value of a baseline's schema field.
const Schema = "relapse.dev/healthy/v1alpha1"

// Baseline is what processes of one component had while they were well. It is the component's, not a scenario's:
// scenarios share components, and what is well doesn't depend on an incident.
type Baseline struct {
	Schema    string  `json:"schema"`
	Component string  `json:"component"`
	Relapse   string  `json:"relapse"` // what made it
	Of        []Of    `json:"of"`
	Places    []Place `json:"places"` // in alphabetical order
}

// Of says what a baseline was made of.
type Of struct {
	Version   string `json:"version"`
	Processes int    `json:"processes"`
	Dumps     int    `json:"dumps"` // at debug=2
}

// Place is where goroutines are: see placesOf.
type Place struct {
	At     string           `json:"at"`
	All    Range            `json:"all"` // goroutines in whatever state
	States map[string]Range `json:"states,omitempty"`
}

// Range is the least and the most that a dump had; the least is 0 where a dump had none.
type Range [2]int

// Builder makes a baseline of dumps.
type Builder struct {
	of     []Of
	dumps  int
	places map[string]*Place
}

// Add takes the dumps of one process at debug=2, which was well and of that version.
func (b *Builder) Add(version string, dumps []*goroutine.Dump) {
	if len(dumps) == 0 {
		return
	}
	at := slices.IndexFunc(b.of, func(o Of) bool { return o.Version == version })
	if at < 0 {
		b.of, at = append(b.of, Of{Version: version}), len(b.of)
	}
	b.of[at].Processes++
	b.of[at].Dumps += len(dumps)
	for _, d := range dumps {
		b.add(count(d))
		b.dumps++
	}
}

// Dumps is how many were taken.
func (b *Builder) Dumps() int { return b.dumps }

func (b *Builder) add(seen map[key]*seen) {
	if b.places == nil {
		b.places = map[string]*Place{}
	}
	for k := range seen {
		if b.places[k.at] == nil {
			b.places[k.at] = &Place{At: k.at, States: map[string]Range{}}
		}
		if p := b.places[k.at]; k.state != "" {
			if _, ok := p.States[k.state]; !ok {
				p.States[k.state] = Range{}
			}
		}
	}
	first := b.dumps == 0
	grow := func(r Range, n int, isNew bool) Range {
		if first && isNew {
			return Range{n, n}
		}
		return Range{min(r[0], n), max(r[1], n)} // one that is new now wasn't in the dumps before: its least is 0
	}
	number := func(k key) int {
		if s := seen[k]; s != nil {
			return s.n
		}
		return 0
	}
	for at, p := range b.places {
		p.All = grow(p.All, number(key{at, ""}), p.All == Range{})
		for state, r := range p.States {
			p.States[state] = grow(r, number(key{at, state}), r == Range{})
		}
	}
}

// Baseline is what was made so far.
func (b *Builder) Baseline(component, relapse string) *Baseline {
	out := &Baseline{Schema: Schema, Component: component, Relapse: relapse, Of: slices.Clone(b.of), Places: []Place{}}
	slices.SortFunc(out.Of, func(a, b Of) int { return cmp.Compare(a.Version, b.Version) })
	for _, p := range b.places {
		out.Places = append(out.Places, *p)
	}
	slices.SortFunc(out.Places, func(a, b Place) int { return cmp.Compare(a.At, b.At) })
	return out
}

// With is both baselines in one: what either has is usual. It is only for baselines that have no version in common, as it can't tell
// which dumps both were made of.
func (b *Baseline) With(other *Baseline) *Baseline {
	out := *b
	out.Of = slices.Concat(b.Of, other.Of)
	slices.SortFunc(out.Of, func(a, b Of) int { return cmp.Compare(a.Version, b.Version) })
	places := map[string]Place{}
	for _, p := range b.Places {
		places[p.At] = p
	}
	for _, p := range other.Places {
		places[p.At] = places[p.At].with(p)
	}
	for _, p := range b.Places { // what only one of them has, the other's dumps had none of
		if !slices.ContainsFunc(other.Places, func(o Place) bool { return o.At == p.At }) {
			places[p.At] = p.with(Place{})
		}
	}
	out.Places = slices.SortedFunc(maps.Values(places), func(a, b Place) int { return cmp.Compare(a.At, b.At) })
	return &out
}

// with is a place of two baselines; the zero Place is that of one without it.
func (p Place) with(other Place) Place {
	both := func(a, b Range) Range { return Range{min(a[0], b[0]), max(a[1], b[1])} }
	out := Place{At: cmp.Or(p.At, other.At), All: both(p.All, other.All), States: map[string]Range{}}
	for _, states := range []map[string]Range{p.States, other.States} {
		for state := range states {
			out.States[state] = both(p.States[state], other.States[state])
		}
	}
	return out
}

// Unusual is a place in a dump where there are goroutines that a process that is well has none of, or far fewer.
type Unusual struct {
	At      string   `json:"at"`
	State   string   `json:"state,omitempty"` // "" where the dump tells none
	Count   int      `json:"count"`
	Usual   int      `json:"usual"`             // the most that one had that is well
	Minutes int      `json:"minutes,omitempty"` // that the longest has waited, as far as the dump says
	Frames  []string `json:"frames"`            // of the largest group, the innermost first
}

// What is told: more than so many times the usual number and so many on top, since connections and requests come and
// go with the load. A few goroutines are told where they have waited for so long, which no request does, in a state that
// nothing there was in, or in one that nothing stays in for long.
const (
	times   = 3
	onTop   = 9
	waiting = time.Minute
)

// Unusual lists what a dump of the component has beyond the baseline, in the order of Compare.
func (b *Baseline) Unusual(d *goroutine.Dump) []Unusual {
	out := []Unusual{}
	usual := map[string]Place{}
	for _, p := range b.Places {
		usual[p.At] = p
	}
	for k, s := range count(d) {
		p, known := usual[k.at]
		most := p.All[1]
		if k.state == "" && d.Format.HasStates() {
			continue // its states are told, each by itself
		}
		if k.state != "" && k.state != ready { // what runs was caught at it, and may be anything there
			most = p.States[k.state][1]
		}
		stuck := k.state != ready && most == 0 && s.waited >= waiting && (known || slices.Contains(brief, k.state))
		if s.n > times*most+onTop || stuck {
			out = append(out, Unusual{At: k.at, State: s.state, Count: s.n, Usual: most, Minutes: int(s.waited / time.Minute),
				Frames: s.frames()})
		}
	}
	slices.SortFunc(out, Compare)
	return out
}

// Compare orders what is unusual: first what a process that is well has none of, and of that first what has waited,
// since what hasn't may be passing.
func Compare(a, b Unusual) int {
	has := func(u Unusual) int { return min(u.Usual, 1) }
	lasts := func(u Unusual) int { return min(u.Minutes, 1) }
	return cmp.Or(has(a)-has(b), lasts(b)-lasts(a), (b.Count-b.Usual)-(a.Count-a.Usual), cmp.Compare(a.At, b.At), cmp.Compare(a.State, b.State))
}

// Versions are those that the baseline is of.
func (b *Baseline) Versions() (out []string) {
	for _, o := range b.Of {
		out = append(out, o.Version)
	}
	return out
}
