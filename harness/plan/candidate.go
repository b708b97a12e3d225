package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// candidate returns c as a further arm of pair. doubts name what a run can't know about it.
func candidate(
	pair scenario.Pair,
	arms []scenario.Arm,
	c Candidate,
) (arm scenario.Arm, doubts []string, err error) {
	if c.Known == nil {
		arm, doubts = given(arms, *c.Source)
		arm.Name = ArmOf(c.Of)
	} else if arm, err = c.Known.Arm(pair); err != nil {
		return arm, nil, err
	} else if !c.Known.For(pair.Name) {
		return arm, nil, fmt.Errorf("adding the candidate %s: it is made for %s", arm.Name,
			strings.Join(c.Known.Spec.Pairs, ", "))
	}
	if slices.ContainsFunc(arms, func(a scenario.Arm) bool { return a.Name == arm.Name }) {
		return arm, nil, fmt.Errorf(
			"adding the candidate %s: the pair has an arm of that name already",
			arm.Name,
		)
	}
	return arm, doubts, nil
}

// ArmOf returns the name of the arm of a candidate with a Source, which Candidate.Of sets apart.
func ArmOf(of string) string {
	if of == "" {
		return scenario.Candidate
	}
	return scenario.GivenPrefix + strings.ReplaceAll(of, ".", "-")
}

// given returns the arm of a source that the user gave. Fields that s leaves open come from the fixed arm.
func given(arms []scenario.Arm, s scenario.Source) (arm scenario.Arm, doubts []string) {
	i := slices.IndexFunc(arms, func(a scenario.Arm) bool { return a.Role == scenario.Fixed })
	fixture := i >= 0 && arms[i].Source.Fixture != ""
	switch {
	case s.Given() && s.Version == "" && !fixture:
		doubts = append(
			doubts,
			"the candidate doesn't say its version, so whether it fits its cluster's is unknown",
		)
	case s.Given() || i < 0:
	default:
		fixed := arms[i].Source
		if s.Version == "" && s.Module != "" && fixed.Version != "" {
			doubts = append(
				doubts,
				fmt.Sprintf(
					"the version of the candidate can't be told: it is stamped %s as the fixed arm is, and whether "+
						"it fits its cluster's is unknown",
					fixed.Version,
				),
			)
		}
		if s.Module == "" && s.Dir == "" {
			s.Fixture, s.Dir, s.Tree = fixed.Fixture, fixed.Dir, fixed.Tree
		}
		s.Module, s.Package, s.Version = cmp.Or(s.Module, fixed.Module), cmp.Or(s.Package,
			fixed.Package), cmp.Or(s.Version, fixed.Version)
		if s.Release == nil {
			doubts = append(doubts, doubtStandIns(s)...)
			s.Unoptimized, s.Race = fixed.Unoptimized, fixed.Race
			s.Replace = union(fixed.Replace, s.Replace)
		}
	}
	if i >= 0 { // the candidate stands for the last build
		s.Before = arms[i].Source.Before
	}
	return scenario.Arm{Name: scenario.Candidate, Role: scenario.Candidate, Source: s}, doubts
}

// doubtStandIns says which modules a candidate has of another release, because they can't be had of its own.
func doubtStandIns(s scenario.Source) []string {
	if len(s.Replace) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the candidate %s is built with stand-ins for what can't be had of it:%s",
		s.Version, withModules(s.Replace))}
}

