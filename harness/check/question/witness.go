package question

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/metrics"
)

// OtherProcess says how an arm's subject itself shows that it was several processes in a window: by two dumps that
// can't be of one process, or by a counter that fell. It returns "" if nothing shows that, which proves nothing.
// OtherProcess complements OneProcess, which asks the kernel: to the kernel, a program that starts another one to do
// its work looks like one process.
func OtherProcess(v bundle.View, arm string, w bundle.Window) (why string, paths []string) {
	of, ok := subject(v, arm)
	if !ok {
		return "", nil
	}
	if why, paths = of.dumps(w); why == "" {
		why, paths = of.counters(w)
	}
	return why, paths
}

// witness identifies an arm's subject: one component on one node.
type witness struct {
	bundle.View
	arm, node, component string
}

// subject returns the component whose process identity was recorded. The second result is false if none was, or if
// several instances were, because any of them may have answered.
func subject(v bundle.View, arm string) (witness, bool) {
	all := v.Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm})
	if len(all) == 0 || slices.ContainsFunc(all, func(a bundle.Artifact) bool {
		return a.Node != all[0].Node || a.Component != all[0].Component
	}) {
		return witness{}, false
	}
	return witness{v, arm, all[0].Node, all[0].Component}, true
}

// artifacts returns the subject's artifacts that a query selects and that can be read, in order of time.
func (s witness) artifacts(q bundle.Query) []bundle.Artifact {
	q.Arm = s.arm
	all := slices.DeleteFunc(slices.Clone(s.Artifacts(q)), func(a bundle.Artifact) bool {
		return a.Missing || a.Error != "" || a.Node != s.node || a.Component != s.component
	})
	slices.SortStableFunc(all, func(a, b bundle.Artifact) int { return a.Time.Compare(b.Time) })
	return all
}

// dumps compares each goroutine dump of the window with the one before it.
func (s witness) dumps(w bundle.Window) (why string, paths []string) {
	var last *goroutine.Dump
	var at bundle.Artifact
	for _, a := range s.artifacts(bundle.Query{Kind: bundle.Goroutines2, From: w.Start, To: w.End}) {
		d, err := ReadDump(s, a)
		if err != nil { // a dump that can't be read shows nothing; the check that needs the dump says so
			continue
		}
		if last != nil {
			if _, differs := last.InCommon(d); differs != "" {
				return fmt.Sprintf(
						"the dumps of %s and %s are of two processes: %s",
						Clock(at.Time),
						Clock(a.Time),
						differs,
					), []string{
						at.Path,
						a.Path,
					}
			}
		}
		last, at = d, a
	}
	return "", nil
}

// askedApart is the least time between two whole answers that are compared. If two were asked for at once, nobody knows
// which one was answered first.
const askedApart = 30 * time.Second

// counters compares the subject's whole answers in the window, one for each phase, and then its samples, of which there
// are more. Samples have no types, so the whole answers say which metrics are counters.
func (s witness) counters(w bundle.Window) (why string, paths []string) {
	type answer struct {
		bundle.Artifact
		values map[string]float64
	}
	var all []answer
	names := map[string]bool{}
	for _, a := range s.artifacts(bundle.Query{Kind: bundle.Metrics, From: w.Start, To: w.End}) {
		values, err := Remember(s, a, "counters", func(_ map[string]float64, r io.Reader) (map[string]float64, error) {
			return metrics.Counters(r)
		})
		if err != nil {
			continue
		}
		all = append(all, answer{a, values})
		for key := range values {
			name, _, _ := strings.Cut(key, "{")
			names[name] = true
		}
	}
	for i, now := range all {
		before := all[:i]
		for len(before) > 0 && now.Time.Sub(before[len(before)-1].Time) < askedApart {
			before = before[:len(before)-1]
		}
		if len(before) == 0 {
			continue
		}
		was := before[len(before)-1]
		for _, key := range slices.Sorted(maps.Keys(now.values)) {
			if v, ok := was.values[key]; ok && now.values[key] < v {
				return counterFell(key, v, was.Time, now.values[key], now.Time), []string{was.Path, now.Path}
			}
		}
	}
	return s.samples(w, names)
}

// samples compares each sample of a counter with the one before it in the same stream.
func (s witness) samples(w bundle.Window, counters map[string]bool) (why string, paths []string) {
	for _, a := range s.artifacts(bundle.Query{Kind: bundle.MetricSamples}) {
		all, err := Records[bundle.MetricSample](s, a)
		if err != nil {
			continue
		}
		was := map[string]bundle.MetricSample{}
		for _, r := range all {
			if !counters[r.Name] || !Contains(w, r.Time) || !Contains(w, r.Done) {
				continue
			}
			key := metrics.Key(r.Name, r.Labels)
			if before, ok := was[key]; ok && r.Value < before.Value {
				return counterFell(key, before.Value, before.Time, r.Value, r.Time), []string{a.Path}
			}
			was[key] = r
		}
	}
	return "", nil
}

func counterFell(key string, from float64, then time.Time, to float64, now time.Time) string {
	return fmt.Sprintf(
		"the counter %s fell from %.10g at %s to %.10g at %s, which it can't do in one process",
		key,
		from,
		Clock(then),
		to,
		Clock(now),
	)
}
