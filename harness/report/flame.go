package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Flames are the profiles of one kind, one for each arm that has one.
type Flames struct {
	Title string // "CPU", "heap in use"
	Unit  string // of values: "ms/s", "MiB"
	Arms  []Flame
	Lacks []string // why an arm has none; each is the end of a sentence
}

// Flame is one profile of an arm.
type Flame struct {
	Arm, Role string
	Artifact  bundle.Artifact
	When      string  // "the last profile of the phase recovery, taken at 05:07:12"
	Total     float64 // in the unit of its Flames
	Root      *Frame
}

// Frame is a function in a stack, with all that it called. A and B are its values in the two profiles of a comparison;
// B is 0 if there is only one profile.
type Frame struct {
	Name     string
	A, B     float64
	Children []*Frame // sorted by name, so that arms can be compared by eye
}

// profiles are the kinds of profiles that flame graphs are drawn of.
var profiles = []struct {
	kind               bundle.Kind
	title, unit        string
	sample, sampleUnit string
	phases             []string // where the last profile is looked for, in this order
}{
	// CPU is shown for the fault, the heap for what is left after it.
	{bundle.CPU, "CPU", "ms/s", "cpu", "nanoseconds", []string{check.Fault, check.Recovery}},
	{bundle.Heap, "Heap in use", "MiB", "inuse_space", "bytes", []string{check.Recovery, check.Fault}},
}

// flames reads one profile for each kind and arm. A kind that no arm has a profile of is left out.
func flames(v bundle.View, clocks []Clock, subject string) []Flames {
	var out []Flames
	for _, p := range profiles {
		f := Flames{Title: p.title, Unit: p.unit}
		for _, k := range clocks {
			a, when, ok := chosen(v, bundle.Query{Kind: p.kind, Arm: k.Arm, Component: subject}, p.phases)
			if !ok {
				continue
			}
			one := Flame{Arm: k.Arm, Role: k.Role, Artifact: a, When: when, Root: &Frame{Name: "all"}}
			if err := one.read(v, p.sample, p.sampleUnit); err != nil {
				f.Lacks = append(f.Lacks, k.Arm+": "+err.Error())
				continue
			}
			f.Arms = append(f.Arms, one)
		}
		if len(f.Arms)+len(f.Lacks) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// chosen returns the last profile of the first phase that has one, or else the last of all, and says when it was taken.
func chosen(v bundle.View, q bundle.Query, phases []string) (bundle.Artifact, string, bool) {
	var all []bundle.Artifact
	for _, a := range v.Artifacts(q) {
		if a.Error == "" && !a.Missing {
			all = append(all, a)
		}
	}
	for _, phase := range phases {
		w, ok := v.Phase(q.Arm, phase)
		for _, a := range slices.Backward(all) {
			if ok && !a.Time.Before(w.Start) && !a.Time.After(w.End) {
				return a, fmt.Sprintf("the last profile of the phase %s, taken at %s", phase,
					a.Time.UTC().Format("15:04:05")), true
			}
		}
	}
	if len(all) == 0 {
		return bundle.Artifact{}, "", false
	}
	a := all[len(all)-1]
	return a, "the last profile, taken at " + a.Time.UTC().Format("15:04:05"), true
}

// read adds the profile's samples to the root. CPU time is per second of profiling, because two profiles rarely take
// equally long.
func (f *Flame) read(v bundle.View, sample, unit string) error {
	r, err := v.Open(f.Artifact)
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := profile.Parse(r)
	if err != nil {
		return fmt.Errorf("reading %s: %w", f.Artifact.Path, err)
	}
	i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == sample && t.Unit == unit })
	if i < 0 {
		return fmt.Errorf("reading %s: it has no samples of %s in %s", f.Artifact.Path, sample, unit)
	}
	scale := 1.0 / (1 << 20)
	if sample == "cpu" {
		if p.DurationNanos <= 0 {
			return fmt.Errorf("reading %s: it doesn't say how long it took", f.Artifact.Path)
		}
		scale = 1000 / float64(p.DurationNanos)
	}
	tree := node{}
	for _, s := range p.Sample {
		tree.add(s, float64(s.Value[i])*scale)
	}
	f.Root.A, f.Root.Children = tree.value, tree.frames()
	f.Total = tree.value
	return nil
}

// node is a frame while samples are added to it.
type node struct {
	value float64
	below map[string]*node
}

func (n *node) add(s *profile.Sample, value float64) {
	n.value += value
	at := n
	for _, l := range slices.Backward(s.Location) {
		names := []string{"?"} // code without a symbol
		if len(l.Line) > 0 {
			names = names[:0]
			for _, line := range slices.Backward(l.Line) { // the first was inlined into the last
				name := "?"
				if line.Function != nil {
					name = cmp.Or(line.Function.Name, "?")
				}
				names = append(names, name)
			}
		}
		for _, name := range names {
			if at.below == nil {
				at.below = map[string]*node{}
			}
			if at.below[name] == nil {
				at.below[name] = &node{}
			}
			at = at.below[name]
			at.value += value
		}
	}
}

func (n *node) frames() []*Frame {
	var out []*Frame
	for _, name := range slices.Sorted(maps.Keys(n.below)) {
		c := n.below[name]
		if c.value != 0 {
			out = append(out, &Frame{Name: name, A: c.value, Children: c.frames()})
		}
	}
	return out
}

// compared merges two trees. A is the value in the first tree, B the value in the second.
func compared(a, b *Frame) *Frame {
	out := &Frame{Name: cmp.Or(a, b, &Frame{}).Name}
	var as, bs []*Frame
	if a != nil {
		out.A, as = a.A, a.Children
	}
	if b != nil {
		out.B, bs = b.A, b.Children
	}
	for len(as)+len(bs) > 0 {
		switch {
		case len(bs) == 0 || len(as) > 0 && as[0].Name < bs[0].Name:
			out.Children, as = append(out.Children, compared(as[0], nil)), as[1:]
		case len(as) == 0 || bs[0].Name < as[0].Name:
			out.Children, bs = append(out.Children, compared(nil, bs[0])), bs[1:]
		default:
			out.Children, as, bs = append(out.Children, compared(as[0], bs[0])), as[1:], bs[1:]
		}
	}
	return out
}

// Own is the value of a function without those of the functions that it calls.
type Own struct {
	Func string
	A, B float64
}

// owners returns the functions whose own values differ most between two profiles, or are largest in a single one.
func owners(root *Frame, most int) []Own {
	sum := map[string]*Own{}
	var walk func(*Frame)
	walk = func(f *Frame) {
		a, b := f.A, f.B
		for _, c := range f.Children {
			a, b = a-c.A, b-c.B
			walk(c)
		}
		if sum[f.Name] == nil {
			sum[f.Name] = &Own{Func: f.Name}
		}
		sum[f.Name].A += a
		sum[f.Name].B += b
	}
	for _, c := range root.Children {
		walk(c)
	}
	var out []Own
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		if o := *sum[name]; o.differs() > 0.001*(root.A+root.B) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(x, y Own) int { return cmp.Compare(y.differs(), x.differs()) })
	return out[:min(most, len(out))]
}

func (o Own) differs() float64 { return max(o.A-o.B, o.B-o.A) }
