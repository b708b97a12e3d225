package faults

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
)

// object is what is known of an object: its JSON without the fields that every change changes, or its bytes in etcd. It
// is nil if there is none.
type object []byte

// affected is one object that the fault changes, and where its copy is kept.
type affected struct {
	ask     manifest.Ask
	client  *manifest.Client
	api     kubernetes.Interface
	request manifest.Request
	node    cluster.Node
	name    string // in words
	copies  string // the namespace of the copies
	labels  map[string]string
	arm     string
	written manifest.Template // as the scenario has it, with words for what it refers to
	words   manifest.Words
}

// each acts on all objects at once, and returns all errors.
func (f *Objects) each(
	ctx context.Context,
	t fault.Target,
	act func(context.Context, affected) error,
) error {
	api, err := APIClient(t)
	if err != nil {
		return err
	}
	client, err := manifest.NewClient(t.Cluster, t.Run, t.Name, t.Arm)
	if err != nil {
		return err
	}
	var all []affected
	for _, n := range t.Nodes {
		names := []string{""}
		if f.Manifests.PerNode() {
			if names = n.Objects(); len(names) == 0 {
				return fmt.Errorf(
					"%s: %s is no Node object, and none is simulated",
					t.Name,
					n.Name(),
				)
			}
		}
		for _, name := range names {
			for _, m := range f.Manifests {
				words := manifest.Words{manifest.Arm: t.Arm, manifest.Node: name}
				of, err := m.Expand(words)
				if err != nil {
					return fmt.Errorf("%s: %w", t.Name, err)
				}
				all = append(all, affected{ask: f.Ask, client: client, api: api, node: n, name: of.GetKind() + " " + of.GetName(),
					copies: "relapse-" + t.Name, labels: manifest.LabelsOf(t.Run, t.Name), arm: t.Arm, written: m, words: words})
			}
		}
		if !f.Manifests.PerNode() {
			break // the objects are the cluster's, not a node's
		}
	}
	return Each(all, func(o affected) error {
		if err := act(ctx, o); err != nil {
			return fmt.Errorf("%s: %s: %w", t.Name, o.name, err)
		}
		return nil
	})
}

// resolve fills in the request about the object, for which the API server may have to be asked.
func (o *affected) resolve(ctx context.Context) (err error) {
	o.request, err = o.client.Request(ctx, o.ask, o.written, o.words)
	return err
}

// now returns the object as it is.
func (o affected) now(ctx context.Context) (object, error) {
	if o.ask.Stored {
		return o.client.Value(ctx, o.request.Path)
	}
	have, err := o.client.Get(ctx, o.request.Object)
	if err != nil || have == nil {
		return nil, err
	}
	have.SetResourceVersion("")
	have.SetManagedFields(nil)
	return have.MarshalJSON()
}

// await reads the object again and again until it is as wanted.
func (o affected) await(ctx context.Context, wanted func(object) bool) error {
	_, err := ProbeUntil(ctx, objectSeen, o.now, wanted)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the change was not seen: %w", err)
	}
	return err
}

// copyName returns the name of the ConfigMap with the object's copy.
func (o affected) copyName() string {
	sum := sha256.Sum256([]byte(o.arm + " " + o.request.Path + " " + o.request.Object.GetName()))
	return "copy-" + hex.EncodeToString(sum[:8])
}

// keep stores a copy of the object. If there is a copy already, it belongs to the same fault, which didn't get any
// further: it is returned.
func (o affected) keep(ctx context.Context, was object) (first object, again bool, err error) {
	if err := o.namespace(ctx, o.copies); err != nil {
		return nil, false, err
	}
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.copyName()}}
	if was != nil {
		copied.BinaryData = map[string][]byte{"was": was}
	}
	_, err = o.api.CoreV1().ConfigMaps(o.copies).Create(ctx, copied, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		first, again, err = o.kept(ctx)
		return first, again, err
	}
	return was, false, err
}

func (o affected) namespace(ctx context.Context, name string) error {
	_, err := manifest.MakeNamespace(ctx, o.api, name, o.labels)
	return err
}

// kept returns the object's copy. The copy is nil if there was no such object.
func (o affected) kept(ctx context.Context) (was object, kept bool, err error) {
	copied, err := o.api.CoreV1().ConfigMaps(o.copies).Get(ctx, o.copyName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading how it was: %w", err)
	}
	return copied.BinaryData["was"], true, nil
}

// bringBack restores the object from its copy, if there is one, and returns in words how it is now.
func (o affected) bringBack(ctx context.Context, ifGone bool) (is string, err error) {
	if err := o.resolve(ctx); err != nil {
		return "", err
	}
	was, kept, err := o.kept(ctx)
	if err != nil || !kept {
		return "wasn't changed", err
	}
	if was == nil {
		is = "is gone again"
	} else {
		is = "is there again"
	}
	return is, o.restore(ctx, was, ifGone)
}

// restore brings the object back to its copy, and gives the copy up. With ifGone, an object that is there stays as it
// is.
func (o affected) restore(ctx context.Context, was object, ifGone bool) error {
	now, err := o.now(ctx)
	switch {
	case err != nil:
		return err
	case was == nil && now != nil:
		err = o.remove(ctx)
	case was != nil && now == nil, was != nil && !ifGone && !bytes.Equal(now, was):
		err = o.write(ctx, was, now == nil)
	}
	if err != nil {
		return err
	}
	if err := o.await(ctx, func(now object) bool { return (now == nil) == (was == nil) }); err != nil {
		return err
	}
	o.forget(ctx)
	return nil
}

// forget gives the copy up. One that stays would be taken for the copy of another fault. If it can't be deleted, it goes
// with the cluster.
func (o affected) forget(ctx context.Context) {
	_ = o.api.CoreV1().ConfigMaps(o.copies).Delete(ctx, o.copyName(), metav1.DeleteOptions{})
}

// remove deletes the object.
func (o affected) remove(ctx context.Context) error {
	if o.ask.Stored {
		return o.client.PutValue(ctx, o.request.Path, nil)
	}
	return o.client.Remove(ctx, o.request.Object)
}

// write writes the object as it was.
func (o affected) write(ctx context.Context, was object, gone bool) error {
	if o.ask.Stored {
		return o.client.PutValue(ctx, o.request.Path, was)
	}
	var old unstructured.Unstructured
	if err := old.UnmarshalJSON(was); err != nil {
		return fmt.Errorf("reading how it was: %w", err)
	}
	if gone {
		old.SetUID("")
		unstructured.RemoveNestedField(old.Object, "metadata", "creationTimestamp")
		return o.client.Make(ctx, &old)
	}
	return o.client.Replace(ctx, &old, o.ask.Subresource)
}
