package loads

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/netip"
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
		Name: "endpointChanges",
		Doc: "Many NodePort services with one endpoint each, of which one at a time gets another endpoint: work for " +
			"the service proxies on nodes.\n\n" +
			"Each change picks a service at random. The services have no selector. Their endpoints are addresses of " +
			"198.18.0.0/16, a range that is reserved for measurements, and nobody answers there. The load makes the " +
			"services before the steady state, in the namespace relapse-<set>. Loads of one set share the services. " +
			"Arms that share a cluster share the services, too, and each arm sees the changes of all. Kubernetes " +
			"copies the Endpoints to EndpointSlices. A round makes a number of changes, one after another, and has " +
			"begun once the API server has accepted one. Every answer is recorded, and none fails the load.",
		Example: "name: changes\nkind: endpointChanges\ntarget: {mode: all, selector: {component: kube-proxy}}\n" +
			"spec: {services: 200, changes: 45, every: 1s}\n",
		New: func() load.Load {
			return &EndpointChanges{
				Changes: 30,
				Every:   metav1.Duration{Duration: time.Second},
				Rounds:  1,
			}
		},
	})
}

// EndpointChanges changes the endpoints of services.
type EndpointChanges struct {
	Set      string          `json:"set,omitempty" jsonschema:"name of the set of services: loads with the same set share its services; default: the load's name"`
	Services int             `json:"services" jsonschema:"number of services: 1 to 2000"`
	Changes  int             `json:"changes,omitzero" jsonschema:"changes in each round; at least 1"`
	Every    metav1.Duration `json:"every,omitzero" jsonschema:"time from the answer to one change until the next change; above 0"`
	Rounds   int             `json:"rounds,omitzero" jsonschema:"number of rounds, one after another; at least 1"`
}

// mostServices is the most services of a load. They fit into the range of node ports, with room for other services.
const mostServices = 2000

// Makes returns the kinds of artifacts that the load records: the calls and their summary.
func (*EndpointChanges) Makes() []bundle.Kind { return []bundle.Kind{bundle.Calls, bundle.LoadSummary} }

// Alike returns true: all arms of a cluster see the same services.
func (*EndpointChanges) Alike() bool { return true }

