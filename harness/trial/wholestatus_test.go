package trial_test

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// withStatuses has slow-etcd record the statuses of its API server and etcd.
var withStatuses = []string{"    - {name: events, kind: events}\n",
	"    - {name: events, kind: events}\n    - {name: statuses, kind: containerStatuses, spec: {components: [etcd, kube-apiserver]}}\n"}

// A baseline begins once the containers of all subjects were reported, however late a kubelet does that.
func TestTheBaselineBeginsWithTheStatusOfEachSubject(t *testing.T) {
	const late = 25 * time.Second
	inBubble(t, "a late kubelet", func(t *testing.T) {
		r := newRunOf(t, slowEtcd(t, withStatuses...), pair, plan.Options{})
		var reported atomic.Value // when the last one was
		r.scripted = func(arm string, s *server) {
			node := s.Node().Name()
			s.api.PutPod(staticPod("etcd", node))
			put := func() {
				s.api.PutPod(staticPod("kube-apiserver", node))
				reported.Store(time.Now())
			}
			if arm == "fixed" {
				time.AfterFunc(late, put)
			} else {
				put()
			}
		}
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		if v := r.judge(t, 0); v.Verdict != verdict.Validated {
			t.Errorf("it is %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed"))
		}
		for _, e := range r.heard {
			if e.Type == event.Phase && e.Message == check.Baseline && e.Time.Before(reported.Load().(time.Time)) {
				t.Errorf("the baseline began at %s, and the API server of an arm was first reported at %s", e.Time, reported.Load())
			}
		}
		if !r.says(event.Progress, "waiting for a first status of the subject's container (fixed)") {
			t.Error("it doesn't say what it waits for")
		}
	})
	inBubble(t, "a kubelet that reports the container before", func(t *testing.T) {
		r := newRunOf(t, slowEtcd(t, withStatuses...), map[string]string{"vulnerable": leaks, "fixed": "", scenario.Candidate: ""}, plan.Options{})
		began := time.Now()
		r.scripted = func(_ string, s *server) { // all of them are restarted, each from its own build
			s.api.PutPod(staticPod("etcd", s.Node().Name()))
			before := staticPod("kube-apiserver", s.Node().Name())
			before.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(began.Add(-time.Minute))
			s.api.PutPod(before)
			time.AfterFunc(time.Minute+late, func() { s.api.PutPod(staticPod("kube-apiserver", s.Node().Name())) })
		}
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		if v := r.judge(t, 0); v.Verdict != verdict.Validated {
			t.Errorf("it is %s: %s", v.Verdict, r.outcomes("vulnerable", "fixed", scenario.Candidate))
		}
		for _, e := range r.heard {
			if so := e.Time.Sub(began); e.Type == event.Phase && e.Message == check.Baseline && so < time.Minute+late {
				t.Errorf("the baseline began after %s, and the new containers were first reported after %s", so, time.Minute+late)
			}
		}
	})
	inBubble(t, "a kubelet that reports nothing", func(t *testing.T) {
		r := newRunOf(t, slowEtcd(t, withStatuses...), pair, plan.Options{})
		r.scripted = func(_ string, s *server) { s.api.PutPod(staticPod("etcd", s.Node().Name())) }
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		if v := r.judge(t, 0); v.Verdict != verdict.VerdictInconclusive || r.went("fixed") != "steady end" {
			t.Errorf("it is %s, and went through %s", v.Verdict, r.went("fixed"))
		}
		if !r.says(event.Warning, "(the status of the container kube-apiserver is unknown: none was reported yet)") {
			t.Error("it doesn't say what was missing")
		}
	})
}

// staticPod is what a kubelet reports of a component of the control plane.
func staticPod(component, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: component + "-" + node},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: component, ContainerID: "containerd://" + component, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}}}
}
