package kind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restartedAt is the annotation that a restart on purpose sets: kubelet replaces a static pod whose manifest has
// changed.
const restartedAt = "relapse.dev/restarted-at"

// Restart makes kubelet replace the pod, so that its process runs from the current files. The new pod counts no
// restarts and knows of no earlier end. Restart returns once the old process is gone; it doesn't wait for the new one.
func (s *staticPod) Restart(ctx context.Context) error {
	return s.restart(ctx, func() error {
		return s.rewrite(ctx, func(pod *corev1.Pod) error {
			if pod.Annotations == nil {
				pod.Annotations = map[string]string{}
			}
			pod.Annotations[restartedAt] = time.Now().UTC().Format(time.RFC3339Nano)
			return nil
		})
	})
}

// Restart deletes the pod, and the DaemonSet makes a new one. The new pod counts no restarts. Restart returns once the
// old process is gone.
func (d *daemonPod) Restart(ctx context.Context) error {
	return d.restart(ctx, func() error {
		q := url.Values{
			"labelSelector": {"k8s-app=" + d.name},
			"fieldSelector": {"spec.nodeName=" + d.n.name},
		}
		a, err := d.n.c.do(
			ctx,
			http.MethodDelete,
			"/api/v1/namespaces/kube-system/pods?"+q.Encode(),
		)
		if err != nil {
			return err
		}
		return a.Close()
	})
}

// restart calls replace, which replaces the pod, and waits until the old process is gone.
func (s container) restart(ctx context.Context, replace func() error) error {
	before, err := s.Identity(ctx, false)
	if err == nil {
		err = replace()
	}
	if err == nil && before.PID != 0 {
		err = s.awaitReplaced(ctx, before.PID)
	}
	if err != nil {
		return fmt.Errorf("restarting %s on %s: %w", s.name, s.n.name, err)
	}
	return nil
}

// awaitReplaced waits until the process pid no longer runs.
func (s container) awaitReplaced(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	err := retry(ctx, 500*time.Millisecond, func(ctx context.Context) error {
		now, err := s.Identity(ctx, false)
		if err == nil && now.PID == pid {
			err = errors.New("it is still there")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting %s for process %d to go: %w", limitTime, pid, err)
	}
	return nil
}
