package conformance_test

import (
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
)

func init() {
	checks.add(checkCase{evidence: flood}, "floodDelivered")
}

// flood arms a flood of two pods with three containers each, and inspects the pods as PLEG does: 8 state changes.
func flood(t *testing.T, s *staged) {
	t.Helper()
	ctx, n := t.Context(), s.nodes[0]
	armed := control.Arm{ID: "flood", Owner: "run", Expires: control.Duration(time.Minute)}
	if _, err := n.client().ArmFlood(ctx, armed, control.Flood{Pods: 2, ContainersPerPod: 3, State: control.StateExited, Seed: "s"}); err != nil {
		t.Fatal(err)
	}
	pods, err := n.cri.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if !reported(p.Id) {
			continue
		}
		if _, err := n.cri.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.Id}); err != nil {
			t.Fatal(err)
		}
		list, err := n.cri.ListContainers(ctx, &runtimeapi.ListContainersRequest{
			Filter: &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"io.kubernetes.pod.uid": p.Metadata.Uid}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Containers {
			if !reported(c.Id) {
				continue // this runtime ignores filters
			}
			if _, err := n.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
