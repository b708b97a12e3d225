package loads

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/manifest"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "serviceProbe",
		Doc: "LoadBalancer services that the service controller must get an address for: they show that the " +
			"controller works, where health endpoints only show that it runs.\n\n" +
			"The probe is done once every service was seen with an address. The services that are created beforehand " +
			"are for checks of the steady state: they show that the controller works without any fault. The services " +
			"stay, in the namespace relapse-<name>-<arm>, so that evidence can show what becomes of them once the " +
			"fault is gone.",
		Example: "name: more\nkind: serviceProbe\ntarget: {mode: all, selector: {component: " +
			"cloud-controller-manager}}\nspec: {beforehand: 3, services: 12, timeout: 2m}\n",
		Tested: `{"timeout":"1s","services":3}`,
		New:    func() load.Load { return &ServiceProbe{Timeout: metav1.Duration{Duration: time.Minute}} },
	})
}

// ServiceProbe makes a service controller get addresses.
type ServiceProbe struct {
	Beforehand int             `json:"beforehand,omitzero" jsonschema:"services created before the steady state; default: 0"`
	Services   int             `json:"services" jsonschema:"services created when the load runs; at least 1"`
	Others     bool            `json:"others,omitempty" jsonschema:"whether services of the run's other loads must have an address, too; default: false"`
	Timeout    metav1.Duration `json:"timeout" refers:"stretch" jsonschema:"how long the services may take until all have an address, counted from the creation of the last; also the time limit of each creation; above 0"`
}

// Makes returns the kind of artifact that the load records: the probe's record.
func (*ServiceProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Probe returns true: nothing can come after it.
func (*ServiceProbe) Probe() bool { return true }

// Validate refuses a probe that nothing could pass, or that anything would pass.
func (l *ServiceProbe) Validate() error {
	switch {
	case l.Services < 1:
		return fmt.Errorf("services is %d (want at least 1)", l.Services)
	case l.Beforehand < 0:
		return fmt.Errorf("beforehand is %d (want 0 or more)", l.Beforehand)
	case l.Timeout.Duration <= 0:
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	}
	return nil
}

// Describe returns in words what the load asks for.
func (l *ServiceProbe) Describe() string {
	others := ""
	if l.Others {
		others = ", and for those of other loads,"
	}
	return fmt.Sprintf(
		"the service controller must get an address for %d services%s within %s",
		l.Services,
		others,
		l.Timeout.Duration,
	)
}

// services is the client for the services of one load in one cluster.
type services struct {
	*client
	namespace string
}

func newServices(t load.Target) (*services, error) {
	c, err := newClient(t)
	return &services{c, "relapse-" + t.Name + "-" + t.Arm}, err
}

// Prepare makes the namespace and the services that are created beforehand.
func (l *ServiceProbe) Prepare(ctx context.Context, t load.Target) error {
	s, err := newServices(t)
	if err != nil {
		return err
	}
	err = insist(
		ctx,
		time.Minute,
		func(ctx context.Context) error { return s.makeNamespace(ctx, s.namespace) },
	)
	if err == nil {
		_, err = s.createAll(ctx, "before", l.Beforehand, time.Minute)
	}
	if err != nil {
		return fmt.Errorf("preparing the services of load %s: %w", t.Name, err)
	}
	return nil
}

// Run creates the services and waits until all have an address.
func (l *ServiceProbe) Run(ctx context.Context, t load.Target, w *bundle.Writer) error {
	s, err := newServices(t)
	if err != nil {
		return err
	}
	out := newProbe(t, fmt.Sprintf("%d services that want an address", l.Services))
	err = out.step(1, "served", func() (string, error) { return s.served(ctx, l) })
	return out.record(ctx, w, err)
}

// createAll creates n services and returns their names.
func (s *services) createAll(
	ctx context.Context,
	prefix string,
	n int,
	patience time.Duration,
) (all []string,
	err error) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", prefix, i))
		err := insist(
			ctx,
			patience,
			func(ctx context.Context) error { return s.create(ctx, all[i]) },
		)
		if err != nil {
			return all, describe("the service "+all[i], err)
		}
	}
	return all, nil
}

// served creates the probe's services and waits until all have an address. It returns how many have, and the error
// names those that haven't.
func (s *services) served(ctx context.Context, l *ServiceProbe) (string, error) {
	timeout := l.Timeout.Duration
	names, err := s.createAll(ctx, "service", l.Services, timeout)
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		over := limited.Err() != nil
		asking, cancel := context.WithTimeout(ctx, asking)
		all, waiting, err := s.waiting(asking, names, l.Others)
		cancel()
		said := fmt.Sprintf("%d of %d have an address", all-len(waiting), all)
		switch {
		case ctx.Err() != nil:
			return said, context.Cause(ctx)
		case err == nil && len(waiting) == 0:
			return said, nil
		case over && err != nil:
			return "", fmt.Errorf("looking at the services at the end: %w", err)
		case over:
			return said, fmt.Errorf(
				"%w within %s: %s, and not %s",
				errIdle,
				timeout,
				said,
				firstNames(waiting),
			)
		}
		_ = wait(limited, time.Second) // or the time is up, and the next look is the last
	}
}

// firstNames lists the first of some names, and says how many more there are.
func firstNames(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// create creates a service. One that exists already was created by this load: its answer got lost.
func (s *services) create(ctx context.Context, name string) error {
	_, err := s.typed.CoreV1().Services(s.namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.labels()},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": name},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP},
			},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// waiting returns how many services are meant, and the names of those without an address. The load's own services of
// these names are meant and, with others, those that other loads of the run made.
func (s *services) waiting(
	ctx context.Context,
	names []string,
	others bool,
) (all int, without []string, err error) {
	list, err := s.typed.CoreV1().
		Services("").
		List(ctx, metav1.ListOptions{LabelSelector: manifest.RunLabel + "=" + s.Run})
	if err != nil {
		return 0, nil, err
	}
	missing := slices.Clone(names)
	for _, one := range list.Items {
		own := one.Namespace == s.namespace && slices.Contains(names, one.Name)
		if !own && (!others || one.Namespace == s.namespace) {
			continue
		}
		missing = slices.DeleteFunc(
			missing,
			func(name string) bool { return own && name == one.Name },
		)
		all++
		if !slices.ContainsFunc(one.Status.LoadBalancer.Ingress,
			func(i corev1.LoadBalancerIngress) bool { return i.IP != "" }) {
			without = append(without, one.Namespace+"/"+one.Name)
		}
	}
	return all + len(missing), append(without, missing...), nil
}
