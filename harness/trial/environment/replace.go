package environment

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// A cluster that starts with a candidate that doesn't run would never come up, and nobody could tell why. So a
// candidate's node starts with a control's build. Once all nodes are up, every arm, controls included, gets its own
// build and is restarted from it. A failure from then on is caused by the arm, and is evidence. An arm that is a pod
// starts with its own build, because its cluster comes up without it.

// answerTime is how long a static pod may take to answer after a restart. It normally takes 10 to 40 seconds.
const answerTime = 2 * time.Minute

// ownBuild returns the build that an arm runs before any fault: the first of its builds.
func (e *Environment) ownBuild(arm string) Build { return e.builds[arm].All()[0] }

// firstBuild returns the build that an arm's node starts with: the arm's own, or for a candidate that of a control
// whose cluster has the same version, preferably the fixed one. Of a candidate that others come before, the first is the
// scenario's.
func (e *Environment) firstBuild(arm string) Build {
	own := e.ownBuild(arm)
	if len(e.builds[arm].Before) > 0 {
		return own
	}
	i := slices.IndexFunc(e.Trial.Arms, func(c plan.Arm) bool { return c.Name == arm })
	if i < 0 || e.Trial.Arms[i].Role != scenario.Candidate || e.Trial.Place().SharedNodes() {
		return own
	}
	for _, role := range []string{scenario.Fixed, scenario.Vulnerable} {
		for _, c := range e.Trial.Arms {
			if c.Role == role &&
				e.Trial.ClusterOf(c.Name).Topology.Version == e.Trial.ClusterOf(arm).Topology.Version {
				return e.ownBuild(c.Name)
			}
		}
	}
	return own
}

// replaces reports whether some arm gets its own build only after its cluster is up.
func (e *Environment) replaces() bool {
	return slices.ContainsFunc(e.Trial.Arms,
		func(c plan.Arm) bool { return e.firstBuild(c.Name).Digest != e.ownBuild(c.Name).Digest })
}

// installCandidates installs every arm's own build in a running cluster and restarts the arm from it. Controls must
// answer again; a candidate that doesn't is recorded as unresponsive.
func (e *Environment) installCandidates(ctx context.Context, made cluster.Cluster) error {
	if !e.replaces() {
		return nil
	}
	client, err := kubernetes.NewForConfig(made.RESTConfig())
	if err != nil {
		return err
	}
	row, _ := component.Of(e.Trial.Subject)
	g, installing := errgroup.WithContext(ctx)
	for _, comp := range made.Components(e.Trial.Subject) {
		arm := comp.Node().Arm()
		if _, ours := e.builds[arm]; !ours {
			continue
		}
		own := e.ownBuild(arm)
		g.Go(func() error {
			began := e.noteRestart(arm)
			if err := replace(installing, comp, own.Path); err != nil {
				return fmt.Errorf("installing the build of %s: %w", arm, err)
			}
			if row.Runs == component.AsService { // the steady state waits for nodes
				return nil
			}
			err := answers(installing, comp, row.Ready)
			if err == nil && len(made.Components("kubelet")) == 0 { // without a kubelet nobody reports the container
				return nil
			}
			if err == nil {
				return e.reported(installing, client, comp, began)
			}
			if installing.Err() != nil {
				return err
			}
			if !e.IsCandidate(arm) {
				return fmt.Errorf(
					"the %s of %s, a control, doesn't come back: %w",
					e.Trial.Subject,
					arm,
					err,
				)
			}
			e.events.Emit(event.Event{
				Type: event.Warning,
				Arm:  arm,
				Message: fmt.Sprintf(
					"the %s of %s doesn't answer: %v",
					e.Trial.Subject,
					arm,
					err,
				),
			})
			e.mu.Lock()
			defer e.mu.Unlock()
			e.unresponsive = append(e.unresponsive, arm)
			return nil
		})
	}
	return g.Wait()
}

