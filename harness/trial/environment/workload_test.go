package environment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/restmapper"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// told is what a stream said.
type told struct {
	mu  sync.Mutex
	all []event.Event
}

func (s *told) Emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

// agentPod is an arm's pod: Ready, or one whose container ends again and again.
func agentPod(namespace string, ready bool) runtime.Object {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "agent-0", Namespace: namespace, Labels: map[string]string{subjectLabel: "agent"}}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if !ready {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent",
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 2}}}}
	}
	return p
}

// A candidate that crashes at start is watched beside the controls; a control that does ends the run.
func TestWhosePodMustGetReady(t *testing.T) {
	for _, c := range []struct {
		name         string
		arms         []string
		broken       string // whose pod isn't Ready
		cancel       bool
		unresponsive []string
		err          string // a fragment
	}{
		{name: "all are", arms: []string{"vulnerable", "fixed", "candidate"}},
		{name: "the candidate crashes", arms: []string{"vulnerable", "fixed", "candidate"}, broken: "candidate", unresponsive: []string{"candidate"}},
		{name: "a control crashes", arms: []string{"vulnerable", "fixed", "candidate"}, broken: "fixed",
			err: "waiting for the agent of fixed in ns-fixed: agent-0 is Running; CrashLoopBackOff back-off 40s; ended with Error, exit code 2"},
		{name: "somebody gave up", arms: []string{"vulnerable", "candidate"}, broken: "candidate", cancel: true, err: "enough"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := &told{}
				e := starting(plan.PlacementWorkload, c.arms)
				e.events, e.Trial.Subject = event.NewStream(heard), "agent"
				var pods []runtime.Object
				for i := range e.Trial.Arms {
					arm := &e.Trial.Arms[i]
					arm.Namespace = "ns-" + arm.Name
					pods = append(pods, agentPod(arm.Namespace, arm.Name != c.broken))
				}
				core := fake.NewClientset(pods...)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.cancel {
					cancel(errors.New("enough"))
				}
				err := e.armsReady(ctx, func(c plan.Arm) error { return e.podReady(ctx, core, c) })
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%v, want %q in it", err, c.err)
				}
				if !slices.Equal(e.unresponsive, c.unresponsive) {
					t.Errorf("unresponsive are %v, want %v", e.unresponsive, c.unresponsive)
				}
				if len(heard.all) != len(c.unresponsive) {
					t.Fatalf("it said %+v", heard.all)
				}
				for _, e := range heard.all {
					if e.Type != event.Warning || e.Arm != "candidate" || !strings.Contains(e.Message, "the agent of candidate doesn't get ready") ||
						!strings.Contains(e.Message, "ended with Error, exit code 2") {
						t.Errorf("it said %+v", e)
					}
				}
			})
		})
	}
}

// Where an arm is a plain process, the API server gets all of its manifests but the Deployment that the process stands
// for.
func TestManifestsOfAPlainProcess(t *testing.T) {
	core := fake.NewClientset()
	core.Fake.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}}},
	}
	var applied []string
	dyn := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	dyn.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchAction)
		applied = append(applied, p.GetResource().Resource+" "+p.GetNamespace()+"/"+p.GetName())
		return true, &unstructured.Unstructured{}, nil
	})
	a := &applier{core, dyn, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(core.Discovery()))}
	const text = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: ns}\n---\n---\n" +
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: agent, namespace: ns}\n"
	for plain, want := range map[bool][]string{true: {"serviceaccounts ns/agent"}, false: {"serviceaccounts ns/agent", "deployments ns/agent"}} {
		applied = nil
		without := func(kind string) bool { return plain && plan.RunsAsProcess(kind) }
		if err := a.apply(t.Context(), "agent.yaml", text, without); err != nil || !slices.Equal(applied, want) {
			t.Errorf("as a plain process %v: %q, %v; want %q", plain, applied, err, want)
		}
	}
}
