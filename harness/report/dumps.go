package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// dump is a goroutine dump, with the goroutines in it that were asked for.
type dump struct {
	bundle.Artifact
	err    error
	counts []int               // by match
	groups [][]goroutine.Group // by match; only one dump keeps them: the last that decided and has any, or else the last
}

// read returns an arm's dumps of one kind, with their goroutines counted. A dump that failed or was cut short has an
// error and no counts.
func (e *evidence) read(q bundle.Query) []dump {
	key := string(q.Kind) + " " + q.Arm
	if have, ok := e.dumps[key]; ok {
		return have
	}
	var out []dump
	last := make([]int, len(e.match)) // by match: the number of the dump that keeps its groups, from 1
	for _, a := range e.Artifacts(q) {
		one := dump{
			Artifact: a,
			counts:   make([]int, len(e.match)),
			groups:   make([][]goroutine.Group, len(e.match)),
		}
		d, err := readDump(e, a)
		if err == nil && d.Truncated {
			err = fmt.Errorf("%s is cut short", a.Path)
		}
		one.err = err
		for i, m := range e.match {
			if err != nil {
				break
			}
			one.counts[i] = d.Count(m)
			if one.counts[i] > 0 && (last[i] == 0 || e.decided(i, a) || !e.decided(i, out[last[i]-1].Artifact)) {
				if last[i] > 0 {
					out[last[i]-1].groups[i] = nil
				}
				last[i], one.groups[i] = len(out)+1, d.Find(m)
			}
		}
		out = append(out, one)
	}
	e.dumps[key] = out
	return out
}

// kindFor returns the kind of dump to read: debug=2 has the states that m may ask for, debug=1 has exact counts.
func kindFor(m goroutine.Match) bundle.Kind {
	if m.State != "" {
		return bundle.Goroutines2
	}
	return bundle.Goroutines1
}

// counted returns how many goroutines m chooses in each dump. lacks says how many dumps have no count, and why the last
// of them has none.
func (e *evidence) counted(q bundle.Query, m goroutine.Match) (out []value, lacks string) {
	q.Kind = kindFor(m)
	i := slices.Index(e.match, m)
	bad, last := 0, ""
	for _, d := range e.read(q) {
		if d.err != nil {
			bad, last = bad+1, d.err.Error()
			continue
		}
		out = append(out, value{d.Time, float64(d.counts[i])})
	}
	if bad > 0 {
		lacks = fmt.Sprintf("dumps without a count: %d, the last because %s", bad, last)
	}
	return out, lacks
}

func readDump(v bundle.View, a bundle.Artifact) (*goroutine.Dump, error) {
	r, err := v.Open(a)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	d, err := goroutine.Read(r)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return d, nil
}

// Stacks are goroutines of an arm that the signature asks for, from the dump that decided, or else from the last that
// has any.
type Stacks struct {
	Arm, What string
	Match     goroutine.Match
	By        []string // the checks that ask for them
	Read      int      // dumps that could be read
	Dump      bundle.Artifact
	Decided   bool              // whether the answer of one of these checks rests on Dump
	Groups    []goroutine.Group // the largest first; none if no dump has any
	Last      bundle.Artifact   // the last dump that could be read
	Left      int               // how many of these goroutines the dump Last still shows
}

// stacks returns the Stacks of an arm, one for each thing that the signature asks for. Read is 0 if the arm has no
// readable dump. States and ages are in debug=2 dumps only, so that others are shown only where none of these has any.
func (e *evidence) stacks(k Clock, subject string) []Stacks {
	var out []Stacks
	for i, m := range e.match {
		s := e.stacksOf(i, bundle.Query{Kind: bundle.Goroutines2, Arm: k.Arm, Component: subject})
		if kind := kindFor(m); len(s.Groups) == 0 && kind != bundle.Goroutines2 {
			exact := e.stacksOf(i, bundle.Query{Kind: kind, Arm: k.Arm, Component: subject})
			if len(exact.Groups) > 0 || s.Read == 0 {
				s = exact
			}
		}
		out = append(out, s)
	}
	return out
}

func (e *evidence) stacksOf(i int, q bundle.Query) Stacks {
	s := Stacks{Arm: q.Arm, What: what(e.match[i]), Match: e.match[i], By: e.by[i]}
	for _, d := range e.read(q) {
		if d.err != nil {
			continue
		}
		s.Read, s.Last, s.Left = s.Read+1, d.Artifact, d.counts[i]
		if len(d.groups[i]) > 0 {
			s.Dump, s.Groups, s.Decided = d.Artifact, d.groups[i], e.decided(i, d.Artifact)
		}
	}
	slices.SortStableFunc(s.Groups, func(a, b goroutine.Group) int { return b.Count - a.Count })
	return s
}

// sameMoment is how far apart dumps of one moment are at most.
const sameMoment = 5 * time.Second

// decided reports whether the answer of a check that asks for the i-th match rests on a dump, or on another one of the
// same moment.
func (e *evidence) decided(i int, a bundle.Artifact) bool {
	paths := e.rests[restsKey{a.Arm, i}]
	if slices.Contains(paths, a.Path) {
		return true
	}
	return a.Kind == bundle.Goroutines2 && slices.ContainsFunc(e.Artifacts(bundle.Query{Kind: bundle.Goroutines1, Arm: a.Arm}), func(o bundle.Artifact) bool {
		return slices.Contains(paths, o.Path) && o.Time.Sub(a.Time).Abs() < sameMoment
	})
}
