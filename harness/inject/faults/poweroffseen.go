package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

const (
	// lookEvery is how often the API is asked while a node goes or comes.
	lookEvery = 500 * time.Millisecond
	// lookTime is how long one look may take: an API server that went down with its node may leave a connection open.
	lookTime = 5 * time.Second
	// Refusals is how many looks in a row have to fail: a single one may be a busy API server.
	Refusals = 3
)

// Await calls look until it reports that it is done, and returns what it saw. If ctx ends first, the error says why and
// what was seen last.
func Await(
	ctx context.Context,
	look func(context.Context) (done bool, seen string),
) (string, error) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := "nothing yet"
	for {
		one, cancel := context.WithTimeout(ctx, lookTime)
		done, seen := look(one)
		cancel()
		if ctx.Err() == nil { // a look that the end of ctx cut off says nothing
			last = seen
			if done {
				return seen, nil
			}
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("%w; last seen: %s", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// loss observes the loss of a node.
type loss struct {
	client  *kubernetes.Clientset
	node    string
	renewed time.Time // when the Lease was renewed, by the look before
	failed  int       // failed looks in a row
}

// stale reports whether the node's Lease has run out and was not renewed since the look before.
func (l *loss) stale(ctx context.Context) (bool, string) {
	lease, err := leaseOf(ctx, l.client, l.node)
	if err != nil {
		return false, err.Error()
	}
	renewed, good := lease.Spec.RenewTime.Time, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second
	still := renewed.Equal(l.renewed)
	l.renewed = renewed
	age := time.Since(renewed)
	return still && age > good, fmt.Sprintf("its Lease was renewed %s ago and is good for %s",
		age.Round(100*time.Millisecond), good)
}

// refused reports whether the API server has failed to answer a few times in a row. An answer that the Lease isn't
// there, or that reading it isn't allowed, counts as an answer.
func (l *loss) refused(ctx context.Context) (bool, string) {
	// Without MaxRetries(0) the client would repeat a request whose connection breaks off, for longer than a look
	// lasts.
	err := l.client.CoordinationV1().
		RESTClient().
		Get().
		Namespace(corev1.NamespaceNodeLease).
		Resource("leases").
		Name(l.node).
		MaxRetries(0).
		Do(ctx).
		Error()
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) && answer.Status().Code < 500 {
		l.failed = 0
		return false, "the API server answers"
	}
	l.failed++
	return l.failed >= Refusals, fmt.Sprintf("the API server refused %d times: %v", l.failed, err)
}

// leaseOf reads a node's Lease, which must have both of its times.
func leaseOf(
	ctx context.Context,
	client *kubernetes.Clientset,
	node string,
) (*coordinationv1.Lease, error) {
	lease, err := client.CoordinationV1().
		Leases(corev1.NamespaceNodeLease).
		Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("its Lease can't be read: %w", err)
	}
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return nil, errors.New("its Lease says no time or no duration")
	}
	return lease, nil
}

// arrival observes the return of a node. Reports from before since are left over from before the node's start.
type arrival struct {
	client *kubernetes.Clientset
	node   string
	since  time.Time
}

// back reports whether the node's kubelet renews its Lease and reports Ready, and the pods on the node are back.
func (a *arrival) back(ctx context.Context) (bool, string) {
	lease, err := leaseOf(ctx, a.client, a.node)
	if err != nil {
		return false, err.Error()
	}
	if lease.Spec.RenewTime.Time.Before(a.since) {
		return false, fmt.Sprintf("its Lease was renewed at %s last, and it started at %s",
			clock(lease.Spec.RenewTime.Time), clock(a.since))
	}
	node, err := a.client.CoreV1().Nodes().Get(ctx, a.node, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Sprintf("its Node can't be read: %v", err)
	}
	if why := a.notReady(node); why != "" {
		return false, why
	}
	pods, err := a.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", a.node).String(),
		})
	if err != nil {
		return false, fmt.Sprintf("its pods can't be listed: %v", err)
	}
	var missing []string
	there := 0
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		there++
		if why := a.down(&p); why != "" {
			missing = append(missing, p.Namespace+"/"+p.Name+" "+why)
		}
	}
	if len(missing) > 0 {
		return false, fmt.Sprintf("%d of its %d pods are not back: %s", len(missing), there,
			strings.Join(missing, "; "))
	}
	return true, fmt.Sprintf(
		"the node runs since %s, is Ready, and its %d pods are ready",
		clock(a.since),
		there,
	)
}

// notReady returns why a node doesn't count as Ready; "" if it does.
func (a *arrival) notReady(node *corev1.Node) string {
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status != corev1.ConditionTrue:
			return fmt.Sprintf("Ready is %s (%s: %s)", c.Status, c.Reason, c.Message)
		case c.LastHeartbeatTime.Time.Before(a.since):
			return fmt.Sprintf(
				"Ready is %s as of %s, and it started at %s",
				c.Status,
				clock(c.LastHeartbeatTime.Time),
				clock(a.since),
			)
		default:
			return ""
		}
	}
	return "it has no Ready condition"
}

// down returns why a pod doesn't count as back; "" if it does: it is ready, with containers that began after the node's
// start.
func (a *arrival) down(p *corev1.Pod) string {
	if p.Status.Phase != corev1.PodRunning {
		return "is " + string(p.Status.Phase)
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return "has no container status"
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return "has a container " + c.Name + " that doesn't run"
		}
		if c.State.Running.StartedAt.Time.Before(a.since) {
			return "has a container " + c.Name + " that is only known from before the node's start"
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return "is not ready"
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
