// Package environment creates a trial's clusters with every arm installed.
package environment

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

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Environment is one trial's clusters with every arm in its place.
type Environment struct {
	Trial plan.Trial

	run       string     // its name, which every cluster's name begins with
	plan      *plan.Plan // that the trial is of
	artifacts Artifacts
	provider  cluster.Provider
	events    *event.Stream
	builds    map[string]artifacts.Build // by arm
	started   time.Time
	versions  map[string]string

	mu           sync.Mutex
	clusters     map[string]cluster.Cluster // those that exist, by plan.Cluster's name
	unresponsive []string                   // arms of candidates that didn't answer once they were installed
}

// Artifacts are the builds to install, such as *artifacts.Artifacts once it is prepared.
type Artifacts interface {
	Of(arm scenario.Arm) (artifacts.Build, error)
	Fixture(name string) string // its path on this host
}

// Options say which trial's environment to create, and from what. All but Versions are required.
type Options struct {
	Run       string // the run's name
	Plan      *plan.Plan
	Trial     plan.Trial
	Artifacts Artifacts
	Provider  cluster.Provider
	Versions  map[string]string // of what the trial is made with, as the bundle is to name them
	Events    *event.Stream
}

// Create creates a trial's clusters. Each arm's executable and every seam is in its node before anything starts
// there. If arms have clusters of their own and go through the phases one after the other, only the first arm's
// clusters are created; CreateFor creates the others.
func Create(ctx context.Context, o Options) (*Environment, error) {
	e := &Environment{
		Trial: o.Trial, run: o.Run, plan: o.Plan, artifacts: o.Artifacts, provider: o.Provider, events: o.Events,
		builds: map[string]artifacts.Build{}, started: time.Now().UTC(), versions: o.Versions,
		clusters: map[string]cluster.Cluster{},
	}
	for _, c := range o.Trial.Arms {
		b, err := o.Artifacts.Of(c.Arm)
		if err != nil {
			return nil, err
		}
		e.builds[c.Name] = b
	}
	if err := e.CreateFor(ctx, o.Trial.Groups()[0]); err != nil {
		return nil, errors.Join(err, e.Delete(ctx))
	}
	return e, nil
}

// CreateFor creates the missing clusters of some arms, all at once.
func (e *Environment) CreateFor(ctx context.Context, arms []string) (err error) {
	var missing []plan.Cluster
	var names []string
	for _, c := range e.Trial.Clusters {
		if _, there := e.clusters[c.Name]; !there &&
			slices.ContainsFunc(arms, func(arm string) bool { return e.Trial.ClusterOf(arm).Name == c.Name }) {
			missing, names = append(missing, c), append(names, e.clusterName(c.Name))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	what := "creating the cluster "
	if len(names) > 1 {
		what = "creating the clusters "
	}
	stage := e.events.Stage("cluster", what+strings.Join(names, " and "), 35*time.Second)
	defer func() { stage(err) }()
	g, creating := errgroup.WithContext(ctx)
	for _, c := range missing {
		g.Go(func() error { return e.create(creating, c) })
	}
	if err := g.Wait(); err != nil || !e.Trial.Place().SharedNodes() {
		return err
	}
	return e.installWorkloads(ctx)
}

// create creates one cluster, sets its limits and gives each arm its own build.
func (e *Environment) create(ctx context.Context, c plan.Cluster) error {
	topology, err := e.topology(c)
	if err != nil {
		return err
	}
	made, err := e.provider.Create(ctx, e.clusterName(c.Name), topology)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.clusters[c.Name] = made
	e.mu.Unlock()
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
	if err := e.installCandidates(ctx, made); err != nil {
		return err
	}
	return e.leadAgain(ctx, c, made)
}

// Names are the full names of the clusters that exist, in the plan's order.
func (e *Environment) Names() []string {
	var out []string
	for _, c := range e.Trial.Clusters {
		if _, there := e.clusters[c.Name]; there {
			out = append(out, e.clusterName(c.Name))
		}
	}
	return out
}

func (e *Environment) clusterName(name string) string { return ClusterName(e.run, name) }

// ClusterName is the full name of a plan's cluster in a run.
func ClusterName(run, name string) string {
	if name == "" {
		return run
	}
	return run + "-" + name
}

// Run is the name of the run.
func (e *Environment) Run() string { return e.run }

// Seed is the plan's seed.
func (e *Environment) Seed() int64 { return e.plan.Seed }

// Cluster is the first cluster that exists; if the arms share one, it is that one.
func (e *Environment) Cluster() cluster.Cluster {
	for _, c := range e.Trial.Clusters {
		if one, there := e.clusters[c.Name]; there {
			return one
		}
	}
	return nil
}

// ClusterOf is the cluster of an arm; nil if it doesn't exist.
func (e *Environment) ClusterOf(arm string) cluster.Cluster {
	if c := e.Trial.ClusterOf(arm); c != nil {
		return e.clusters[c.Name]
	}
	return nil
}

// Components are the instances of a component in all clusters that exist.
func (e *Environment) Components(name string) []cluster.Component {
	var out []cluster.Component
	for _, c := range e.Trial.Clusters {
		if one, there := e.clusters[c.Name]; there {
			out = append(out, one.Components(name)...)
		}
	}
	return out
}

// Build is an arm.
func (e *Environment) Build(arm string) artifacts.Build { return e.builds[arm] }

// Delete deletes all clusters. It works after ctx has ended, too.
func (e *Environment) Delete(ctx context.Context) error { return e.delete(ctx, e.Trial.Clusters) }

// DeleteOf deletes the clusters that only some arms use.
func (e *Environment) DeleteOf(ctx context.Context, arms []string) error {
	return e.delete(ctx, slices.DeleteFunc(slices.Clone(e.Trial.Clusters),
		func(c plan.Cluster) bool { return !slices.Contains(arms, c.Name) }))
}

// delete deletes some clusters, all at once.
func (e *Environment) delete(ctx context.Context, list []plan.Cluster) (err error) {
	stage := e.events.Stage("remove", "removing the clusters", 3*time.Second)
	defer func() { stage(err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, c := range list {
		wg.Go(func() { errs[i] = e.provider.Delete(ctx, e.clusterName(c.Name)) })
	}
	wg.Wait()
	for _, c := range list {
		delete(e.clusters, c.Name)
	}
	return errors.Join(errs...)
}

// WaitReady waits until every node is Ready that has a kubelet to report it.
func (e *Environment) WaitReady(ctx context.Context, timeout time.Duration) error {
	for _, c := range e.clusters {
		client, err := klient.New(c.RESTConfig())
		if err != nil {
			return err
		}
		var names []string
		for _, k := range c.Components("kubelet") {
			names = append(names, k.Node().Name())
		}
		if len(names) == 0 {
			continue
		}
		if err := cluster.WaitReady(ctx, client, names, timeout); err != nil {
			return err
		}
	}
	return nil
}
