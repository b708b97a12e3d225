// Package healthy learns from dumps of healthy processes which goroutines a component has while it is well. It reports
// what another dump of that component has in addition. That decides nothing: additional goroutines may come from load.
package healthy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// schema is the value of a baseline's schema field.
const schema = "relapse.dev/healthy/v1alpha1"

// Baseline says which goroutines processes of one component had while they were well. It belongs to the component and
// not to a scenario: scenarios share components, and being well doesn't depend on an incident.
type Baseline struct {
	Schema    string  `json:"schema"`
	Component string  `json:"component"`
	Relapse   string  `json:"relapse"` // the version of relapse that made it
	Of        []Of    `json:"of"`
	Places    []Place `json:"places"` // in alphabetical order
}

// Of counts the processes and dumps of one version that a baseline was made from.
type Of struct {
	Version   string `json:"version"`
	Processes int    `json:"processes"`
	Dumps     int    `json:"dumps"` // at debug=2
}

// Place is a place in the code where goroutines are: see placesOf.
type Place struct {
	At     string           `json:"at"`
	All    Range            `json:"all"` // goroutines in any state
	States map[string]Range `json:"states,omitempty"`
}

// Range is the lowest and the highest number that a dump had. The lowest is 0 if some dump had none.
type Range [2]int

// Builder makes a baseline from dumps.
type Builder struct {
	of     []Of
	dumps  int
	places map[string]*Place
}

// Add adds dumps at debug=2 of one process that was well. version is the version of that process.
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

// Dumps returns how many dumps were added.
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
		return Range{min(r[0], n), max(r[1], n)} // new keys weren't in the earlier dumps: their lowest number is 0
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

// Baseline returns the baseline of the dumps that were added so far.
func (b *Builder) Baseline(component, relapse string) *Baseline {
	out := &Baseline{
		Schema:    schema,
		Component: component,
		Relapse:   relapse,
		Of:        slices.Clone(b.of),
		Places:    []Place{},
	}
	slices.SortFunc(out.Of, func(a, b Of) int { return cmp.Compare(a.Version, b.Version) })
	for _, p := range b.places {
		out.Places = append(out.Places, *p)
	}
	slices.SortFunc(out.Places, func(a, b Place) int { return cmp.Compare(a.At, b.At) })
	return out
}

// with merges two baselines: goroutines that either of them has are usual. The two must have no version in common,
// because with can't tell which dumps both were made from.
func (b *Baseline) with(other *Baseline) *Baseline {
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
	for _, p := range b.Places { // the other's dumps had none of what only b has
		if !slices.ContainsFunc(other.Places, func(o Place) bool { return o.At == p.At }) {
			places[p.At] = p.with(Place{})
		}
	}
	out.Places = slices.SortedFunc(
		maps.Values(places),
		func(a, b Place) int { return cmp.Compare(a.At, b.At) },
	)
	return &out
}

// with merges the same place of two baselines. The zero Place stands for a baseline that doesn't have the place.
func (p Place) with(other Place) Place {
	both := func(a, b Range) Range { return Range{min(a[0], b[0]), max(a[1], b[1])} }
	out := Place{
		At:     cmp.Or(p.At, other.At),
		All:    both(p.All, other.All),
		States: map[string]Range{},
	}
	for _, states := range []map[string]Range{p.States, other.States} {
		for state := range states {
			out.States[state] = both(p.States[state], other.States[state])
		}
	}
	return out
}

// Unusual is a place in a dump with goroutines of which a healthy process has none, or far fewer.
type Unusual struct {
	At      string   `json:"at"`
	State   string   `json:"state,omitempty" jsonschema:"missing if the dump has no states"`
	Count   int      `json:"count"`
	Usual   int      `json:"usual" jsonschema:"the most that a healthy process had"`
	Minutes int      `json:"minutes,omitempty" jsonschema:"how long the longest has waited, as far as the dump says"`
	Frames  []string `json:"frames" jsonschema:"of the largest group, the innermost first"`
}

// The limits beyond which goroutines are unusual. More than times the usual number plus onTop are always unusual; fewer
// may come and go with connections and requests, depending on the load. Fewer goroutines are unusual if they have
// waited for at least waiting, which no request does, and are in a state that none of the baseline's goroutines there
// had. At a place that the baseline doesn't have, that counts only for brief states.
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
			continue // its states are reported, each separately
		}
		if k.state != "" && k.state != ready { // a running goroutine may be anywhere: all states count for it
			most = p.States[k.state][1]
		}
		stuck := k.state != ready && most == 0 && s.waited >= waiting &&
			(known || slices.Contains(brief, k.state))
		if s.n > times*most+onTop || stuck {
			out = append(out, Unusual{At: k.at, State: s.state, Count: s.n, Usual: most, Minutes: int(s.waited / time.Minute),
				Frames: s.frames()})
		}
	}
	slices.SortFunc(out, Compare)
	return out
}

// Compare orders what is unusual. First come goroutines of which a healthy process has none, and among these first
// those that have waited, because the others may be passing.
func Compare(a, b Unusual) int {
	has := func(u Unusual) int { return min(u.Usual, 1) }
	lasts := func(u Unusual) int { return min(u.Minutes, 1) }
	return cmp.Or(
		has(a)-has(b),
		lasts(b)-lasts(a),
		(b.Count-b.Usual)-(a.Count-a.Usual),
		cmp.Compare(a.At, b.At),
		cmp.Compare(a.State, b.State),
	)
}

// Versions returns the versions that the baseline was made from.
func (b *Baseline) Versions() (out []string) {
	for _, o := range b.Of {
		out = append(out, o.Version)
	}
	return out
}