// Validate refuses a load that changes nothing, and one that the range of node ports has no room for.
func (l *EndpointChanges) Validate() error {
	switch {
	case l.Services < 1 || l.Services > mostServices:
		return fmt.Errorf("services is %d (want 1 to %d)", l.Services, mostServices)
	case l.Changes < 1 || l.Rounds < 1:
		return fmt.Errorf("changes is %d and rounds %d (want at least 1)", l.Changes, l.Rounds)
	case l.Every.Duration <= 0:
		return fmt.Errorf("every is %s (want above 0)", l.Every.Duration)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *EndpointChanges) Describe() string {
	return fmt.Sprintf(
		"one of %d services with node ports gets another endpoint every %s, %d times",
		l.Services,
		l.Every.Duration,
		l.Changes*l.Rounds,
	)
}

// set returns a client for the set of services of a load, and the namespace of the set.
func (l *EndpointChanges) set(t load.Target) (*client, string, error) {
	if l.Set != "" {
		t.Name = l.Set
	}
	c, err := newClient(t)
	return c, "relapse-" + t.Name, err
}

// Prepare makes the namespace, the services and their endpoints. Those that exist already are left alone. Arms that
// share a cluster share the set, too: without a lock each would make all of it, and they would keep each other waiting
// for node ports.
func (l *EndpointChanges) Prepare(ctx context.Context, t load.Target) error {
	c, namespace, err := l.set(t)
	if err != nil {
		return err
	}
	defer t.Locks.Hold(t.Cluster.RESTConfig().Host + " " + namespace)()
	have := map[string]bool{} // endpoints that are there, which are made after their services
	err = insist(ctx, time.Minute, func(ctx context.Context) error {
		if err := c.makeNamespace(ctx, namespace); err != nil {
			return err
		}
		there, err := c.typed.CoreV1().Endpoints(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("listing the endpoints of %s: %w", namespace, err)
		}
		for _, e := range there.Items {
			have[e.Name] = true
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("preparing the load %s: %w", t.Name, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for i := range l.Services {
		if have[item(i)] {
			continue
		}
		g.Go(func() error {
			return insist(ctx, 2*time.Minute, func(ctx context.Context) error {
				return c.makeService(
					ctx,
					namespace,
					endpointsOf(i, netip.AddrFrom4([4]byte{198, 18, byte(i / 250),
						byte(i%250 + 1)})),
					corev1.ServiceTypeNodePort,
					80,
				)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("preparing the services of load %s: %w", t.Name, err)
	}
	return nil
}

// makeService makes a service without a selector, and its endpoints, which have its name. Those that exist already are
// left alone.
func (c *client) makeService(
	ctx context.Context,
	namespace string,
	e *corev1.Endpoints,
	typ corev1.ServiceType,
	port int32,
) error {
	e.Labels = c.labels()
	_, err := c.typed.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: e.Name, Labels: c.labels()},
		Spec: corev1.ServiceSpec{
			Type: typ,
			Ports: []corev1.ServicePort{
				{Name: e.Subsets[0].Ports[0].Name, Port: port, Protocol: corev1.ProtocolTCP},
			},
		},
	}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		_, err = c.typed.CoreV1().Endpoints(namespace).Create(ctx, e, metav1.CreateOptions{})
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return describe("the service "+e.Name, err)
}

// endpointsOf returns the one endpoint of the i-th service.
func endpointsOf(i int, at netip.Addr) *corev1.Endpoints {
	return &corev1.Endpoints{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
		ObjectMeta: metav1.ObjectMeta{Name: item(i)},
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: at.String()}},
			Ports: []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}}},
	}
}

// Run changes endpoints. An error means that evidence could not be written.
func (l *EndpointChanges) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	c, namespace, err := l.set(t)
	if err != nil {
		return err
	}
	// Every load draws other addresses, so that each call changes something, whoever else changes the same service.
	seed := fnv.New64a()
	fmt.Fprint(seed, t.Seed, t.Name, t.Arm)
	draw := rand.New(rand.NewPCG(seed.Sum64(), 0))
	one, err := json.Marshal(endpointsOf(0, netip.IPv4Unspecified()))
	if err != nil {
		return err
	}
	sum := bundle.Load{
		Name:    t.Name,
		Way:     "changes of endpoints",
		Objects: l.Services,
		Bytes:   int64(len(one)),
	}
	return inRounds(ctx, t, w, sum, schedule{rounds: l.Rounds, calls: l.Changes,
		round: func(n int, began func()) <-chan bundle.Call {
			out := make(chan bundle.Call)
			go func() {
				defer close(out)
				for i := range l.Changes {
					out <- c.change(ctx, bundle.Call{Load: t.Name, Round: n}, namespace, began,
						endpointsOf(draw.IntN(l.Services), netip.AddrFrom4([4]byte{198, 18, byte(128 + draw.IntN(128)),
							byte(1 + draw.IntN(254))})))
					if i < l.Changes-1 && wait(ctx, l.Every.Duration) != nil {
						return
					}
				}
			}()
			return out
		}})
}

// change replaces the endpoints of a service, and calls began if the API server accepts that.
func (c *client) change(ctx context.Context, one bundle.Call, namespace string, began func(),
	e *corev1.Endpoints) bundle.Call {
	e.Labels = c.labels()
	to := c.typed.CoreV1().
		RESTClient().
		Put().
		Namespace(namespace).
		Resource("endpoints").
		Name(e.Name).
		URL()
	one.Verb, one.Path = "UPDATE", to.Path
	body, err := json.Marshal(e)
	if err != nil {
		one.Time = time.Now().UTC()
		one.Done, one.Error = one.Time, err.Error()
		return one
	}
	return c.answer(
		ctx,
		one,
		asking,
		request{method: http.MethodPut, to: to, body: body, opened: began},
	)
}
