package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// looked reports whether somebody has looked which process an arm's subject is, and which program that process runs. On
// a busy host that takes many seconds. If the steady state ended before, a short baseline would begin without a sample.
// A look that found no process is no first look.
func (l *live) looked(arm string) bool {
	for _, a := range l.writer.View().Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm}) {
		if a.Error != "" {
			continue
		}
		if lacks := l.unidentified(a); lacks != "" {
			l.pending.set(
				arm,
				pending{
					"a first look at which process the subject is",
					"identity is unknown: " + lacks,
				},
			)
			return false
		}
	}
	return true
}

// unidentified says what the looks at a process lack; "" if nothing.
func (l *live) unidentified(a bundle.Artifact) string {
	all, err := question.Records[bundle.IdentitySample](l.writer.View(), a)
	if !l.asked(err) {
		return err.Error()
	}
	if len(all) == 0 {
		return "nobody has looked yet which process it is"
	}
	last := all[len(all)-1]
	switch {
	case last.PID == 0:
		return "the last look, at " + question.Clock(last.Time) + ", found no process"
	case !slices.ContainsFunc(all, func(s bundle.IdentitySample) bool { return s.SHA256 != "" && s.SameProcess(last) }):
		return fmt.Sprintf("nobody has looked yet which program process %d runs", last.PID)
	}
	return ""
}

// reported reports whether the evidence has a status of the container that the subject of an arm runs in, on each of
// its nodes. A kubelet reports a container 20 to 30 seconds after it started it, and until then it reports the one
// before. since is when the harness last restarted the subject: a container that started earlier is the one before.
// If the steady state ended earlier, a short baseline would have no status, or that of another container. Where no
// collector follows the container there is nothing to wait for.
func (l *live) reported(arm string, since time.Time) bool {
	subject := l.plan.Subject
	if !l.plan.RecordsStatus(subject) {
		return true
	}
	lacking := map[string]string{} // by node; "" is nothing
	for _, a := range l.writer.View().Artifacts(bundle.Query{Kind: bundle.Statuses, Arm: arm}) {
		lacks := ""
		if a.Error == "" { // a collector that failed will never record anything
			lacks = l.unreported(a, subject, since)
		}
		if was, known := lacking[a.Node]; !known || was != "" {
			lacking[a.Node] = lacks
		}
	}
	if len(lacking) == 0 {
		lacking[""] = "nobody has looked yet"
	}
	for _, node := range slices.Sorted(maps.Keys(lacking)) {
		if lacking[node] != "" {
			l.pending.set(arm, pending{"a first status of the subject's container",
				"the status of the container " + subject + " is unknown: " + lacking[node]})
			return false
		}
	}
	return true
}

// unreported says what a stream of statuses lacks of a container that was started after since; "" if nothing. Each pod
// counts by its latest status, and one pod that runs the container is enough: of a pod that was replaced, the end may be
// told after the new one's start.
func (l *live) unreported(a bundle.Artifact, container string, since time.Time) string {
	all, err := question.Records[bundle.ContainerStatus](l.writer.View(), a)
	if !l.asked(err) {
		return err.Error()
	}
	latest := map[string]bundle.ContainerStatus{} // by pod
	lacks := "none was reported yet"
	for _, s := range all {
		if s.Container == container {
			latest[s.Pod], lacks = s, notRunning(s, since)
		}
	}
	for _, s := range latest {
		if notRunning(s, since) == "" {
			lacks = ""
		}
	}
	if lacks == "" && (a.Coverage == nil || a.Coverage.First.IsZero()) {
		return "no look found the statuses of all containers that are asked for"
	}
	return lacks
}

// notRunning says why a status is none of a running container that was started after since; "" if it is one.
func notRunning(s bundle.ContainerStatus, since time.Time) string {
	switch {
	case s.State != "running" || s.ID == "":
		return fmt.Sprintf(
			"it was %s at %s (%s)",
			s.State,
			question.Clock(s.Time),
			cmp.Or(s.Reason, "no reason"),
		)
	case !s.Started.IsZero() && s.Started.Before(since.Truncate(time.Second)): // told in whole seconds
		return fmt.Sprintf("the one that was reported started at %s, before the restart at %s",
			question.Clock(s.Started), question.Clock(since))
	}
	return ""
}
