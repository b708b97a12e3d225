package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/provider"
)

// World is a trial's clusters with every arm in its cell.
type World struct {
	lab      *Lab
	plan     *plan.Plan
	trial    plan.Trial
	provider provider.Provider
	name     string           // of the run, which every cluster's name begins with
	cells    map[string]built // by cell
	started  time.Time
	versions map[string]string
	earlier  []event.Event // stages that ended before the trial's bundle existed

	mu       sync.Mutex
	clusters map[string]cluster.Cluster // what is up, by plan.Cluster's name
	silent   []string                   // candidates that didn't answer once they were laid
}

// Up creates a trial's clusters, with each arm's executable and every seam in its node before anything starts there. Where cells go through the
// phases one after the other in clusters of their own, only the first one's is created; Trial sees to the others.
func (l *Lab) Up(ctx context.Context, p *plan.Plan, t plan.Trial, prov provider.Provider, name string) (*World, error) {
	w := &World{
		lab: l, plan: p, trial: t, provider: prov, name: name, cells: map[string]built{}, started: time.Now().UTC(), versions: l.versions(ctx, p),
		clusters: map[string]cluster.Cluster{},
	}
	for _, c := range t.Cells {
		arm, err := w.arm(t, c.Name)
		if err != nil {
			return nil, err
		}
		w.cells[c.Name] = arm
	}
	if err := w.raise(ctx, t.Groups()[0]); err != nil {
		return nil, errors.Join(err, w.Down(ctx))
	}
	return w, nil
}

// raise creates those clusters of some cells that aren't up yet, at once.
func (w *World) raise(ctx context.Context, cells []string) (err error) {
	var missing []plan.Cluster
	for _, c := range w.trial.Clusters {
		if _, up := w.clusters[c.Name]; !up && slices.ContainsFunc(cells, func(cell string) bool { return w.trial.ClusterOf(cell).Name == c.Name }) {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, c := range missing {
		names = append(names, w.clusterName(c.Name))
	}
	what := "creating the cluster "
	if len(names) > 1 {
		what = "creating the clusters "
	}
	stage := w.lab.stage("cluster", what+strings.Join(names, " and "), 35*time.Second)
	defer func() { stage(err) }()
	all := ctx
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range missing {
		g.Go(func() error { return w.create(ctx, c) })
	}
	if err := g.Wait(); err != nil || w.trial.Placement != plan.PlacementWorkload {
		return err
	}
	return w.deploy(all)
}

// create creates one cluster and limits what is to be limited in it.
func (w *World) create(ctx context.Context, c plan.Cluster) error {
	topology, err := w.lay(c)
	if err != nil {
		return err
	}
	made, err := w.provider.Create(ctx, w.clusterName(c.Name), topology)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.clusters[c.Name] = made
	w.mu.Unlock()
	for _, component := range slices.Sorted(maps.Keys(c.Memory)) {
		for _, one := range made.Components(component) {
			l, ok := one.(cluster.Limiter)
			if !ok {
				return fmt.Errorf("the memory of %s can't be limited here", component)
			}
			if err := l.Limit(ctx, c.Memory[component]); err != nil {
				return err
			}
		}
	}
	return w.settle(ctx, made)
}

// up names the clusters that are up, in the plan's order.
func (w *World) up() []string {
	var out []string
	for _, c := range w.trial.Clusters {
		if _, ok := w.clusters[c.Name]; ok {
			out = append(out, w.clusterName(c.Name))
		}
	}
	return out
}

func (w *World) clusterName(name string) string { return clusterName(w.name, name) }

// Cluster is the first cluster that is up: the only one where cells share it.
func (w *World) Cluster() cluster.Cluster {
	for _, c := range w.trial.Clusters {
		if up, ok := w.clusters[c.Name]; ok {
			return up
		}
	}
	return nil
}

// clusterOf is the running cluster of a cell; nil if it is not up.
func (w *World) clusterOf(cell string) cluster.Cluster {
	if c := w.trial.ClusterOf(cell); c != nil {
		return w.clusters[c.Name]
	}
	return nil
}

// Down removes all clusters. It works after ctx has ended, too.
func (w *World) Down(ctx context.Context) error { return w.lower(ctx, w.trial.Clusters) }

// lower removes some clusters, at once.
func (w *World) lower(ctx context.Context, list []plan.Cluster) (err error) {
	stage := w.lab.stage("remove", "removing the clusters", 3*time.Second)
	defer func() { stage(err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() { errs[i] = w.provider.Delete(ctx, w.clusterName(c.Name)) })
	}
	wg.Wait()
	for _, c := range list {
		delete(w.clusters, c.Name)
	}
	return errors.Join(errs...)
}

// lowerOf removes the clusters that some cells have to themselves.
func (w *World) lowerOf(ctx context.Context, cells []string) error {
	var list []plan.Cluster
	for _, c := range w.trial.Clusters {
		if slices.Contains(cells, c.Name) {
			list = append(list, c)
		}
	}
	return w.lower(ctx, list)
}

// WaitReady waits until every node is Ready.
func (w *World) WaitReady(ctx context.Context, timeout time.Duration) error {
	for _, c := range w.clusters {
		client, err := klient.New(c.RESTConfig())
		if err != nil {
			return err
		}
		var names []string
		for _, n := range c.Nodes() {
			names = append(names, n.Name())
		}
		if err := provider.WaitReady(ctx, client, names, timeout); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) arm(t plan.Trial, cell string) (built, error) {
	for _, c := range t.Cells {
		if c.Name == cell {
			b, ok := w.lab.arms[armKey(c.Arm)]
			if !ok {
				return b, fmt.Errorf("the arm of cell %s was not built", cell)
			}
			return b, nil
		}
	}
	return built{}, fmt.Errorf("the plan has no cell %s", cell)
}

// Relay replaces the executables of a running cluster by those of another trial's arms and restarts the subjects, so that several trials can
// use one cluster. The cells must be the same.
func (w *World) Relay(ctx context.Context, t plan.Trial) error {
	w.trial = t
	for _, comp := range w.components(t.Subject) {
		cell := comp.Node().Cell()
		have, ours := w.cells[cell]
		if !ours {
			continue
		}
		want, err := w.arm(t, cell)
		if err != nil {
			return err
		}
		if want.digest == have.digest {
			continue
		}
		if err := w.replace(ctx, comp, t.Subject, want.path); err != nil {
			return err
		}
		w.cells[cell] = want
	}
	return nil
}

// components are the instances of a component in all clusters that are up.
func (w *World) components(name string) []cluster.Component {
	var out []cluster.Component
	for _, c := range w.trial.Clusters {
		if up, ok := w.clusters[c.Name]; ok {
			out = append(out, up.Components(name)...)
		}
	}
	return out
}

// replace lays another executable and restarts the component from it.
func (w *World) replace(ctx context.Context, comp cluster.Component, subject, path string) error {
	layer, ok := comp.Node().(provider.Layer)
	again, ok2 := comp.(cluster.Restarter)
	if !ok || !ok2 {
		return fmt.Errorf("node %s can't have its %s replaced", comp.Node().Name(), subject)
	}
	if err := layer.Lay(ctx, executable(subject), path); err != nil {
		return err
	}
	return again.Restart(ctx)
}
