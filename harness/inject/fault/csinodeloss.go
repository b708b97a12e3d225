package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[Fault]{
		Name: "csiNodeLoss",
		Doc: "Nodes without their CSINode object, as after someone deleted it, or between a node's registration and " +
			"its kubelet's first report.\n\n" +
			"A kubelet creates the object only when it starts, so the object stays away until the fault is lifted. " +
			"The harness then creates the object again as it was, from a copy in a ConfigMap of the namespace " +
			"relapse-<name>, which any process can read. A node that has a CSINode by then keeps it. The fault has " +
			"no time limit: nothing in the cluster would know that the object has to come back.",
		Example: "name: no-csinode\nkind: csiNodeLoss\ntarget: {mode: all, selector: {component: " +
			"kube-scheduler}}\nspec: {}\n",
		New: func() Fault { return &CSINodeLoss{} },
	})
}

// CSINodeLoss deletes the CSINode objects of nodes.
type CSINodeLoss struct{}

// csiNodeSeen is how long a deletion or a creation may take to be observed.
const csiNodeSeen = 30 * time.Second

// Needs returns what the fault requires: nothing but the API, and nodes in it.
func (*CSINodeLoss) Needs() Needs { return Needs{Nodes: true} }

// Inject keeps a copy of each node's CSINode, deletes it, and returns when it was seen to be gone.
func (*CSINodeLoss) Inject(ctx context.Context, t Target) error {
	return onCSINodes(ctx, t, func(ctx context.Context, o csiNode) error {
		was, err := o.get(ctx)
		if err == nil && was != nil {
			if err = o.keep(ctx, was); err == nil {
				err = o.client.StorageV1().CSINodes().Delete(ctx, o.name, metav1.DeleteOptions{})
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err := o.await(ctx, func(now *storagev1.CSINode) bool { return now == nil }); err != nil {
			return err
		}
		Emit(t, event.FaultSeen, o.node, "the CSINode of %s is gone", o.name)
		return nil
	})
}

// Recover creates each node's CSINode again from its copy, and returns when it was seen. A node that has a CSINode
// keeps it.
func (*CSINodeLoss) Recover(ctx context.Context, t Target) error {
	return onCSINodes(ctx, t, func(ctx context.Context, o csiNode) error {
		now, err := o.get(ctx)
		if err != nil {
			return err
		}
		if now == nil {
			if now, err = o.kept(ctx); err != nil {
				return err
			}
			if _, err = o.client.StorageV1().CSINodes().Create(ctx, now, metav1.CreateOptions{}); err != nil &&
				!apierrors.IsAlreadyExists(err) {
				return err
			}
			if err := o.await(ctx, func(now *storagev1.CSINode) bool { return now != nil }); err != nil {
				return err
			}
			// A copy that stays would be taken for the copy of another loss. If it can't be deleted, it goes with the
			// cluster.
			_ = o.client.CoreV1().ConfigMaps(o.namespace).Delete(ctx, o.name, metav1.DeleteOptions{})
		}
		Emit(t, event.FaultGone, o.node, "the CSINode of %s is there", o.name)
		return nil
	})
}

// csiNode is the CSINode of one node, and where its copy is kept.
type csiNode struct {
	client    kubernetes.Interface
	node      cluster.Node
	name      string
	namespace string
}

// onCSINodes acts on the CSINodes of all nodes of the target at once, and returns all errors. For a node that only
// stands for a control plane, it acts on the CSINodes of the simulated nodes.
func onCSINodes(ctx context.Context, t Target, act func(context.Context, csiNode) error) error {
	client, err := APIClient(t)
	if err != nil {
		return err
	}
	var all []csiNode
	for _, n := range t.Nodes {
		names := n.Objects()
		if len(names) == 0 {
			return fmt.Errorf("%s: %s is no Node object, and none is simulated", t.Name, n.Name())
		}
		for _, name := range names {
			all = append(all, csiNode{client, n, name, "relapse-" + t.Name})
		}
	}
	return Each(all, func(o csiNode) error {
		if err := act(ctx, o); err != nil {
			return fmt.Errorf("%s: the CSINode of %s: %w", t.Name, o.name, err)
		}
		return nil
	})
}

// get returns the CSINode, nil if there is none.
func (o csiNode) get(ctx context.Context) (*storagev1.CSINode, error) {
	now, err := o.client.StorageV1().CSINodes().Get(ctx, o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return now, err
}

// await reads the CSINode again and again until it is as wanted.
func (o csiNode) await(ctx context.Context, wanted func(*storagev1.CSINode) bool) error {
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, csiNodeSeen)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		now, err := o.get(ctx)
		if err == nil && wanted(now) {
			return nil
		}
		select {
		case <-ctx.Done():
			if all.Err() != nil {
				return context.Cause(all)
			}
			return errors.Join(fmt.Errorf("the change was not seen within %s", csiNodeSeen), err)
		case <-tick.C:
		}
	}
}

// keep stores a copy of the CSINode. A copy that is there already belongs to the same loss, which didn't get any
// further.
func (o csiNode) keep(ctx context.Context, was *storagev1.CSINode) error {
	was = was.DeepCopy()
	was.ResourceVersion, was.UID, was.ManagedFields = "", "", nil
	was.CreationTimestamp = metav1.Time{}
	text, err := json.Marshal(was)
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}
	if _, err := o.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.name},
		Data: map[string]string{"csinode": string(text)}}
	if _, err := o.client.CoreV1().ConfigMaps(o.namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// kept returns the CSINode from its copy.
func (o csiNode) kept(ctx context.Context) (*storagev1.CSINode, error) {
	cm, err := o.client.CoreV1().ConfigMaps(o.namespace).Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading how it was: %w", err)
	}
	var was storagev1.CSINode
	if err := json.Unmarshal([]byte(cm.Data["csinode"]), &was); err != nil {
		return nil, fmt.Errorf("reading how it was: %w", err)
	}
	return &was, nil
}
