package loads

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "collectionProbe",
		Doc: "ConfigMaps that the API server must delete with one DELETECOLLECTION: the call must answer 200 and " +
			"leave none.\n\n" +
			"The ConfigMaps are in a separate namespace, relapse-<name>. The load makes the namespace before the " +
			"steady state and leaves it there: deleting it would make the namespace controller delete collections " +
			"while checks count leaks. The load retries creating and listing until the timeout, but makes the " +
			"DELETECOLLECTION call only once. The result is recorded, and never fails the load.",
		Example: "name: collection\nkind: collectionProbe\nphase: recovery\ntarget: {mode: all, selector: " +
			"{component: kube-apiserver}}\nspec:\n  items: 50\n  timeout: 60s\n",
		Tested: `{"items":20,"timeout":"5s"}`,
		New:    func() load.Load { return &CollectionProbe{Items: 50, Timeout: metav1.Duration{Duration: time.Minute}} },
	})
}

// CollectionProbe makes the API server delete all ConfigMaps of a namespace.
type CollectionProbe struct {
	Items   int             `json:"items" jsonschema:"ConfigMaps in the collection: 1 to 100000"`
	Timeout metav1.Duration `json:"timeout" refers:"stretch" jsonschema:"time limit of each step, above 0: filling the collection, deleting it, listing the ConfigMaps that are left"`
}

// Makes returns the kind of artifact that the load records: the probe's record.
func (*CollectionProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after it.
func (*CollectionProbe) Probe() bool { return true }

// Validate refuses an empty collection, whose deletion would prove nothing.
func (l *CollectionProbe) Validate() error {
	switch {
	case l.Items < 1 || l.Items > maxItems:
		return fmt.Errorf("items is %d (want 1 to %d)", l.Items, maxItems)
	case l.Timeout.Duration <= 0:
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *CollectionProbe) Describe() string {
	return fmt.Sprintf(
		"one DELETECOLLECTION of %d ConfigMaps must answer 200 and leave none, each step within %s",
		l.Items,
		l.Timeout.Duration,
	)
}

// Prepare makes the namespace.
func (l *CollectionProbe) Prepare(ctx context.Context, t load.Target) error {
	c, err := newClient(t)
	if err != nil {
		return err
	}
	err = insist(
		ctx,
		time.Minute,
		func(ctx context.Context) error { return c.makeNamespace(ctx, l.namespace(t)) },
	)
	if err != nil {
		return fmt.Errorf("preparing the namespace of load %s: %w", t.Name, err)
	}
	return nil
}

func (*CollectionProbe) namespace(t load.Target) string { return "relapse-" + t.Name }

// Run fills the collection, deletes it and looks at what is left.
func (l *CollectionProbe) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, err := newClient(t)
	if err != nil {
		return err
	}
	out := newProbe(t, fmt.Sprintf("one DELETECOLLECTION of %d ConfigMaps", l.Items))
	for _, s := range []struct {
		name string
		do   func(context.Context, *client) (string, error)
	}{{"created", l.fill}, {"deleted", l.delete}, {"emptied", l.remaining}} {
		err = out.step(1, s.name, func() (string, error) {
			what, err := s.do(ctx, c)
			if err != nil && ctx.Err() == nil { // whatever the error is, the API server is what was asked
				err = fmt.Errorf("%w: %w", errIdle, err)
			}
			return what, err
		})
		if err != nil {
			break
		}
	}
	return out.record(ctx, w, err)
}

func (l *CollectionProbe) fill(ctx context.Context, c *client) (string, error) {
	client := c.typed.CoreV1().ConfigMaps(l.namespace(c.Target))
	err := insist(ctx, l.Timeout.Duration, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(makers)
		for n := range l.Items {
			g.Go(func() error {
				cm := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("probe-%05d", n),
						Labels: c.labels()},
					Data: map[string]string{"n": fmt.Sprint(n)},
				}
				if _, err := client.Create(ctx, cm, metav1.CreateOptions{}); err != nil &&
					!apierrors.IsAlreadyExists(err) {
					return err
				}
				return nil
			})
		}
		return g.Wait()
	})
	return fmt.Sprintf("%d ConfigMaps", l.Items), err
}

func (l *CollectionProbe) delete(ctx context.Context, c *client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout.Duration)
	defer cancel()
	to := c.typed.CoreV1().
		RESTClient().
		Delete().
		Namespace(l.namespace(c.Target)).
		Resource("configmaps").
		URL()
	code, err := c.ask(ctx, request{method: http.MethodDelete, to: to})
	what := fmt.Sprintf("answered %d", code)
	switch {
	case code == 0:
		what = "no answer"
	case err == nil && code != 200:
		err = fmt.Errorf("answered %d (want 200)", code)
	}
	return what, err
}

// remaining lists the ConfigMaps that are there now: a list without a version is as new as the API server's etcd.
func (l *CollectionProbe) remaining(ctx context.Context, c *client) (what string, err error) {
	var names []string
	err = insist(ctx, l.Timeout.Duration, func(ctx context.Context) error {
		list, err := c.metadata.Resource(configMaps).Namespace(l.namespace(c.Target)).List(ctx,
			metav1.ListOptions{LabelSelector: c.selector()})
		if err != nil {
			return err
		}
		names = nil
		for _, m := range list.Items {
			names = append(names, m.Name)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(names) > 0 {
		what = fmt.Sprintf("%d of %d ConfigMaps are left: %s", len(names), l.Items,
			strings.Join(names[:min(3, len(names))], ", "))
		return what, errors.New(what)
	}
	return fmt.Sprintf("0 of %d ConfigMaps are left", l.Items), nil
}
