package conformance_test

import (
	"context"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// memoryRuntime is a container runtime with two pods of one container each. It records every call that would change
// something.
type memoryRuntime struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	pods       []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container

	mu      sync.Mutex
	touched []string
}

func newMemoryRuntime() *memoryRuntime {
	r := &memoryRuntime{}
	for _, name := range []string{"a", "b"} {
		labels := map[string]string{"io.kubernetes.pod.uid": "uid-" + name}
		r.pods = append(r.pods, &runtimeapi.PodSandbox{
			Id: "sandbox-" + name, Labels: labels, Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		})
		r.containers = append(r.containers, &runtimeapi.Container{
			Id: "container-" + name, PodSandboxId: "sandbox-" + name, Labels: labels, Metadata: &runtimeapi.ContainerMetadata{Name: "main"},
			State: runtimeapi.ContainerState_CONTAINER_RUNNING,
		})
	}
	return r
}

func (*memoryRuntime) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "memory", RuntimeVersion: "1"}, nil
}

func (*memoryRuntime) Status(context.Context, *runtimeapi.StatusRequest) (*runtimeapi.StatusResponse, error) {
	ready := []*runtimeapi.RuntimeCondition{{Type: "RuntimeReady", Status: true}}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: ready}}, nil
}

func (r *memoryRuntime) ListPodSandbox(context.Context, *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return &runtimeapi.ListPodSandboxResponse{Items: r.pods}, nil
}

func (r *memoryRuntime) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: r.containers}, nil
}

func (*memoryRuntime) ContainerStatus(_ context.Context, q *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{Id: q.ContainerId}}, nil
}

func (r *memoryRuntime) touch(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched = append(r.touched, what)
}

func (r *memoryRuntime) StopContainer(_ context.Context, q *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	r.touch("StopContainer " + q.ContainerId)
	return &runtimeapi.StopContainerResponse{}, nil
}

func (r *memoryRuntime) RemoveContainer(_ context.Context, q *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	r.touch("RemoveContainer " + q.ContainerId)
	return &runtimeapi.RemoveContainerResponse{}, nil
}

func (r *memoryRuntime) StopPodSandbox(_ context.Context, q *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	r.touch("StopPodSandbox " + q.PodSandboxId)
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (r *memoryRuntime) RemovePodSandbox(_ context.Context, q *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.touch("RemovePodSandbox " + q.PodSandboxId)
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}
