package kind

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restartedAt is the annotation that a restart on purpose sets: kubelet replaces a static pod whose manifest has changed.
const restartedAt = "relapse.dev/restarted-at"

// Restart has kubelet replace the pod, whose process then runs from the files that are there now. The new pod counts no restarts and knows of no
// earlier end. Restart returns once the old process is gone; whether the new one runs is for the caller to see.
func (s *StaticPod) Restart(ctx context.Context) error {
	if err := s.restart(ctx); err != nil {
		return fmt.Errorf("restarting %s on %s: %w", s.name, s.n.name, err)
	}
	return nil
}

func (s *StaticPod) restart(ctx context.Context) error {
	before, err := s.Identity(ctx, false)
	if err != nil {
		return err
	}
	err = s.rewrite(ctx, func(pod *corev1.Pod) error {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[restartedAt] = time.Now().UTC().Format(time.RFC3339Nano)
		return nil
	})
	if err != nil || before.PID == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limitTime)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	last := fmt.Errorf("process %d is still there", before.PID)
	for {
		now, err := s.Identity(ctx, false)
		switch {
		case err == nil && now.PID != before.PID:
			return nil
		case err != nil && ctx.Err() == nil:
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting %s for process %d to go: %w", limitTime, before.PID, last)
		case <-tick.C:
		}
	}
}