// answers waits until a component of the control plane reports that it is ready.
func answers(ctx context.Context, comp cluster.Component, ready string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, answerTime, true, func(ctx context.Context) (bool, error) {
		var body io.ReadCloser
		if body, last = comp.Get(ctx, ready); last != nil {
			return false, nil
		}
		return true, body.Close()
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("not within %s: %w", answerTime, last)
}

// reportTime is how long the kubelet may take to report a pod that was replaced. 20 to 30 seconds were seen.
const reportTime = time.Minute

// reported waits until the API server knows the container that was started after began. A baseline that began earlier
// could not be judged. If it takes too long, the run goes on, and the steady state waits for it where it is recorded.
func (e *Environment) reported(
	ctx context.Context,
	client kubernetes.Interface,
	comp cluster.Component,
	began time.Time,
) error {
	on := metav1.ListOptions{FieldSelector: "spec.nodeName=" + comp.Node().Name()}
	since := func(s corev1.ContainerStatus) bool {
		return s.Name == comp.Name() && s.State.Running != nil &&
			!s.State.Running.StartedAt.Time.Before(began.Truncate(time.Second))
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, reportTime, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, on)
		return err == nil && slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.ContainerStatuses, since)
		}), nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.events.Emit(event.Event{
			Type: event.Warning,
			Arm:  comp.Node().Arm(),
			Message: fmt.Sprintf(
				"the API server has no status of %s on %s within %s of its restart",
				comp.Name(),
				comp.Node().Name(),
				reportTime,
			),
		})
	}
	return nil
}

// IsCandidate reports whether an arm is a candidate.
func (e *Environment) IsCandidate(arm string) bool {
	return slices.ContainsFunc(e.Trial.Arms,
		func(c plan.Arm) bool { return c.Name == arm && c.Role == scenario.Candidate })
}

// Responsive returns those of arms whose subject answered after it was installed.
func (e *Environment) Responsive(arms []string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(
		slices.Clone(arms),
		func(c string) bool { return slices.Contains(e.unresponsive, c) },
	)
}

// noteRestart notes down that an arm's subject is about to be restarted, and returns the time.
func (e *Environment) noteRestart(arm string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.restarted == nil {
		e.restarted = map[string]time.Time{}
	}
	e.restarted[arm] = time.Now()
	return e.restarted[arm]
}

// Restarted returns when the environment last began to restart an arm's subject, to limit its memory or to give the arm
// its own build. It is zero if the subject still is the one that its cluster started with.
func (e *Environment) Restarted(arm string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.restarted[arm]
}

// Reinstall replaces the executables in running clusters by those of another trial and restarts the subjects, so that
// several trials can use the same clusters. Both trials must have the same arms.
func (e *Environment) Reinstall(ctx context.Context, p *plan.Plan, t plan.Trial) error {
	e.plan, e.Trial = p, t
	for _, comp := range e.components(t.Subject) {
		i := slices.IndexFunc(
			t.Arms,
			func(c plan.Arm) bool { return c.Name == comp.Node().Arm() },
		)
		if i < 0 {
			continue
		}
		want, err := e.artifacts.Of(t.Arms[i].Arm)
		if err != nil {
			return err
		}
		is := e.builds[t.Arms[i].Name]
		e.builds[t.Arms[i].Name] = want
		if want.All()[0].Digest == is.Digest && len(is.Before) == 0 { // else a fault may have put another build in place
			continue
		}
		e.noteRestart(t.Arms[i].Name)
		if err := replace(ctx, comp, want.All()[0].Path); err != nil {
			return err
		}
	}
	return nil
}

// replace installs another executable on a component's node and restarts the component from it.
func replace(ctx context.Context, comp cluster.Component, path string) error {
	again := comp.Abilities().Restart
	if again == nil {
		return fmt.Errorf("node %s can't have its %s replaced", comp.Node().Name(), comp.Name())
	}
	if err := comp.Node().Install(ctx, comp.Name(), path); err != nil {
		return err
	}
	return again(ctx)
}
