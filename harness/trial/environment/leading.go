package environment

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// leadTime is how long the components of a control plane may take until they lead again. A component that lost its
// Lease exits, and is started again after a back-off.
const leadTime = 2 * time.Minute

// leadAgain waits for the leaders of a control plane in which something was restarted, to set a limit or to install a
// build.
func (e *Environment) leadAgain(ctx context.Context, c plan.Cluster, made cluster.Cluster) error {
	row, _ := component.Of(e.Trial.Subject)
	if !component.ControlPlane(row) || len(c.Memory) == 0 && !e.replaces() {
		return nil
	}
	client, err := kubernetes.NewForConfig(made.RESTConfig())
	if err != nil {
		return err
	}
	return e.leading(ctx, client, made)
}

// leading waits until each component that elects a leader has an active one, which renews its Lease while leading
// watches. While an API server is restarted the other components lose their Leases and exit. If the baseline began
// before they are back, it would lack all their watches, and the API server would later seem to have leaked. If it
// takes too long, leading emits a warning and the run goes on.
func (e *Environment) leading(
	ctx context.Context,
	client kubernetes.Interface,
	made cluster.Cluster,
) error {
	arm := made.Components(e.Trial.Subject)[0].Node().Arm()
	if len(e.Responsive([]string{arm})) == 0 { // without an API server nobody can renew a Lease
		return nil
	}
	waiting := map[string]string{} // component -> first seen renewal time of its Lease
	for _, name := range component.Names(component.Electing) {
		if len(made.Components(name)) == 0 || !e.elects(name) {
			continue
		}
		waiting[name] = ""
		if err := e.hasten(ctx, client, made, name); err != nil {
			return err
		}
	}
	err := wait.PollUntilContextTimeout(ctx, time.Second, leadTime, true, func(ctx context.Context) (bool, error) {
		for name, first := range waiting {
			l, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
			if err != nil || l.Spec.RenewTime == nil {
				continue
			}
			switch renewed := l.Spec.RenewTime.String(); first {
			case "":
				waiting[name] = renewed
			case renewed:
			default:
				delete(waiting, name)
			}
		}
		return len(waiting) == 0, nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		var names []string
		for _, name := range component.Names(component.Electing) {
			if _, still := waiting[name]; still {
				names = append(names, name)
			}
		}
		e.events.Emit(event.Event{
			Type: event.Warning,
			Arm:  arm,
			Message: fmt.Sprintf(
				"no %s has renewed its Lease for %s",
				strings.Join(names, ", no "),
				leadTime,
			),
		})
	}
	return nil
}

// hasten deletes a component's old Lease, which would take 15 seconds to expire. If there is no kubelet, it also
// restarts the component, which saves the back-off. A leader that survived the API server's restart makes a new Lease.
func (e *Environment) hasten(
	ctx context.Context,
	client kubernetes.Interface,
	made cluster.Cluster,
	name string,
) error {
	if e.Trial.Subject != "kube-apiserver" { // replacing any other subject doesn't stop the others
		return nil
	}
	err := client.CoordinationV1().
		Leases(metav1.NamespaceSystem).
		Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		e.events.Say(
			event.Warning,
			fmt.Sprintf("the Lease of %s can't be deleted: %v", name, err),
		)
	}
	if len(made.Components("kubelet")) > 0 {
		return nil
	}
	for _, comp := range made.Components(name) {
		if again := comp.Abilities().Restart; again != nil {
			if err := again(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// elects reports whether a component elects a leader. All do, unless the scenario's flags forbid it.
func (e *Environment) elects(name string) bool {
	for _, c := range e.Trial.Clusters {
		for _, n := range c.Topology.Nodes {
			if n.Args[name]["leader-elect"] == "false" {
				return false
			}
		}
	}
	return true
}
