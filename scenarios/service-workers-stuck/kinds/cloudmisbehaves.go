// Package kinds has the one kind of the scenario service-workers-stuck: the fault of a cloud whose API is slow, fails
// or never answers.
package kinds

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/faults"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "cloudMisbehaves",
		Doc: "A cloud whose API misbehaves towards cloud-controller-manager.\n\n" +
			"how says what the API does: hang reads each request completely and never answers, slow answers later by " +
			"delay, close closes the connection without an answer, and error answers with the status code. Only " +
			"requests whose path contains path are affected. A request that hangs stays open after the fault is " +
			"lifted, until its client gives up: nothing is left that could answer it. The harness sees the fault and " +
			"its end by requests to the API. If the harness doesn't lift the fault, the API does after the time " +
			"limit: the fault phase's deadline plus 2m.",
		ChaosMesh: "HTTPChaos (abort, delay, replace)",
		Example: "name: cloud-hangs\nkind: cloudMisbehaves\ntarget: {mode: all, selector: {component: " +
			"cloud-controller-manager}}\nspec: {how: hang, path: /loadbalancers}\n",
		Tested: `{"how":"slow","delay":"1s"}`,
		New:    func() fault.Fault { return &CloudMisbehaves{How: control.LBaaSHang, Path: "/loadbalancers"} },
	})
}

// CloudMisbehaves makes the API of the lbaas seam misbehave.
type CloudMisbehaves struct {
	How   string          `json:"how,omitempty" jsonschema:"hang, slow, close or error: what the API does"`
	Path  string          `json:"path,omitempty" jsonschema:"requests whose path contains this text are affected; must be part of /octavia/v2.0/lbaas/loadbalancers"`
	Delay metav1.Duration `json:"delay,omitzero" jsonschema:"only for slow, and required there: how much later answers come; at least 1s"`
	Code  int             `json:"code,omitzero" jsonschema:"only for error, and required there: the status code of the answer, 400 to 599"`
}

// cloudAnswers is the longest time that the API takes to answer while nothing is armed.
const cloudAnswers = 3 * time.Second

// cloudQuick is the shortest delay that can be armed: a faster answer is not delayed.
const cloudQuick = time.Second

// Validate refuses an unknown misbehaviour, and parameters with which it could not be seen.
func (f *CloudMisbehaves) Validate() error {
	switch {
	case f.Path == "" || !strings.Contains(control.LBaaSList, f.Path):
		return fmt.Errorf(
			"path is %q (want a part of %s, by which the fault is seen)",
			f.Path,
			control.LBaaSList,
		)
	case (f.How == control.LBaaSSlow) != (f.Delay.Duration >= time.Second):
		return fmt.Errorf(
			"how is %s and delay is %s (want at least 1s for slow, and nothing else)",
			f.How,
			f.Delay.Duration,
		)
	case (f.How == control.LBaaSError) != (f.Code >= 400 && f.Code < 600):
		return fmt.Errorf(
			"how is %s and code is %d (want 400 to 599 for error, and nothing else)",
			f.How,
			f.Code,
		)
	}
	for _, how := range []string{control.LBaaSHang, control.LBaaSSlow, control.LBaaSClose, control.LBaaSError} {
		if f.How == how {
			return nil
		}
	}
	return fmt.Errorf("how is %q (want hang, slow, close or error)", f.How)
}

// Needs returns what the fault requires: the lbaas seam, which the requests pass through.
func (*CloudMisbehaves) Needs() fault.Needs { return fault.Needs{Seams: []string{"lbaas"}} }

// Modelled returns a sentence on what is imitated.
func (*CloudMisbehaves) Modelled() []string {
	return []string{
		"the cloud is a load balancer API of ours, whose load balancers exist in its memory only",
	}
}

// Inject arms the fault and returns once a request of our own shows it.
func (f *CloudMisbehaves) Inject(ctx context.Context, t fault.Target) error {
	what := control.LBaaSFault{How: f.How, Path: f.Path, Delay: control.Duration(f.Delay.Duration), Code: f.Code}
	return onClouds(ctx, t, func(ctx context.Context, n cluster.Node, c *control.LBaaSClient) error {
		if _, err := c.Arm(ctx, faults.Arm(t), what); err != nil {
			return err
		}
		seen, err := faults.ProbeUntil(ctx, faults.SeenWithin+f.Delay.Duration, func(ctx context.Context) (control.LBaaSProbe, error) {
			return c.Probe(ctx, cloudAnswers+f.Delay.Duration)
		}, f.shows)
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		faults.Emit(t, event.FaultSeen, n, "the cloud misbehaves (%s): a request of our own had %s", f.How, seen)
		return nil
	})
}

// shows reports whether the result of a request shows the fault.
func (f *CloudMisbehaves) shows(p control.LBaaSProbe) bool {
	switch f.How {
	case control.LBaaSHang:
		return p.Late
	case control.LBaaSSlow:
		return p.Well() && time.Duration(p.Took) >= f.Delay.Duration
	case control.LBaaSClose:
		return p.Err != "" && !p.Late
	}
	return p.Code == f.Code
}

// Recover disarms the fault and returns once a request of our own was answered in time.
func (f *CloudMisbehaves) Recover(ctx context.Context, t fault.Target) error {
	return onClouds(ctx, t, func(ctx context.Context, n cluster.Node, c *control.LBaaSClient) error {
		if _, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run}); err != nil {
			return err
		}
		_, err := faults.ProbeUntil(ctx, faults.SeenWithin, func(ctx context.Context) (control.LBaaSProbe, error) {
			return c.Probe(ctx, cloudAnswers)
		}, func(p control.LBaaSProbe) bool { return p.Well() && time.Duration(p.Took) < cloudQuick })
		if err != nil {
			return fmt.Errorf("%s on %s disarmed and not seen to be gone: %w", t.Name, n.Name(), err)
		}
		s, err := c.State(ctx)
		if err != nil {
			return err
		}
		faults.Emit(t, event.FaultGone, n, "the cloud answers new requests; %d that hang stay so", s.Held)
		return nil
	})
}

// onClouds acts on the load balancer APIs of all nodes of the target at once and returns all errors.
func onClouds(ctx context.Context, t fault.Target,
	act func(context.Context, cluster.Node, *control.LBaaSClient) error) error {
	return faults.Each(t.Nodes, func(n cluster.Node) error {
		c, err := seams.LoadBalancerAPI(n)
		if err != nil {
			return err
		}
		return act(ctx, n, c)
	})
}
