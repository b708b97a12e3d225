package verdict

import (
	"bufio"
	"encoding/json"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// neverReady reports whether an arm failed to start although another arm was Ready at the end of its steady state. The
// arm was watched through its steady state and wasn't Ready at the end, and either it was never seen Ready or it never
// got past its steady state. Ready is the node's condition, the subject's own answer to /readyz, or, if arms share
// nodes, the state of the container in the arm's own pod.
func neverReady(v bundle.View, t plan.Trial, c plan.Arm) bool {
	ways := []func(bundle.View, string) readiness{nodeReady, answersReady}
	if t.Place().SharedNodes() {
		ways = []func(bundle.View, string) readiness{func(v bundle.View,
			arm string) readiness {
			return containerReady(v, arm, t.Subject)
		}}
	}
	for _, ready := range ways {
		own := ready(v, c.Name)
		_, went := v.Phase(c.Name, check.Baseline)
		if !own.watched || own.atEnd || own.ever && went {
			continue
		}
		if slices.ContainsFunc(t.Arms, func(o plan.Arm) bool { return o.Name != c.Name && ready(v, o.Name).atEnd }) {
			return true
		}
	}
	return false
}

// readiness is what was seen of an arm in its steady state.
type readiness struct {
	ever    bool // the arm was Ready at some time, perhaps with the build that its node began with
	atEnd   bool // the arm was Ready when the steady state ended
	watched bool // nobody looked away for longer than question.MaxIdentityGap
}

// nodeReady returns the readiness of an arm's node, by its conditions.
func nodeReady(v bundle.View, arm string) (r readiness) {
	steady, begun := v.Phase(arm, check.Steady)
	if !begun || steady.End.IsZero() {
		return r
	}
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Nodes, Arm: arm}) {
		whole := lines(v, a, func(s bundle.NodeStatus) {
			if s.Time.After(steady.End) {
				return
			}
			r.atEnd = s.Status == "True"
			r.ever = r.ever || r.atEnd
		})
		if !whole {
			return readiness{}
		}
		r.watched = r.watched ||
			a.Coverage.Covers(steady.Start, steady.End, question.MaxIdentityGap)
	}
	return r
}

// containerReady returns the readiness of a subject's container, as the kubelet reports it. The
// pod that was seen last for the first time counts, by its latest status: the end of a pod that was
// replaced may be told after the new one's start, or never.
func containerReady(v bundle.View, arm, subject string) (r readiness) {
	steady, begun := v.Phase(arm, check.Steady)
	if !begun || steady.End.IsZero() {
		return r
	}
	first, latest := map[string]time.Time{}, map[string]bool{} // by pod: since when, and whether it is Ready
	newest := time.Time{}
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Statuses, Arm: arm}) {
		whole := lines(v, a, func(s bundle.ContainerStatus) {
			if s.Container != subject || s.Time.After(steady.End) {
				return
			}
			if _, seen := first[s.Pod]; !seen {
				first[s.Pod] = s.Time
				newest = question.LaterOf(newest, s.Time)
			}
			latest[s.Pod] = s.Ready
			r.ever = r.ever || s.Ready
		})
		if !whole {
			return readiness{}
		}
		r.watched = r.watched ||
			a.Coverage.Covers(steady.Start, steady.End, question.MaxIdentityGap)
	}
	for pod, is := range latest {
		r.atEnd = r.atEnd || is && first[pod].Equal(newest)
	}
	return r
}

// answersReady returns the readiness by the subject's own answers to /readyz. No answer counts as not ready.
func answersReady(v bundle.View, arm string) (r readiness) {
	steady, begun := v.Phase(arm, check.Steady)
	if !begun || steady.End.IsZero() {
		return r
	}
	last, gap, samples := steady.Start, time.Duration(0), 0
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Health, Arm: arm}) {
		whole := lines(v, a, func(s bundle.HealthSample) {
			if s.Path != "/readyz" || s.Time.Before(steady.Start) || s.Done.After(steady.End) {
				return
			}
			samples++
			gap, last = max(gap, s.Time.Sub(last)), s.Done
			r.atEnd = s.Code == 200
			r.ever = r.ever || r.atEnd
		})
		if !whole {
			return readiness{}
		}
	}
	r.watched = samples > 0 && max(gap, steady.End.Sub(last)) <= question.MaxIdentityGap
	return r
}

// lines calls each with every record of a stream, and reports whether all of the stream could be read.
func lines[T any](v bundle.View, a bundle.Artifact, each func(T)) bool {
	r, err := v.Open(a)
	if err != nil {
		return false
	}
	defer r.Close()
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var one T
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return false
		}
		each(one)
	}
	return in.Err() == nil
}
