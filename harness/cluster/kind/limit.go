package kind

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// limitTime is how long a static pod may take to come back under another limit; it takes 10 to 40 seconds.
const limitTime = 3 * time.Minute

// Limit writes the memory limit into the static pod's manifest, as an administrator would, and waits until kubelet
// has replaced the pod and it answers.
func (s *staticPod) Limit(ctx context.Context, memory string) error {
	if err := s.limit(ctx, memory); err != nil {
		return fmt.Errorf(
			"limiting the memory of %s on %s to %s: %w",
			s.name,
			s.n.name,
			memory,
			err,
		)
	}
	return nil
}

func (s *staticPod) limit(ctx context.Context, memory string) error {
	amount, err := resource.ParseQuantity(memory)
	if err != nil {
		return err
	}
	before, err := s.Identity(ctx, false)
	if err != nil {
		return err
	}
	err = s.rewrite(ctx, func(pod *corev1.Pod) error {
		if len(pod.Spec.Containers) != 1 {
			return fmt.Errorf("it has %d containers, want 1", len(pod.Spec.Containers))
		}
		c := &pod.Spec.Containers[0]
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[corev1.ResourceMemory] = amount
		return nil
	})
	if err != nil {
		return err
	}
	return s.replaced(ctx, before.PID)
}

// rewrite changes the static pod's manifest, and kubelet then replaces the pod.
func (s *staticPod) rewrite(ctx context.Context, change func(*corev1.Pod) error) error {
	pod, err := s.manifest(ctx)
	if err != nil {
		return err
	}
	if err := change(pod); err != nil {
		return fmt.Errorf("changing the manifest of %s: %w", s.name, err)
	}
	raw, err := yaml.Marshal(pod)
	if err != nil {
		return err
	}
	return s.n.putManifest(ctx, s.name, raw)
}

// manifest reads the static pod's manifest.
func (s *staticPod) manifest(ctx context.Context) (*corev1.Pod, error) {
	at := manifests + s.name + ".yaml"
	raw, err := s.n.Exec(ctx, nil, "cat", at)
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(raw, &pod); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", at, err)
	}
	return &pod, nil
}

// replaced waits until a process other than pid runs and answers.
func (s *staticPod) replaced(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	err := retry(ctx, time.Second, func(ctx context.Context) error {
		now, err := s.Identity(ctx, false)
		if err != nil {
			return err
		}
		if now.PID == pid || now.PID == 0 {
			return fmt.Errorf("kubelet has not replaced process %d yet", pid)
		}
		row, _ := component.Of(s.name)
		body, err := s.Get(ctx, row.Ready)
		if err != nil {
			return err
		}
		return body.Close()
	})
	if err != nil {
		return fmt.Errorf("not back within %s: %w", limitTime, err)
	}
	return nil
}
