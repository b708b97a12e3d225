package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/event"
)

// state is what became of a trial, by its pods and its Job.
type state struct {
	done     bool   // its bundle was pushed
	bundle   string // its digest; "" if the pod that knew is gone
	manifest string // of the bundle; "" likewise
	verdict  string
	node     string
	pod      string // it runs, and its bundle waits there to be fetched
	lost     string // why it has no bundle and will have none
	ended    string // the pod that lost it; "" if no pod is there that tells
	outside  bool   // what ended it came from outside
}

// stateOf says what became of the trial with an index. A Job's status may stand still while its pods go on, so pods count
// first. Of several pods that are done, which a node that was cut off for a while can leave, the first one counts.
func stateOf(index int, pods []*corev1.Pod, job *batchv1.Job) state {
	pods = slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	elsewhere := state{lost: "its bundle was fetched by another process, and isn't here", outside: true}
	for _, p := range pods {
		report, ended := reportOf(p)
		if waits(p) {
			return state{done: true, pod: p.Name, node: p.Spec.NodeName}
		}
		if ranShort(p) {
			return state{lost: "its node evicted it: " + p.Status.Message, ended: p.Name}
		}
		if p.Status.Phase == corev1.PodSucceeded && report != nil && report.Bundle != "" {
			if holds(p.Spec) {
				return elsewhere
			}
			return state{
				done:     true,
				bundle:   report.Bundle,
				manifest: report.Manifest,
				verdict:  report.Verdict,
				node:     p.Spec.NodeName,
			}
		}
		if p.Status.Phase == corev1.PodFailed && ended != nil && !slices.Contains(repeated, ended.ExitCode) && !disrupted(p) {
			return state{lost: why(report, ended), ended: p.Name}
		}
	}
	switch {
	case hasIndex(job.Status.CompletedIndexes, index) && holds(job.Spec.Template.Spec): // its pod is gone
		return elsewhere
	case hasIndex(job.Status.CompletedIndexes, index): // its pod is gone
		return state{done: true, verdict: "done", node: "a node that is gone"}
	case slices.ContainsFunc(pods, goesOn): // the Job's status may be seen before its last pod's
	case job.Status.FailedIndexes != nil && hasIndex(*job.Status.FailedIndexes, index):
		s := state{lost: "the Job gave it up, and its pods are gone"}
		for _, p := range pods {
			if report, ended := reportOf(p); ended != nil {
				s = state{
					lost:    why(report, ended),
					ended:   p.Name,
					outside: slices.Contains(repeated, ended.ExitCode),
				}
			}
		}
		return s
	}
	return state{}
}

func goesOn(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// holds reports whether pods wait for their bundles to be fetched. They are ready then, and not before.
func holds(s corev1.PodSpec) bool {
	return len(s.Containers) > 0 && s.Containers[0].ReadinessProbe != nil
}

// waits reports whether a pod has a complete bundle that can be fetched from it.
func waits(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && holds(p.Spec) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// why says how a recorder ended that pushed no bundle.
func why(report *Report, ended *corev1.ContainerStateTerminated) string {
	if ended.ExitCode == exitUnseen {
		return "nobody saw its recorder end: its node was powered off, or the container runtime there began anew"
	}
	s := fmt.Sprintf("its recorder ended with exit code %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" {
		s += " (" + ended.Reason + ")"
	}
	if report != nil && report.Why != "" {
		return s + ": " + report.Why
	}
	return s
}

// disrupted reports whether Kubernetes says that a pod was ended from outside: by a drain, an eviction or a lost node.
func disrupted(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// ranShort reports whether a kubelet evicted a pod because its node, or the pod itself, ran short of memory, disk or
// processes. An incident may do that, so it is not from outside, though the Job, which can't tell, repeats it.
func ranShort(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted"
}

// hasIndex reports whether a Job's list of indices, such as "0-2,7", has one.
func hasIndex(list string, index int) bool {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil && low <= index && index <= high {
			return true
		}
	}
	return false
}

// unreachable is the reason of a disruption by a node that didn't answer for minutes. The pod stays until the node is back
// or its Node object is gone.
const unreachable = "DeletionByTaintManager"

// explain says once what keeps pods from running, with the next step.
func (r *Run) explain(pods []*corev1.Pod, job *batchv1.Job) {
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		r.say(
			"suspended",
			event.Note,
			"the Job is suspended: its trials begin once a queue admits it, or kubectl -n "+r.Job.Namespace+
				` patch job `+r.Name+` --type=merge -p '{"spec":{"suspend":false}}'`,
		)
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Type == batchv1.JobFailed {
			r.say("failed "+c.Reason, event.Warning, "the Job failed: "+c.Reason+", "+c.Message)
		}
	}
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				r.say(
					"unschedulable "+c.Message,
					event.Warning,
					"a pod can't be placed yet: "+c.Message+" (a lower --parallelism or --memory needs less)",
				)
			}
			if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && !ranShort(p) {
				text := fmt.Sprintf("the pod %s on %s was disrupted (%s): its trial begins again once the pod has ended",
					p.Name, p.Spec.NodeName, c.Message)
				if c.Reason == unreachable {
					text += "; where that node is off for good, kubectl delete node " + p.Spec.NodeName + " ends it"
				}
				r.say("disrupted "+p.Name, event.Warning, text)
			}
		}
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if w := c.State.Waiting; w != nil && strings.Contains(w.Reason, "Image") {
				r.say("image "+w.Reason+w.Message, event.Warning, fmt.Sprintf("the image can't be pulled by %s (%s): %s; nodes need to reach the registry, "+
					"and a login (--registry-secret) where it wants one", p.Spec.NodeName, w.Reason, w.Message))
			}
		}
		for _, c := range p.Status.ContainerStatuses {
			if t := c.State.Terminated; t != nil && slices.Contains(repeated, t.ExitCode) && !disrupted(p) {
				report, _ := reportOf(p)
				r.say(
					"again "+p.Name,
					event.Warning,
					fmt.Sprintf(
						"the pod %s left no evidence by no doing of its trial, which begins again: %s",
						p.Name,
						why(report, t),
					),
				)
			}
		}
	}
}
