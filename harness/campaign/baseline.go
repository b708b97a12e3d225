package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/ledger"
)

// BaselineOptions say from which cluster dumps are taken, and how many.
type BaselineOptions struct {
	Provider cluster.Provider
	Topology cluster.Topology // Baseline names its network
	Root     string           // the module's root
	Out      string           // the directory of run directories
	CacheDir string           // "" for the user's own
	MaxDisk  int64            // the bytes that the cache may take up; 0 for $RELAPSE_MAX_DISK, or 20 GiB
	Dumps    int
	Every    time.Duration
	Events   *event.Stream
}

// Baseline creates a cluster, has it do a little work, and takes dumps of the goroutines of its components, together
// with their metrics, which tell their version. The components are those whose program is Kubernetes' own, and those
// that run with --enable-pprof. Baseline returns the folder from which relapse match reads the dumps. Nothing of the
// cluster is left.
func Baseline(ctx context.Context, o BaselineOptions) (dir string, err error) {
	made, err := artifacts.Open(artifacts.Options{
		Root:     o.Root,
		CacheDir: o.CacheDir,
		MaxDisk:  o.MaxDisk,
		Events:   o.Events,
	})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	run := "relapse-" + harness.NewID()
	o.Topology.Network = run
	needs := cluster.Needs{Topologies: []cluster.Topology{o.Topology}, Builder: made}
	if err := o.Provider.Check(ctx, needs); err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(filepath.Join(o.Out, run+"-baseline")); err != nil {
		return "", err
	}
	record, err := ledger.Open(run, dir, o.Provider.Name(), []string{run})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, record.Close(ctx, o.Provider)) }()
	f := made.Forecast(ctx, nil, o.Provider, needs)
	if err := made.Fit(ctx, f); err != nil {
		return dir, err
	}
	expected, _ := f.Takes()
	stage := o.Events.Stage("build", "getting what the cluster is made of; "+f.String(), expected)
	_, err = o.Provider.Prepare(ctx, needs)
	if stage(err); err != nil {
		return "", err
	}
	stage = o.Events.Stage("cluster", "creating the cluster "+run, 35*time.Second)
	c, err := o.ready(ctx, run)
	if stage(err); err != nil {
		return "", err
	}
	stage = o.Events.Stage("baseline", "taking dumps", time.Duration(o.Dumps)*o.Every)
	err = o.observe(ctx, c, dir)
	stage(err)
	return dir, err
}

// ready creates the cluster and, if its nodes have kubelets, waits until the nodes are ready.
func (o BaselineOptions) ready(ctx context.Context, name string) (cluster.Cluster, error) {
	can, err := o.Provider.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.Provider.Create(ctx, name, o.Topology)
	if err != nil || !can.Kubelets {
		return c, err
	}
	client, err := klient.New(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, n := range c.Nodes() {
		nodes = append(nodes, n.Name())
	}
	return c, cluster.WaitReady(ctx, client, nodes, 3*time.Minute)
}

// observe takes the dumps while the cluster works.
func (o BaselineOptions) observe(ctx context.Context, c cluster.Cluster, dir string) error {
	working, stop := context.WithCancel(ctx)
	rounds := make(chan int, 1)
	go func() { rounds <- work(working, c.RESTConfig()) }()
	err := o.dumps(ctx, c, dir)
	stop()
	if n := <-rounds; err == nil && n == 0 {
		err = errors.New("not one object could be created and deleted: the cluster isn't well")
	}
	return err
}

func (o BaselineOptions) dumps(ctx context.Context, c cluster.Cluster, dir string) error {
	names := component.Names(func(c component.Component) bool {
		return c.Kubernetes || o.Topology.Nodes[0].Args[c.Name]["enable-pprof"] == "true"
	})
	for i := range o.Dumps {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(o.Every):
		}
		for _, name := range names {
			for _, one := range c.Components(name) {
				at := filepath.Join(dir, one.Node().Name(), name)
				err := errors.Join(
					keep(
						ctx,
						one,
						"/debug/pprof/goroutine?debug=2",
						filepath.Join(at, fmt.Sprintf("goroutines-%03d.txt", i+1)),
					),
					keep(ctx, one, "/metrics", filepath.Join(at, "metrics.txt")),
				)
				if err != nil {
					return fmt.Errorf("looking at %s on %s: %w", name, one.Node().Name(), err)
				}
			}
		}
	}
	return nil
}

// keep writes the answer of a component to a file, without secrets.
func keep(ctx context.Context, c cluster.Component, path, file string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answer, err := c.Get(ctx, path)
	if err != nil {
		return err
	}
	defer answer.Close()
	raw, err := io.ReadAll(answer)
	if err != nil {
		return err
	}
	clean, err := bundle.Redact(raw)
	return errors.Join(
		err,
		os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(file, clean, 0o644),
	)
}