// union returns what either maps, and of what both map the second's; nil if neither maps anything.
func union(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// doubtPatch says that nothing shows what a candidate does without its patch, unless an arm does; "" for a candidate
// without one. That arm is the vulnerable one, if everything that goes into its build is as the candidate's without the
// patch: the version alone says nothing of replaced modules. With swapped builds it is none.
func doubtPatch(arms []scenario.Arm, s scenario.Source, swap map[string]string) string {
	if s.Patch == "" {
		return ""
	}
	bare := s
	bare.Patch, bare.PatchSum, bare.Dir = "", "", ""
	want, err := json.Marshal(bare) // so that an empty list is none
	if err == nil && len(swap) == 0 && slices.ContainsFunc(arms, func(a scenario.Arm) bool {
		have, err := json.Marshal(a.Source)
		return err == nil && a.Role == scenario.Vulnerable && bytes.Equal(have, want)
	}) {
		return ""
	}
	return fmt.Sprintf(
		"what %s does without the patch was not tried: it may have no need of it (--candidate %s tries it)",
		s.Version,
		s.Version,
	)
}

// VersionOf returns the version of an arm's source, "" if it isn't known. A candidate that says none has the fixed arm's in
// the plan, for its stamps, and that is not its own.
func (t *Trial) VersionOf(a Arm) string {
	unsaid := func(d Deviation) bool { return d.Code == CodeDoubt && wasDoubt.MatchString(d.Text) }
	if cmp.Or(a.BuildOf, a.Name) == scenario.Candidate && slices.ContainsFunc(t.Deviates, unsaid) {
		return ""
	}
	return a.Source.Version
}

// validateControl refuses a candidate without the vulnerable arm in the same trial: nothing would show that the trial
// brings the incident back.
func (t *Trial) validateControl() error {
	if !t.has(scenario.Candidate) || t.has(scenario.Vulnerable) {
		return nil
	}
	var arms []string
	for _, c := range t.Arms {
		arms = append(arms, c.Name)
	}
	return fmt.Errorf(
		"a candidate is judged by what the vulnerable arm shows in the same trial, and the only arms are %s: "+
			"add the vulnerable arm to --arms, or leave --arms out to run them all",
		strings.Join(arms, ", "),
	)
}

// controls returns the arms of the trial's pair, the fixed ones first. It includes arms that don't take part.
func (t *Trial) controls(s *scenario.Scenario) []scenario.Arm {
	var fixed, rest []scenario.Arm
	for _, p := range s.Spec.Pairs {
		for _, a := range p.Arms {
			switch {
			case p.Name != t.Pair:
			case a.Role == scenario.Fixed:
				fixed = append(fixed, a)
			default:
				rest = append(rest, a)
			}
		}
	}
	return append(fixed, rest...)
}

// clusterVersion returns the version of an arm's own cluster: normally that of the arm, or that of the pair's clusters. The other components may not
// exist in the version of an unpublished candidate, unless it is a patch upon a release. So its cluster gets the closest
// version of the pair's arms within the same minor version. If there is none, or the candidate's version is unknown, its
// cluster gets the fixed arm's version.
func clusterVersion(c Arm, spec string, controls []scenario.Arm) string {
	own := c.Source
	if c.Role != scenario.Candidate || own.Published() || own.Patch != "" || len(controls) == 0 {
		return cmp.Or(own.Version, spec)
	}
	best, distance := cmp.Or(controls[0].Source.Version, spec), -1
	v, err := semver.ParseTolerant(own.Version)
	if err != nil {
		return best
	}
	for _, a := range controls {
		o, err := semver.ParseTolerant(a.Source.Version)
		if err != nil || o.Major != v.Major || o.Minor != v.Minor {
			continue
		}
		if d := max(o.Patch, v.Patch) - min(o.Patch, v.Patch); distance < 0 || int(d) < distance {
			best, distance = a.Source.Version, int(d)
		}
	}
	return best
}

// pairVersion returns the version of the cluster of an arm of a pair, which would be of version would: the pair's own, if it
// says one in which the arm may run.
func pairVersion(s *scenario.Scenario, pair string, c Arm, would string) string {
	i := slices.IndexFunc(s.Spec.Pairs, func(p scenario.Pair) bool { return p.Name == pair && p.ClusterVersion != "" })
	if i < 0 || fits(s.Spec.Subject, cmp.Or(c.Source.Version, would), s.Spec.Pairs[i].ClusterVersion) != "" {
		return would
	}
	return s.Spec.Pairs[i].ClusterVersion
}

// skew refuses candidates whose version is too far from the rest of their cluster, by Kubernetes' version skew policy
// (https://kubernetes.io/releases/version-skew-policy/). A candidate of unknown version is allowed.
func (t *Trial) skew() error {
	for _, c := range t.Arms {
		in := t.ClusterOf(c.Name)
		if in == nil || t.Place().SharedNodes() || c.Role != scenario.Candidate {
			continue
		}
		if want := fits(t.Subject, c.Source.Version, in.Topology.Version); want != "" {
			return fmt.Errorf(
				"the candidate is %s %s, and its cluster %s: %s",
				t.Subject,
				c.Source.Version,
				in.Topology.Version,
				want,
			)
		}
	}
	return nil
}

// fits returns which versions a component must have in a cluster of version cluster. It returns "" if version may run
// there or nobody can tell.
func fits(subject, version, cluster string) string {
	v, err1 := semver.ParseTolerant(version)
	c, err2 := semver.ParseTolerant(cluster)
	if version == "" || err1 != nil || err2 != nil {
		return ""
	}
	row, known := component.Of(subject)
	if !known || row.Older < 0 {
		return ""
	}
	older := row.Older
	if until := row.OlderUntil; until != nil && c.Minor < until.Minor {
		older = until.Older
	}
	if v.Major == c.Major && v.Minor <= c.Minor && int(c.Minor-v.Minor) <= older {
		return ""
	}
	if older == 0 {
		return fmt.Sprintf(
			"want v%d.%d, the minor version of the rest of the control plane (another pair may have "+
				"it: --pair)",
			c.Major,
			c.Minor,
		)
	}
	minors := []string{}
	for m := int(c.Minor) - older; m <= int(c.Minor); m++ {
		minors = append(minors, fmt.Sprintf("v%d.%d", c.Major, m))
	}
	return fmt.Sprintf(
		"a %s may be up to %d minor versions older than its API server and never newer; want one of "+
			"%s, or another cluster with --set version=%s",
		subject,
		older,
		strings.Join(minors, ", "),
		version,
	)
}

// readable refuses faults that depend on constants if no arm has a source to read them from.
func (t *Trial) readable() error {
	if t.NoFaults || slices.ContainsFunc(t.Arms, func(c Arm) bool { return !c.Source.Given() }) {
		return nil
	}
	for _, f := range t.Faults {
		if names := f.Spec.Needs().Constants; len(names) > 0 {
			return fmt.Errorf(
				"the fault %s follows from %s, which is read from the arms' sources, and every arm is "+
					"an executable: want a control beside it (--arms)",
				f.Name,
				strings.Join(names, " and "),
			)
		}
	}
	return nil
}
