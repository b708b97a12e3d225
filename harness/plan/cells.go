package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// cells turns a pair's arms, as the options change them, into cells with a node each. Deviates names what weakens the trial.
func cells(pair scenario.Pair, o Options) (out []Cell, deviates []string, err error) {
	arms := slices.Clone(pair.Arms)
	if o.Candidate != nil {
		c, err := candidate(arms, *o.Candidate)
		if err != nil {
			return nil, nil, err
		}
		arms = append(arms, c)
	}
	byName := map[string]scenario.Arm{}
	for _, a := range arms {
		byName[a.Name] = a
	}
	known := strings.Join(slices.Sorted(maps.Keys(byName)), ", ")
	for _, name := range slices.Sorted(maps.Keys(o.Swap)) {
		for _, arm := range []string{name, o.Swap[name]} {
			if _, ok := byName[arm]; !ok {
				return nil, nil, fmt.Errorf("swapping builds: there is no arm %q: want one of %s", arm, known)
			}
		}
	}
	for _, name := range o.Arms {
		if _, ok := byName[name]; !ok {
			return nil, nil, fmt.Errorf("selecting arms: there is no arm %q: want one of %s", name, known)
		}
	}
	for _, a := range arms {
		if len(o.Arms) > 0 && !slices.Contains(o.Arms, a.Name) {
			continue
		}
		if other, ok := o.Swap[a.Name]; ok && other != a.Name {
			a.Source = byName[other].Source
			deviates = append(deviates, fmt.Sprintf("arm %s runs the build of arm %s", a.Name, other))
		}
		expected := NotReproduced
		if a.Role == scenario.Vulnerable {
			expected = Reproduced
		}
		out = append(out, Cell{Name: a.Name, Arm: a, Node: worker(len(out)), Expected: expected})
	}
	return out, deviates, nil
}

// candidate is the user's arm. A version, a directory or a binary is enough: the rest is what the fixed arm is built from.
func candidate(arms []scenario.Arm, s scenario.Source) (scenario.Arm, error) {
	i := slices.IndexFunc(arms, func(a scenario.Arm) bool { return a.Role == scenario.Fixed })
	if s.Binary == "" && i >= 0 {
		fixed := arms[i].Source
		if s.Module == "" {
			s.Module = fixed.Module
		}
		if s.Package == "" {
			s.Package = fixed.Package
		}
		if s.Version == "" {
			s.Version = fixed.Version
		}
	}
	if slices.ContainsFunc(arms, func(a scenario.Arm) bool { return a.Name == scenario.Candidate }) {
		return scenario.Arm{}, fmt.Errorf("adding the candidate: the pair has an arm of that name already")
	}
	return scenario.Arm{Name: scenario.Candidate, Role: scenario.Candidate, Source: s}, nil
}

// worker is kind's name for the n-th worker, counted from 0.
func worker(n int) string {
	if n == 0 {
		return cluster.Worker
	}
	return cluster.Worker + strconv.Itoa(n+1)
}

// topology is a control plane and one worker for each cell. Images, seams and subjects are laid in when they exist.
func topology(version string, cells []Cell, base []byte) cluster.Topology {
	t := cluster.Topology{
		Version: version, Base: base,
		Nodes: []cluster.NodeSpec{{Name: cluster.ControlPlane, Role: cluster.ControlPlane}},
	}
	for _, c := range cells {
		t.Nodes = append(t.Nodes, cluster.NodeSpec{
			Name: c.Node, Role: cluster.Worker, Cell: c.Name, Labels: map[string]string{CellLabel: c.Name},
		})
	}
	return t
}

// leaveOut removes faults. What came after one of them now comes after, or at, what that one waited for.
func (t *Trial) leaveOut(names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(t.Faults, func(f Item) bool { return f.Name == name })
		if i < 0 {
			var known []string
			for _, f := range t.Faults {
				known = append(known, f.Name)
			}
			return fmt.Errorf("leaving out faults: there is no fault %q: want one of %s", name, strings.Join(known, ", "))
		}
		gone := t.Faults[i]
		t.Faults = slices.Delete(t.Faults, i, i+1)
		for _, list := range [][]Item{t.Faults, t.Loads} {
			for j := range list {
				if list[j].After == nil || list[j].After.Name != name {
					continue
				}
				plus := list[j].After.Plus
				if gone.After != nil {
					list[j].After = &After{Name: gone.After.Name, Plus: gone.After.Plus + plus}
				} else {
					list[j].After, list[j].At = nil, gone.At+plus
				}
			}
		}
		t.Deviates = append(t.Deviates, fmt.Sprintf("fault %s is left out", name))
	}
	return nil
}
