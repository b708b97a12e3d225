package kubernetes

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pod is a pod of a trial, whose recorder ended with an exit code and a termination message.
func pod(name string, phase corev1.PodPhase, code int32, message string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "relapse", CreationTimestamp: metav1.NewTime(time.Unix(int64(len(name)), 0))},
		Spec: corev1.PodSpec{NodeName: "worker"}, Status: corev1.PodStatus{Phase: phase}}
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "Error"}}}}
	}
	return p
}

func TestStateOfATrial(t *testing.T) {
	const complete = `{"trial":"001","verdict":"Validated","bundle":"sha256:aa","manifest":"bb","seconds":1}`
	done := state{done: true, bundle: "sha256:aa", manifest: "bb", verdict: "Validated", node: "worker"}
	evicted := pod("a", corev1.PodFailed, 137, "")
	evicted.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	short := pod("a", corev1.PodFailed, 130, `{"why":"context canceled"}`)
	short.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet}}
	short.Status.Reason, short.Status.Message = "Evicted", "The node was low on resource: ephemeral-storage."
	killed := pod("a", corev1.PodFailed, 137, "")
	killed.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
	unseen := pod("a", corev1.PodFailed, 255, "")
	unseen.Status.ContainerStatuses[0].State.Terminated.Reason = "Unknown"
	for _, c := range []struct {
		name   string
		pods   []*corev1.Pod
		status batchv1.JobStatus
		want   state
	}{
		{name: "nothing yet"},
		{name: "a pod that runs", pods: []*corev1.Pod{pod("a", corev1.PodRunning, 0, "")}},
		{name: "a complete bundle, though the Job's status stands still", pods: []*corev1.Pod{pod("a", corev1.PodSucceeded, 0, complete)}, want: done},
		{name: "the first of two pods that are done", want: done, pods: []*corev1.Pod{
			pod("ab", corev1.PodSucceeded, 0, `{"bundle":"sha256:cc","verdict":"Broken"}`), pod("a", corev1.PodSucceeded, 0, complete)}},
		{name: "an evicted pod begins again", pods: []*corev1.Pod{evicted}},
		{name: "a pod that its node evicted is lost, though the Job made another that came out well",
			pods: []*corev1.Pod{short, pod("ab", corev1.PodSucceeded, 0, complete)},
			want: state{lost: "its node evicted it: The node was low on resource: ephemeral-storage.", ended: "a"}},
		{name: "a failure of relapse's own begins again", pods: []*corev1.Pod{pod("a", corev1.PodFailed, 4, `{"why":"no port"}`)}},
		{name: "a pod that was told to end begins again", pods: []*corev1.Pod{pod("a", corev1.PodFailed, 130, `{"why":"context canceled"}`)}},
		{name: "a trial whose node was powered off is lost, as the incident may have done that", pods: []*corev1.Pod{unseen},
			want: state{lost: "nobody saw its recorder end: its node was powered off, or the container runtime there began anew", ended: "a"}},
		{name: "a recorder that the kernel killed is lost", pods: []*corev1.Pod{killed},
			want: state{lost: "its recorder ended with exit code 137 (OOMKilled)", ended: "a"}},
		{name: "a trial that broke off is lost", pods: []*corev1.Pod{pod("a", corev1.PodFailed, 1, `{"why":"the disk is full"}`)},
			want: state{lost: "its recorder ended with exit code 1: the disk is full", ended: "a"}},
		{name: "given up by the Job, as the registry was away", pods: []*corev1.Pod{pod("a", corev1.PodFailed, 4, `{"why":"no registry"}`)},
			status: batchv1.JobStatus{FailedIndexes: ptr.To("2-4")},
			want:   state{lost: "its recorder ended with exit code 4: no registry", ended: "a", outside: true}},
		{name: "given up, and its pods are gone", status: batchv1.JobStatus{FailedIndexes: ptr.To("3")},
			want: state{lost: "the Job gave it up, and its pods are gone"}},
		{name: "given up, and the end of its last pod wasn't seen yet", pods: []*corev1.Pod{pod("a", corev1.PodRunning, 0, "")},
			status: batchv1.JobStatus{FailedIndexes: ptr.To("3")}},
		{name: "done, and its pod is gone", status: batchv1.JobStatus{CompletedIndexes: "0-1,3"},
			want: state{done: true, verdict: "done", node: "a node that is gone"}},
		{name: "another one is done", status: batchv1.JobStatus{CompletedIndexes: "0-1,13"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := stateOf(3, c.pods, &batchv1.Job{Status: c.status}); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
