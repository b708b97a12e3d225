package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/version"
)

// rules collects complaints that concern several fields. A field that the schema already complained about, listed in
// known, gets no further complaint.
type rules struct {
	s     *Scenario
	known []complaint
	out   []complaint
}

// related applies every rule that a schema can't express. folder is the name of the file's folder, "" if unknown.
func related(s *Scenario, folder string, known []complaint) []complaint {
	r := &rules{s: s, known: known}
	if folder != "" && s.Metadata.Name != "" && s.Metadata.Name != folder {
		r.add("metadata.name", "%q is not the folder's name (want %s)", s.Metadata.Name, folder)
	}
	r.version("spec.version", s.Spec.Version)
	r.relapse(s.Spec.Relapse)
	r.parameters()
	r.oracle()
	r.subject()
	r.components()
	r.unique("spec.seams", "seam", s.Spec.Seams)
	r.onProviders("spec.providers", s.Spec.Providers, providers.All)
	r.unique(
		"spec.constants",
		"constant",
		each(s.Spec.Constants, func(c Constant) string { return c.Name }),
	)
	for i, c := range s.Spec.Constants {
		r.foreign(fmt.Sprintf("spec.constants.%d.package", i), c.Package)
	}
	r.unique(
		"spec.collectors",
		"collector",
		each(s.Spec.Collectors, func(c Collector) string { return c.Name }),
	)
	for i, c := range s.Spec.Collectors {
		r.spec(kinds.Collector, c.Kind, c.Spec, "spec.collectors."+strconv.Itoa(i))
		r.onProviders(
			"spec.collectors."+strconv.Itoa(i)+".providers",
			c.Providers,
			s.Spec.RunsOn(),
		)
		r.component("spec.collectors."+strconv.Itoa(i)+".component", c.Component)
	}
	r.workload()
	r.pairs()
	r.items()
	r.phases()
	for _, l := range s.Spec.CheckLists() {
		r.checks("spec."+l.Name, l.Phase, *l.Checks)
	}
	r.match()
	r.survey()
	return r.out
}

// add records a complaint about the field at path, whose steps are joined by dots.
func (r *rules) add(path, format string, args ...any) {
	r.violate(strings.Split(path, "."), format, args...)
}

func (r *rules) violate(path []string, format string, args ...any) {
	meant := func(c complaint) bool { // there is something, under a misspelt name
		return len(c.means) > 0 && len(c.means) <= len(path) &&
			slices.Equal(c.means, path[:len(c.means)])
	}
	if !under(r.known, path...) && !slices.ContainsFunc(r.known, meant) {
		r.out = append(r.out, complaint{path: path, message: fmt.Sprintf(format, args...)})
	}
}

// about is violate for a key that doesn't belong there: the complaint is shown at the key.
func (r *rules) about(path []string, format string, args ...any) {
	n := len(r.out)
	if r.violate(path, format, args...); len(r.out) > n {
		r.out[n].about = path
	}
}

func each[T any](in []T, name func(T) string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = name(v)
	}
	return out
}

// unique complains about each name that occurs in the list a second time.
func (r *rules) unique(list, what string, names []string) {
	for i, name := range names {
		if first := slices.Index(names, name); name != "" && first < i {
			path := fmt.Sprintf("%s.%d", list, i)
			if what != "seam" {
				path += ".name"
			}
			r.add(path, "%s %q is named twice (first in %s[%d])", what, name, list, first)
		}
	}
}

// relapse checks that this program is not too old for the scenario.
func (r *rules) relapse(need string) {
	if have := version.Relapse(); version.Older(have, need) {
		r.add(
			"spec.relapse",
			"the scenario needs relapse %s or later, and this is %s",
			need,
			have,
		)
	}
}

func lower(err error) string {
	s := err.Error()
	return strings.ToLower(s[:1]) + s[1:]
}

func (r *rules) pairs() {
	pairs := r.s.Spec.Pairs
	r.unique("spec.pairs", "pair", each(pairs, func(p Pair) string { return p.Name }))
	var defaults []string
	for i, p := range pairs {
		if p.Default {
			defaults = append(defaults, p.Name)
			if len(defaults) > 1 {
				r.add(
					fmt.Sprintf("spec.pairs.%d.default", i),
					"is a second default beside %q (want exactly one)",
					defaults[0],
				)
			}
		}
		r.arms(fmt.Sprintf("spec.pairs.%d", i), p)
		r.args([]string{"spec", "pairs", strconv.Itoa(i), "args"}, p.Args)
		r.settings([]string{"spec", "pairs", strconv.Itoa(i), "set"}, p.Set)
		if p.ClusterVersion != "" && r.s.Spec.Placement != "cluster" {
			r.add(
				fmt.Sprintf("spec.pairs.%d.clusterVersion", i),
				"is for placement cluster, and this is placement %s (want version, for all "+
					"pairs)",
				r.s.Spec.Placement,
			)
		}
	}
}

