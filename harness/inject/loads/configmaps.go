package loads

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/load"
)

// makers is how many objects are made at a time.
const makers = 16

// page is how much data a list may make the API server read at a time.
const page = 16 << 20

// objects are the namespaces and ConfigMaps of one load in one cluster. The API server is always asked which of them
// exist.
type objects struct {
	*client
	spec  *DeleteCollection
	bytes int64
}

// Prepare creates the namespaces and their ConfigMaps, and returns once a list shows all of them. It keeps what this
// load created before; the error names an object that somebody else created. It gives up after a minute without
// progress.
func (l *DeleteCollection) Prepare(ctx context.Context, t load.Target) error {
	o, err := l.objects(t)
	if err != nil {
		return err
	}
	return o.ensure(ctx, time.Minute)
}

func (l *DeleteCollection) objects(t load.Target) (*objects, error) {
	size, err := l.size()
	if err != nil {
		return nil, err
	}
	c, err := newClient(t)
	if err != nil {
		return nil, err
	}
	return &objects{client: c, spec: l, bytes: size}, nil
}

// namespace returns the name of the n-th namespace, from 0.
func (o *objects) namespace(n int) string { return fmt.Sprintf("relapse-%s-%d", o.Name, n+1) }

func item(n int) string { return fmt.Sprintf("item-%05d", n) }

// ensure creates the missing objects and lists again, until a list shows all of them. It tries again after a failure as
// long as there is progress within patience.
func (o *objects) ensure(ctx context.Context, patience time.Duration) error {
	least, since := -1, time.Now()
	for {
		missing, err := o.attempt(ctx)
		switch {
		case err == nil && missing == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("making the objects of load %s: %w", o.Name, context.Cause(ctx))
		case errors.Is(err, errForeign) || errors.Is(err, errUnfit):
			return fmt.Errorf("making the objects of load %s: %w", o.Name, err)
		case missing >= 0 && (least < 0 || missing < least):
			least, since = missing, time.Now()
			if err == nil {
				continue // all were made: now they have to show
			}
		case time.Since(since) > patience:
			if err == nil {
				err = fmt.Errorf("%d objects are missing however often they are made", missing)
			}
			return fmt.Errorf(
				"making the objects of load %s: nothing got on for %s: %w",
				o.Name,
				patience,
				err,
			)
		}
		if err := wait(ctx, time.Second); err != nil { // what failed is given a moment to get well
			return fmt.Errorf("making the objects of load %s: %w", o.Name, err)
		}
	}
}

// attempt makes the missing objects once, and returns how many were missing; -1 if it couldn't find out.
func (o *objects) attempt(ctx context.Context) (missing int, err error) {
	type place struct{ namespace, item int }
	var want []place
	for n := range o.spec.namespaces() {
		if err := o.makeNamespace(ctx, o.namespace(n)); err != nil {
			return -1, err
		}
		have, err := o.items(ctx, o.namespace(n))
		if err != nil {
			return -1, err
		}
		for i := range o.spec.Items {
			if !have[item(i)] {
				want = append(want, place{n, i})
			}
		}
	}
	all := o.spec.namespaces() * o.spec.Items
	var made atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for _, p := range want {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := o.makeItem(ctx, p.namespace, p.item); err != nil {
				return err
			}
			if done := all - len(want) + int(made.Add(1)); done%max(all/10, 1) == 0 {
				o.Events.Emit(event.Event{Type: event.Progress, Arm: o.Arm,
					Message: fmt.Sprintf("%s: %d of %d ConfigMaps are there", o.Name, done, all),
					Fields:  map[string]any{"load": o.Name}})
			}
			return nil
		})
	}
	return len(want), g.Wait()
}

func (o *objects) makeItem(ctx context.Context, namespace, n int) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	client := o.typed.CoreV1().ConfigMaps(o.namespace(namespace))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: item(n), Labels: o.labels()},
		Data: content(o.Seed, namespace, n, o.bytes)}
	_, err := client.Create(ctx, cm, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if cm, err = client.Get(ctx, item(n), metav1.GetOptions{}); err == nil && !o.ours(cm) {
			err = errForeign
		}
	}
	return describe("ConfigMap "+o.namespace(namespace)+"/"+item(n), err)
}

// items returns the names of the ConfigMaps in a namespace that this load made. Others, such as kube-root-ca.crt, are
// left out.
func (o *objects) items(ctx context.Context, namespace string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	have := map[string]bool{}
	opts := metav1.ListOptions{
		LabelSelector: o.selector(),
		Limit:         min(max(page/o.bytes, 50), 500),
	}
	for {
		list, err := o.metadata.Resource(configMaps).Namespace(namespace).List(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("listing the ConfigMaps of namespace %s: %w", namespace, err)
		}
		for _, m := range list.Items {
			have[m.Name] = true
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return have, nil
		}
	}
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// content returns an object's data: random text, which doesn't compress well, under the keys of an ordinary ConfigMap.
// The data follows from the seed and the object's number, so that every arm has the same.
func content(seed int64, namespace, n int, size int64) map[string]string {
	random := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "%d/%d/%d", seed, namespace, n)))
	raw := make([]byte, base64.RawURLEncoding.DecodedLen(int(size))+1)
	_, _ = random.Read(raw) // never fails
	text := base64.RawURLEncoding.EncodeToString(raw)[:size]
	out := map[string]string{}
	for left, keys := 4, []string{"settings", "rules", "templates", "notes"}; left > 0; left-- {
		cut := len(text) / left
		out[keys[4-left]], text = text[:cut], text[cut:]
	}
	return out
}
