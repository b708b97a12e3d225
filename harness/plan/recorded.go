package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// ownArtifacts are the kinds of evidence that relapse itself records of every arm.
var ownArtifacts = []bundle.Kind{bundle.Identity, bundle.Host, bundle.Restart}

// ofArm lists the kinds of evidence that checks look for in the arm's own evidence only, even if arms share a cluster.
var ofArm = []bundle.Kind{bundle.Logs, bundle.Statuses, bundle.MetricSamples, bundle.Health, bundle.Goroutines1,
	bundle.Goroutines2, bundle.Heap, bundle.CPU, bundle.Journal}

// ofSubject lists the kinds of evidence that checks take for the subject's, whatever process it is of.
var ofSubject = []bundle.Kind{
	bundle.Goroutines1,
	bundle.Goroutines2,
	bundle.Heap,
	bundle.CPU,
	bundle.Journal,
}

// chosen maps what a spec can refer to to the kind of evidence of which it is a part, and says what to call that part.
var chosen = map[string]struct {
	kind bundle.Kind
	noun string
}{
	kinds.ToLog: {
		bundle.Logs,
		"the log of %s",
	},
	kinds.ToStatus: {bundle.Statuses, "the status of the container %s"},
	kinds.ToMetric: {
		bundle.MetricSamples,
		"the metric %s",
	},
	kinds.ToObjects: {bundle.Objects, "the objects of %s"},
	kinds.ToHealth:  {bundle.Health, "the answers of %s"},
}

// record is one kind of evidence that a trial records.
type record struct {
	kind   bundle.Kind
	shared bool     // it belongs to no arm
	other  string   // the component that it is of, if that isn't the subject
	parts  []string // of which it is all; nil for no limit
}

// records returns what collectors, loads and faults record, and what relapse itself does.
func (t *Trial) records() []record {
	var out []record
	add := func(r record, all []bundle.Kind) {
		for _, k := range all {
			r.kind = k
			out = append(out, r)
		}
	}
	add(record{}, ownArtifacts)
	if t.Place().SharedNodes() {
		out = append(out, record{kind: bundle.Statuses, parts: []string{t.Subject}})
	}
	for _, c := range t.Collectors {
		out = append(out, t.recordsOf(c)...)
	}
	for _, l := range t.Loads {
		add(record{}, l.Spec.Makes())
	}
	for _, f := range t.Faults {
		if maker, ok := f.Spec.(fault.Maker); ok {
			add(record{}, maker.Makes())
		}
	}
	return out
}

// RecordsStatus reports whether the trial records each arm's statuses of a container.
func (t *Trial) RecordsStatus(container string) bool {
	return slices.ContainsFunc(t.records(), func(r record) bool {
		return r.kind == bundle.Statuses && !r.shared && r.has(container)
	})
}

// recordsOf returns what a collector records.
func (t *Trial) recordsOf(c Collector) []record {
	wide, ok := c.Spec.(capture.ClusterWide)
	one := record{
		shared: !t.Place().OwnCluster() && (ok && wide.ClusterWide() || c.Component != ""),
	}
	if c.Component != t.Subject {
		one.other = c.Component
	}
	var out []record
	for _, k := range c.Spec.Makes() {
		one.kind, one.parts = k, nil
		for _, r := range kinds.References(c.Spec) {
			if chosen[r.To].kind == k && r.Name != "" {
				one.parts = append(one.parts, r.Name)
			}
		}
		if k == bundle.Statuses && t.Place().SharedNodes() {
			one.parts = []string{t.Subject} // whatever it names
		}
		out = append(out, one)
	}
	return out
}

// has reports whether the record has a part. The series of a histogram or summary belong to the family of their name.
func (r record) has(part string) bool {
	if part == "" || r.parts == nil || slices.Contains(r.parts, part) {
		return true
	}
	for _, suffix := range []string{"_count", "_sum"} {
		if family, ok := strings.CutSuffix(part, suffix); ok && r.kind == bundle.MetricSamples &&
			slices.Contains(r.parts, family) {
			return true
		}
	}
	return false
}

// unread says why nothing is recorded that answers a question about a kind of evidence, and about a part of it unless
// that is "". It returns nil if something is.
func unread(all []record, kind bundle.Kind, part, noun string) error {
	var why error
	var known []string
	for _, r := range all {
		switch {
		case r.kind != kind:
		case r.shared && slices.Contains(ofArm, kind):
			why = fmt.Errorf(
				"reads %s, which is recorded of what the arms share, and of no arm",
				kind,
			)
		case r.other != "" && slices.Contains(ofSubject, kind):
			why = fmt.Errorf(
				"reads %s of the subject, which is recorded of %s only",
				kind,
				r.other,
			)
		case r.has(part):
			return nil
		default:
			known = append(known, r.parts...)
		}
	}
	switch {
	case len(known) > 0:
		slices.Sort(known)
		return fmt.Errorf("reads %s, which no collector follows %s", fmt.Sprintf(noun, part),
			scenario.OneOf(part, slices.Compact(known)))
	case why != nil:
		return why
	case len(makers(kind)) == 0:
		return fmt.Errorf("reads %s, which no collector makes", kind)
	}
	return fmt.Errorf("reads %s, which no collector makes (want a collector of kind %s)", kind,
		strings.Join(makers(kind), " or "))
}

// makers returns the kinds of collectors that make a kind of evidence.
func makers(kind bundle.Kind) (out []string) {
	for _, e := range kinds.Of(kinds.Collector) {
		if c, ok := e.New().(capture.Collector); ok && slices.Contains(c.Makes(), kind) {
			out = append(out, e.Name)
		}
	}
	return out
}
