package loads

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// lastLook bounds the last look at a pod, which decides whether the pod is as wanted.
const lastLook = 4 * time.Second

// await watches a pod until it is as wanted; nil stands for a missing pod. errIdle says that a look after the timeout
// found the pod not as wanted. what describes the pod as it was seen last.
func (p *pods) await(ctx context.Context, name string, timeout time.Duration,
	wanted func(*corev1.Pod) bool) (what string, err error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for limited.Err() == nil {
		if what, ok := p.follow(limited, name, wanted); ok {
			return what, nil
		}
		_ = wait(limited, look) // the watch ended, or couldn't begin
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	last, cancel := context.WithTimeout(ctx, lastLook)
	defer cancel()
	pod, _, err := p.get(last, name)
	if err != nil {
		return "", fmt.Errorf("looking at the pod at the end: %w", err)
	}
	if what = state(pod); !wanted(pod) {
		return what, fmt.Errorf("%w within %s: %s", errIdle, timeout, what)
	}
	return what, nil
}

// follow watches a pod until it is as wanted, or the watch ends.
func (p *pods) follow(
	ctx context.Context,
	name string,
	wanted func(*corev1.Pod) bool,
) (what string, ok bool) {
	pod, version, err := p.get(ctx, name)
	if err != nil {
		return "", false
	}
	if wanted(pod) {
		return state(pod), true
	}
	w, err := p.typed.CoreV1().Pods(p.namespace).Watch(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
	if err != nil {
		return "", false
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		pod, is := e.Object.(*corev1.Pod)
		if !is {
			return "", false // an error: it is listed again
		}
		if e.Type == watch.Deleted {
			pod = nil
		}
		if wanted(pod) {
			return state(pod), true
		}
	}
	return "", false
}

// get returns a pod, nil if there is none, and the version from which to watch it.
func (p *pods) get(ctx context.Context, name string) (*corev1.Pod, string, error) {
	list, err := p.typed.CoreV1().Pods(p.namespace).List(ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, "", err
	}
	if len(list.Items) == 0 {
		return nil, list.ResourceVersion, nil
	}
	return &list.Items[0], list.ResourceVersion, nil
}

// state describes the state of a pod in words.
func state(pod *corev1.Pod) string {
	if pod == nil {
		return "there is no such pod"
	}
	out := []string{"the pod is " + string(pod.Status.Phase)}
	if pod.DeletionTimestamp != nil {
		out = append(out, "being deleted")
	}
	if pod.Status.Reason != "" {
		out = append(out, strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			out = append(
				out,
				"its container started at "+c.State.Running.StartedAt.UTC().Format(time.TimeOnly),
			)
		case c.State.Waiting != nil:
			out = append(out,
				strings.TrimSpace("its container waits: "+c.State.Waiting.Reason+" "+c.State.Waiting.Message))
		}
	}
	return strings.Join(out, ", ")
}