func (r *rules) arms(path string, p Pair) {
	r.unique(path+".arms", "arm", each(p.Arms, func(a Arm) string { return a.Name }))
	of := map[string]int{}
	for _, a := range p.Arms {
		of[a.Role]++
	}
	if len(p.Arms) > 0 && (of[Vulnerable] != 1 || of[Fixed] != 1) {
		r.add(
			path+".arms",
			"pair %q has %d arms of role vulnerable and %d of role fixed (want exactly one of each)",
			p.Name,
			of[Vulnerable],
			of[Fixed],
		)
	}
	for i, a := range p.Arms {
		at := fmt.Sprintf("%s.arms.%d.source", path, i)
		builds := a.Source.Builds()
		for n, s := range builds {
			in := at
			if n < len(builds)-1 {
				in = fmt.Sprintf("%s.before.%d", at, n)
			}
			r.source(in, s)
			if n > 0 && reflect.DeepEqual(s, builds[n-1]) && !under(r.known, strings.Split(path+".arms", ".")...) {
				r.add(fmt.Sprintf("%s.before.%d", at, n-1), "is the same source as the build after it: nothing would be replaced")
			}
		}
		for j, b := range p.Arms[:i] {
			if reflect.DeepEqual(a.Source, b.Source) && a.Source.Module+a.Source.Fixture != "" &&
				!under(r.known, strings.Split(path+".arms", ".")...) {
				r.add(
					at,
					"is the same source as that of arms[%d]: two arms that don't differ prove nothing",
					j,
				)
			}
		}
		if strings.EqualFold(a.Name, "shared") {
			r.add(fmt.Sprintf("%s.arms.%d.name", path, i),
				"shared is the name of what belongs to no arm (want another name)")
		}
		r.ownName(fmt.Sprintf("%s.arms.%d.name", path, i), a.Name)
	}
}

// ownName refuses a name by which reports would take a scenario's own arm for a build that a user gave.
func (r *rules) ownName(path, name string) {
	if IsGiven(name) {
		r.add(path, "%q is a name of builds that are given on the command line (want one that is not %s and does "+
			"not begin with %s)", name, Candidate, GivenPrefix)
	}
}

// spec decodes the spec of a kind over the kind's defaults and lets the kind validate it.
func (r *rules) spec(category, kind string, spec json.RawMessage, path string) {
	e, ok := kinds.Lookup(category, kind)
	if !ok || under(r.known, append(strings.Split(path, "."), "spec")...) {
		return
	}
	v := e.New()
	if len(spec) > 0 {
		if err := kinds.DecodeStrictly(spec, v); err != nil {
			r.add(path+".spec", "%s", err)
			return
		}
	}
	c, ok := v.(interface{ Validate() error })
	if !ok {
		return
	}
	at := append(strings.Split(path, "."), "spec")
	for _, err := range kinds.Each(c.Validate()) {
		var of *kinds.FieldError
		if errors.As(err, &of) {
			field := strings.NewReplacer("[", ".", "]", "").Replace(of.Field)
			r.violate(slices.Concat(at, strings.Split(field, ".")), "%s", of.Err)
			continue
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.violate(slices.Concat(at, begins(line, spec)), "%s", line)
		}
	}
}

// begins returns the path to the field of spec that a kind's complaint begins with, nil if it begins with none. Several
// fields may follow each other, each from the one before it: steps[2]: expression, line 1.
func begins(complaint string, spec json.RawMessage) (path []string) {
	var value any
	if json.Unmarshal(spec, &value) != nil {
		return nil
	}
	for {
		word, rest, _ := strings.Cut(complaint, " ")
		name := strings.NewReplacer("[", ".", "]", "").Replace(strings.TrimRight(word, ":,"))
		steps := strings.Split(name, ".")
		if value = lookup(value, steps); value == nil {
			return path
		}
		path, complaint = append(path, steps...), rest
		if !strings.HasSuffix(word, ":") {
			return path
		}
	}
}

func (r *rules) phases() {
	p := r.s.Spec.Phases
	for _, w := range []struct {
		name     string
		wait     DurationRange
		deadline bool
	}{{"steady", p.Steady, true}, {"baseline", p.Baseline, false}, {"fault", p.Fault, true}, {"recovery", p.Recovery,
		true}} {
		path, least, most := "spec.phases."+w.name, w.wait.AtLeast.Duration, w.wait.Deadline.Duration
		switch {
		case w.deadline && most == 0:
			r.add(path, "has no deadline (want deadline: how long it may last, for example 5m)")
		case !w.deadline && least == 0:
			r.add(path, "has no length (want atLeast: how long it lasts, for example 10s)")
		case most > 0 && most < least:
			r.add(path+".deadline", "%s is shorter than atLeast %s", most, least)
		}
	}
	if b := r.s.Spec.Budget; b != nil && b.Duration <= 0 {
		r.add("spec.budget", "is 0 (want the time that a nightly has for it: 1h30m)")
	}
	if re := r.s.Spec.Restart; re != nil && re.ReadyWithin.Duration <= 0 {
		r.add(
			"spec.restart.readyWithin",
			"is 0 (want the time in which the subject must be ready)",
		)
	}
}

func (r *rules) deadline(phase string) time.Duration { return r.s.Spec.Phases.Longest(phase) }

// Longest returns the longest time that a phase can last, 0 if there is no such phase.
func (p Phases) Longest(phase string) time.Duration {
	w := map[string]DurationRange{"steady": p.Steady, "baseline": p.Baseline, "fault": p.Fault, "recovery": p.Recovery}[phase]
	return max(w.Deadline.Duration, w.AtLeast.Duration)
}

// Length returns the value of d, or 0 if d is nil.
func Length(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
