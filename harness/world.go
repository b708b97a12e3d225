package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/klient"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/provider"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/seam"
)

// World is a running cluster with every arm in its cell.
type World struct {
	lab      *Lab
	plan     *plan.Plan
	provider provider.Provider
	name     string // of the cluster, and so of the run
	cluster  cluster.Cluster
	cells    map[string]built // by cell
	started  time.Time
	versions map[string]string
	earlier  []event.Event // stages that ended before the trial's bundle existed
}

// Up creates a trial's cluster, with each arm's executable and every seam in its node before anything starts there.
func (l *Lab) Up(ctx context.Context, p *plan.Plan, t plan.Trial, prov provider.Provider, name string) (w *World, err error) {
	stage := l.stage("cluster", "creating the cluster "+name, 35*time.Second)
	defer func() { stage(err) }()
	w = &World{lab: l, plan: p, provider: prov, name: name, cells: map[string]built{}, started: time.Now().UTC(), versions: l.versions(ctx, p)}
	topology, err := w.lay(t)
	if err != nil {
		return nil, err
	}
	if w.cluster, err = prov.Create(ctx, name, topology); err != nil {
		return nil, err
	}
	return w, nil
}

// Cluster is the running cluster.
func (w *World) Cluster() cluster.Cluster { return w.cluster }

// Down removes the cluster. It works after ctx has ended, too.
func (w *World) Down(ctx context.Context) (err error) {
	stage := w.lab.stage("remove", "removing the cluster "+w.name, 3*time.Second)
	defer func() { stage(err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	return w.provider.Delete(ctx, w.name)
}

// WaitReady waits until every node is Ready.
func (w *World) WaitReady(ctx context.Context, timeout time.Duration) error {
	client, err := klient.New(w.cluster.RESTConfig())
	if err != nil {
		return err
	}
	var names []string
	for _, n := range w.cluster.Nodes() {
		names = append(names, n.Name())
	}
	return provider.WaitReady(ctx, client, names, timeout)
}

// lay puts the arms' executables and the seams into the plan's topology.
func (w *World) lay(t plan.Trial) (cluster.Topology, error) {
	top := t.Topology
	top.Network = w.name
	top.Nodes = slices.Clone(top.Nodes)
	for i := range top.Nodes {
		n := &top.Nodes[i]
		n.Image = w.lab.image.Ref
		if n.Cell == "" {
			continue
		}
		arm, err := w.arm(t, n.Cell)
		if err != nil {
			return top, err
		}
		w.cells[n.Cell] = arm
		n.Files = slices.Concat(n.Files, []cluster.File{{Path: executable(t.Subject), Source: arm.path, Mode: 0o755}})
		for _, name := range t.Seams {
			k, err := seam.New(name, nil)
			if err != nil {
				return top, err
			}
			if k.Role() != n.Role {
				continue
			}
			if err := seam.Lay(n, k, w.lab.fixtures[k.Fixture()].Path); err != nil {
				return top, err
			}
		}
	}
	return top, nil
}

// executable is where a node has a component's executable.
func executable(component string) string { return "/usr/bin/" + component }

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
	for _, comp := range w.cluster.Components(t.Subject) {
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

// single is the plan with this one trial in it.
func (w *World) single(t plan.Trial) plan.Plan {
	p := *w.plan
	p.Trials = []plan.Trial{t}
	return p
}

// facts is what a trial's bundle records of the world.
func (w *World) facts(t plan.Trial) bundle.World {
	out := bundle.World{
		StartedAt: w.started, Run: w.name, Versions: w.versions, Computed: map[string]string{},
		Modelled: slices.Clone(t.Modelled), Deviates: slices.Clone(t.Deviates),
	}
	for _, c := range t.Cells {
		b := w.cells[c.Name]
		out.Cells = append(out.Cells, bundle.CellWorld{
			Cell: c.Name, Arm: c.Arm.Name, Node: w.nodeOf(c.Name), Digest: b.digest, Graph: b.graph, Flags: b.flags, GoVersion: b.goVersion,
			Changes: b.changes, Constants: b.constants,
		})
		for _, m := range b.modelled {
			if !slices.Contains(out.Modelled, m) {
				out.Modelled = append(out.Modelled, m)
			}
		}
	}
	return out
}

func (w *World) nodeOf(cell string) string {
	for _, n := range w.cluster.Nodes() {
		if n.Cell() == cell {
			return n.Name()
		}
	}
	return ""
}

// armKey addresses an arm by all that it is built from.
func armKey(a scenario.Arm) string {
	raw, err := json.Marshal(a.Source)
	if err != nil { // a Source is plain data
		panic(err)
	}
	return string(raw)
}

func sha256File(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cutLast cuts s around its last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Version is this program's own version, as Go recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return info.Main.Version + " " + s.Value
		}
	}
	return info.Main.Version
}
