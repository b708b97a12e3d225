package collectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "objects",
		Doc: "Every version of chosen objects, as watches show them, managed fields included.\n\n" +
			"The objects are those of the arm's namespace or, with shared, those of the whole cluster or of some of " +
			"its namespaces. A watch that shows nothing may be dead. So at each interval the collector asks for the " +
			"objects' versions, and the evidence reaches as far as the watches are seen to have shown all of them. " +
			"If a watch can't go on, the collector lists the objects again, and the time in between is a gap. If the " +
			"API server doesn't have a resource yet, the collector waits for it.",
		Example: "name: bundle\nkind: objects\nspec:\n  resources: [bundledeployments.fleet.cattle.io]\n",
		New: func() capture.Collector {
			return &Objects{Interval: metav1.Duration{Duration: 2 * time.Second}}
		},
	})
}

// Objects collects all versions of objects.
type Objects struct {
	Chosen
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"how often the watches are compared with the objects that exist; above 0"`
}

// Chosen selects objects by resource and namespace.
type Chosen struct {
	Resources         []string `json:"resources" refers:"objects" jsonschema:"plural names, with the API group unless it is the core group: pods, deployments.apps; at least one; secrets is refused"`
	Shared            bool     `json:"shared,omitempty" jsonschema:"choose from the whole cluster instead of the arm's namespace; if arms share the cluster, the evidence belongs to no arm; default: false"`
	Namespaces        []string `json:"namespaces,omitempty" jsonschema:"with shared: choose namespaced objects only in these namespaces, and in those of namespaceSelector; default: no limit"`
	NamespaceSelector string   `json:"namespaceSelector,omitempty" jsonschema:"with shared: choose namespaced objects only in namespaces with these labels, which are read once, and in those of namespaces; default: no limit"`
}

// Validate refuses an empty list of resources, names that are none, Secrets, namespaces without Shared, and a bad
// selector.
func (c *Chosen) Validate() error {
	var errs []error
	if len(c.Resources) == 0 {
		errs = append(errs, errors.New("resources is empty (want at least one)"))
	}
	for i, r := range c.Resources {
		name, _, _ := strings.Cut(r, ".")
		switch {
		case r != strings.ToLower(r) || strings.ContainsAny(r, "/ ") || name == "":
			errs = append(
				errs,
				fmt.Errorf(
					"resources: %q is no resource (want its plural name and group: pods, deployments.apps)",
					r,
				),
			)
		case r == "secrets":
			errs = append(errs, errors.New("resources: secrets are not recorded"))
		case slices.Contains(c.Resources[:i], r):
			errs = append(errs, fmt.Errorf("resources: %s is there twice", r))
		}
	}
	if !c.Shared && (len(c.Namespaces) > 0 || c.NamespaceSelector != "") {
		errs = append(errs,
			errors.New("namespaces are chosen without shared (want shared: true; without it, it is the arm's)"))
	}
	if _, err := labels.Parse(c.NamespaceSelector); err != nil {
		errs = append(errs, fmt.Errorf("namespaceSelector: %w", err))
	}
	return errors.Join(errs...)
}

// Validate refuses what Chosen refuses, and an interval of 0 or less.
func (c *Objects) Validate() error {
	err := c.Chosen.Validate()
	err = errors.Join(err, ValidateInterval(c.Interval))
	return err
}

// ClusterWide reports whether objects of the cluster are chosen, not those of one arm.
func (c *Chosen) ClusterWide() bool { return c.Shared }

// Makes returns the kind of artifact that the collector records: versions of objects.
func (*Objects) Makes() []bundle.Kind { return []bundle.Kind{bundle.Objects} }

// Stream watches each resource separately, and proves at each interval that no watch has missed anything.
func (c *Objects) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	return c.stream(ctx, t, w, bundle.Objects, "jsonl"+bundle.Packed,
		func(st *bundle.Stream, v churn.Version) error { return st.Append(v) })
}

// stream does the work of Stream for an artifact of any kind and extension. put adds each version and each mark to the
// artifact.
func (c *Objects) stream(
	ctx context.Context,
	t capture.Target,
	w *bundle.Writer,
	kind bundle.Kind,
	form string,
	put func(*bundle.Stream, churn.Version) error,
) error {
	api, err := c.API(t, c.Validate())
	if err != nil {
		w.Fail(t.Meta(kind), err)
		return err
	}
	st, err := w.Stream(t.Meta(kind), form)
	if err != nil {
		return err
	}
	p := &prover{stream: st, put: put}
	var wg sync.WaitGroup
	for _, name := range c.Resources {
		f := &watched{resource: name, api: api, prover: p, changed: make(chan struct{})}
		p.all = append(p.all, f)
		wg.Go(func() { f.run(ctx) })
	}
	p.run(ctx, c.Interval.Duration)
	wg.Wait()
	return st.Close()
}

// prover extends a stream's coverage up to the time for which every watch is proven to have shown everything.
type prover struct {
	stream *bundle.Stream
	put    func(*bundle.Stream, churn.Version) error
	all    []*watched

	mu     sync.Mutex
	proven time.Time // zero before the first proof
}

// run proves at each interval until ctx ends. If two proofs are further apart than tolerated, nothing was missed, but
// the time at which a version was seen says little about when it was written. So that time is a gap, too.
func (p *prover) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var reason error
	for ctx.Err() == nil {
		asked := time.Now()
		if err := p.prove(ctx); err == nil {
			if last := p.last(); !last.IsZero() && asked.Sub(last) > tolerated {
				p.stream.Gap(last, asked, why(reason, asked.Sub(last)))
			}
			p.stream.Alive(asked)
			p.mu.Lock()
			p.proven, reason = asked, nil
			p.mu.Unlock()
		} else if ctx.Err() == nil {
			reason = err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if last := p.last(); reason != nil && !last.IsZero() && time.Since(last) > tolerated {
		p.stream.Gap(last, time.Now(), reason.Error())
	}
}

func (p *prover) last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven
}

// prove compares each watch with the objects that there are now.
func (p *prover) prove(ctx context.Context) error {
	for _, f := range p.all {
		one, cancel := context.WithTimeout(ctx, AskTimeout)
		err := f.prove(one)
		cancel()
		if err != nil {
			return fmt.Errorf("following %s: %w", f.resource, err)
		}
	}
	return nil
}
