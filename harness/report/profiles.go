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

// Profiles are the profiles of one kind, one for each arm that has one.
type Profiles struct {
	Title string // "CPU", "Heap in use"
	Unit  string // of values: "ms/s", "MiB"
	Arms  []Profile
	Lacks []string // why an arm has none; each is the end of a sentence
}

// Profile is one profile of an arm.
type Profile struct {
	Arm, Role string
	Artifact  bundle.Artifact
	When      string             // "the last profile of the phase recovery, taken at 05:07:12"
	Total     float64            // in the unit of its Profiles
	Own       map[string]float64 // function -> its own value, without what it calls
}

// profileKinds are the profiles that a report lists.
var profileKinds = []struct {
	kind               bundle.Kind
	title, unit        string
	sample, sampleUnit string
	phases             []string // in which the last one is looked for first
}{
	// CPU is shown for the fault, the heap for what is left after it.
	{bundle.CPU, "CPU", "ms/s", "cpu", "nanoseconds", []string{check.Fault, check.Recovery}},
	{bundle.Heap, "Heap in use", "MiB", "inuse_space", "bytes", []string{check.Recovery, check.Fault}},
}

// readProfiles reads a profile of each kind and arm. A kind without any profile is left out.
func readProfiles(v bundle.View, clocks []Clock, subject string) []Profiles {
	var out []Profiles
	for _, kind := range profileKinds {
		all := Profiles{Title: kind.title, Unit: kind.unit}
		for _, k := range clocks {
			a, when, ok := chosen(
				v,
				bundle.Query{Kind: kind.kind, Arm: k.Arm, Component: subject},
				kind.phases,
			)
			if !ok {
				continue
			}
			one := Profile{
				Arm:      k.Arm,
				Role:     k.Role,
				Artifact: a,
				When:     when,
				Own:      map[string]float64{},
			}
			if err := one.read(v, kind.sample, kind.sampleUnit); err != nil {
				all.Lacks = append(all.Lacks, k.Arm+": "+err.Error())
				continue
			}
			all.Arms = append(all.Arms, one)
		}
		if len(all.Arms)+len(all.Lacks) > 0 {
			out = append(out, all)
		}
	}
	return out
}

// chosen returns the last profile of the first phase that has one, else the last of all.
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
					clock(a.Time)), true
			}
		}
	}
	if len(all) == 0 {
		return bundle.Artifact{}, "", false
	}
	a := all[len(all)-1]
	return a, "the last profile, taken at " + clock(a.Time), true
}

// read adds up the profile's samples. CPU time is per second of profiling, because two profiles rarely take equally
// long.
func (p *Profile) read(v bundle.View, sample, unit string) error {
	r, err := v.Open(p.Artifact)
	if err != nil {
		return err
	}
	defer r.Close()
	raw, err := profile.Parse(r)
	if err != nil {
		return fmt.Errorf("reading %s: %w", p.Artifact.Path, err)
	}
	i := slices.IndexFunc(
		raw.SampleType,
		func(t *profile.ValueType) bool { return t.Type == sample && t.Unit == unit },
	)
	if i < 0 {
		return fmt.Errorf(
			"reading %s: it has no samples of %s in %s",
			p.Artifact.Path,
			sample,
			unit,
		)
	}
	scale := 1.0 / (1 << 20)
	if sample == "cpu" {
		if raw.DurationNanos <= 0 {
			return fmt.Errorf("reading %s: it doesn't say how long it took", p.Artifact.Path)
		}
		scale = 1000 / float64(raw.DurationNanos)
	}
	for _, s := range raw.Sample {
		value := float64(s.Value[i]) * scale
		p.Total += value
		p.Own[innermost(s)] += value
	}
	return nil
}

// innermost returns the name of the function in which a sample was taken, "?" if the profile has none.
func innermost(s *profile.Sample) string {
	if len(s.Location) == 0 || len(s.Location[0].Line) == 0 || s.Location[0].Line[0].Function == nil {
		return "?"
	}
	return cmp.Or(s.Location[0].Line[0].Function.Name, "?")
}

// own is a function's own value in two profiles, or in one: then B is 0.
type own struct {
	Func string
	A, B float64
}

// owners returns the functions whose own values differ most between two profiles, or are largest in one.
func owners(a, b Profile, most int) []own {
	names := map[string]bool{}
	for _, own := range []map[string]float64{a.Own, b.Own} {
		for name := range own {
			names[name] = true
		}
	}
	var out []own
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if o := (own{name, a.Own[name], b.Own[name]}); o.differs() > 0.001*(a.Total+b.Total) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(
		out,
		func(x, y own) int { return cmp.Compare(y.differs(), x.differs()) },
	)
	return out[:min(most, len(out))]
}

func (o own) differs() float64 { return max(o.A-o.B, o.B-o.A) }
