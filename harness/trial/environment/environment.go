// Package environment creates a trial's clusters and installs every arm in them.
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

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// Environment holds one trial's clusters, with every arm in its place.
type Environment struct {
	Trial plan.Trial

	run       string     // the run's name, with which every cluster's name begins
	plan      *plan.Plan // the trial's plan
	artifacts Artifacts
	provider  cluster.Provider
	events    *event.Stream
	builds    map[string]Build // by arm
	started   time.Time
	versions  map[string]string
	deviates  []string

	mu           sync.Mutex
	clusters     map[string]cluster.Cluster // existing clusters, by plan.Cluster's name
	unresponsive []string                   // candidates that didn't answer after they were installed
	restarted    map[string]time.Time       // by arm: when the environment last restarted its subject
}

// Options say which trial's environment to create, and from which builds. All but Versions and Deviates are required.
type Options struct {
	Run       string // the run's name
	Plan      *plan.Plan
	Trial     plan.Trial
	Artifacts Artifacts
	Provider  cluster.Provider
	Versions  map[string]string // versions of the tools in use, for the bundle
	Deviates  []string          // what weakens the trial and was known only once the plan was made, for the bundle
	Events    *event.Stream
}

// Create creates a trial's clusters. Each arm's executable and every seam is in its node before anything starts there.
// If arms have their own clusters and go through the phases one after the other, Create creates only the first arm's
// cluster; CreateFor creates the others.
func Create(ctx context.Context, o Options) (*Environment, error) {
	e := &Environment{
		Trial:     o.Trial,
		run:       o.Run,
		plan:      o.Plan,
		artifacts: o.Artifacts,
		provider:  o.Provider,
		events:    o.Events,
		builds:    map[string]Build{},
		started:   time.Now().UTC(),
		versions:  o.Versions,
		deviates:  o.Deviates,
		clusters:  map[string]cluster.Cluster{},
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

// CreateFor creates those clusters of some arms that don't exist yet, all in parallel.
func (e *Environment) CreateFor(ctx context.Context, arms []string) (err error) {
	var missing []plan.Cluster
	var names []string
	for _, c := range e.Trial.Clusters {
		if _, there := e.clusters[c.Name]; !there &&
			slices.ContainsFunc(
				arms,
				func(arm string) bool { return e.Trial.ClusterOf(arm).Name == c.Name },
			) {
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

// create creates one cluster, sets its memory limits and gives each arm its own build.
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
			limit := one.Abilities().Limit
			if limit == nil {
				return fmt.Errorf("the memory of %s can't be limited here", component)
			}
			if component == e.Trial.Subject {
				e.noteRestart(one.Node().Arm())
			}
			if err := limit(ctx, c.Memory[component]); err != nil {
				return err
			}
		}
	}
	if err := e.installCandidates(ctx, made); err != nil {
		return err
	}
	return e.leadAgain(ctx, c, made)
}

// Names returns the full names of the existing clusters, in the plan's order.
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

// ClusterName returns the full name of a plan's cluster in a run.
func ClusterName(run, name string) string {
	if name == "" {
		return run
	}
	return run + "-" + name
}

// Run returns the name of the run.
func (e *Environment) Run() string { return e.run }

// Seed returns the plan's seed.
func (e *Environment) Seed() int64 { return e.plan.Seed }

// Cluster returns the first existing cluster. If the arms share a cluster, this is the shared one.
func (e *Environment) Cluster() cluster.Cluster {
	for _, c := range e.Trial.Clusters {
		if one, there := e.clusters[c.Name]; there {
			return one
		}
	}
	return nil
}

// ClusterOf returns the cluster of an arm, or nil if it doesn't exist.
func (e *Environment) ClusterOf(arm string) cluster.Cluster {
	if c := e.Trial.ClusterOf(arm); c != nil {
		return e.clusters[c.Name]
	}
	return nil
}

// components returns the instances of a component in all existing clusters.
func (e *Environment) components(name string) []cluster.Component {
	var out []cluster.Component
	for _, c := range e.Trial.Clusters {
		if one, there := e.clusters[c.Name]; there {
			out = append(out, one.Components(name)...)
		}
	}
	return out
}

// Build returns the build of an arm.
func (e *Environment) Build(arm string) Build { return e.builds[arm] }

// Delete deletes all clusters, even after ctx has ended.
func (e *Environment) Delete(ctx context.Context) error { return e.delete(ctx, e.Trial.Clusters) }

// DeleteOf deletes the clusters that belong to one of the given arms. It leaves a cluster that all arms share.
func (e *Environment) DeleteOf(ctx context.Context, arms []string) error {
	return e.delete(ctx, slices.DeleteFunc(slices.Clone(e.Trial.Clusters),
		func(c plan.Cluster) bool { return !slices.Contains(arms, c.Name) }))
}

// delete deletes some clusters, all in parallel.
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

// WaitReady waits until every node that has a kubelet is Ready.
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
