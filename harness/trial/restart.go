package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// verifyRestart restarts the subjects that show the signature, once all data for judging is safe. In the original
// incident, the diagnosis was proven because a restart healed the node and a fast runtime did not.
func (r *trial) verifyRestart(ctx context.Context, arms []string) ([]string, error) {
	if r.plan.Restart == nil {
		return arms, nil
	}
	for _, c := range r.plan.Arms {
		if !slices.Contains(r.plan.Restart.Roles, c.Role) || !slices.Contains(arms, c.Name) {
			continue
		}
		if !r.live.signature(c.Name) {
			continue
		}
		if err := r.restart(ctx, c); err != nil {
			return nil, fmt.Errorf("restarting %s as proof: %w", c.Name, err)
		}
	}
	return arms, nil
}

func (r *trial) restart(ctx context.Context, c plan.Arm) error {
	limit := r.plan.Restart.ReadyWithin.Duration
	stage := r.events.Stage(
		"restart",
		"restarting the "+r.plan.Subject+" of "+c.Name+": it must be Ready within "+limit.String(),
		15*time.Second,
	)
	for _, comp := range r.env.ClusterOf(c.Name).Components(r.plan.Subject) {
		again := comp.Abilities().Restart
		if comp.Node().Arm() != c.Name || again == nil {
			continue
		}
		began := time.Now().UTC()
		if err := again(ctx); err != nil {
			stage(err)
			return err
		}
		took, err := r.readyAgain(ctx, c.Name, comp.Node().Name(), began, limit)
		proof := bundle.RestartProof{
			Time:         began,
			ReadySeconds: took.Seconds(),
			LimitSeconds: limit.Seconds(),
		}
		if err != nil {
			proof.ReadySeconds = -1
			r.events.Emit(event.Event{Type: event.Warning, Arm: c.Name,
				Message: fmt.Sprintf("not Ready within %s of the restart: %v", limit, err)})
		} else {
			r.events.Emit(event.Event{
				Type: event.Note,
				Arm:  c.Name,
				Message: fmt.Sprintf(
					"Ready %s after the restart",
					took.Round(100*time.Millisecond),
				),
			})
		}
		_, werr := r.writer.WriteJSON(
			bundle.Meta{Kind: bundle.Restart, Arm: c.Name, Node: comp.Node().Name(),
				Component: comp.Name(), Phase: "end"},
			proof,
		)
		stage(ctx.Err())
		return werr
	}
	stage(nil)
	return fmt.Errorf("no %s of %s can be restarted", r.plan.Subject, c.Name)
}

// readyAgain waits for a Ready=True that was reported after began, so that the condition from before the restart
// doesn't count. It returns how long that took.
func (r *trial) readyAgain(ctx context.Context, arm, node string, began time.Time,
	limit time.Duration) (time.Duration, error) {
	client, err := kubernetes.NewForConfig(r.env.ClusterOf(arm).RESTConfig())
	if err != nil {
		return 0, err
	}
	last := "nothing was seen of it"
	err = apiwait.PollUntilContextTimeout(ctx, 500*time.Millisecond, limit, true,
		func(ctx context.Context) (bool, error) {
			n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
			if err != nil {
				return false, nil // the API server may be the one that was restarted
			}
			for _, cond := range n.Status.Conditions {
				if cond.Type == corev1.NodeReady {
					last = fmt.Sprintf("Ready=%s: %s", cond.Status, cond.Message)
					return cond.Status == corev1.ConditionTrue &&
						!cond.LastTransitionTime.Time.Before(began.Truncate(time.Second)), nil
				}
			}
			return false, nil
		})
	if err != nil {
		return 0, errors.New(last)
	}
	return time.Since(began), nil
}
