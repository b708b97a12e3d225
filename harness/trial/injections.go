package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial/environment"
)

// injections holds a trial's loads and faults, and chooses where each acts.
type injections struct {
	env    *environment.Environment
	events *event.Stream
	writer *bundle.Writer
	faults []plan.Fault // with their parameters computed
	loads  []plan.Load
	locks  load.Locks
}

// aimedFault is a fault with its target in one arm.
type aimedFault struct {
	plan.Fault
	at fault.Target
}

// loadsOf returns the loads of a phase that act in an arm. The null control goes without those that are a trigger.
func (x *injections) loadsOf(arm, phase string) []plan.Load {
	return slices.DeleteFunc(slices.Clone(x.loads), func(l plan.Load) bool {
		return l.Trigger && x.env.Trial.NoFaults || cmp.Or(l.Phase, check.Fault) != phase ||
			l.Target.Arm != "" && l.Target.Arm != arm
	})
}

// prepareLoads makes the loads of all phases create the objects that they need.
func (x *injections) prepareLoads(ctx context.Context, arms []string) (err error) {
	if len(x.loads) == 0 {
		return nil
	}
	stage := x.events.Stage("load", "making the objects that the loads need", 20*time.Second)
	defer func() { stage(err) }()
	g, ctx := errgroup.WithContext(ctx)
	for _, arm := range arms {
		for _, l := range slices.Concat(x.loadsOf(arm, check.Baseline), x.loadsOf(arm, check.Fault),
			x.loadsOf(arm, check.Recovery)) {
			g.Go(func() error {
				t, err := x.loadTarget(arm, l.ItemHeader)
				if err == nil {
					err = l.Spec.Prepare(ctx, t)
				}
				if err != nil {
					return fmt.Errorf("preparing the load %s in %s: %w", l.Name, arm, err)
				}
				return nil
			})
		}
	}
	return g.Wait()
}

func (x *injections) loadTarget(arm string, item scenario.ItemHeader) (load.Target, error) {
	t, _, err := x.target(arm, item)
	return load.Target{
		Run:     x.env.Run(),
		Name:    item.Name,
		Arm:     arm,
		Cluster: x.env.ClusterOf(arm),
		Nodes:   t.Nodes,
		Events:  x.events,
		Seed:    x.env.Seed(),
		Locks:   &x.locks,
		Round:   func(int, bool) {},
	}, err
}

// targeted returns the arms that faults act in. If arms share their nodes, each fault acts once, for all of them.
func (x *injections) targeted(arms []string) []string {
	if x.env.Trial.Place().SharedNodes() {
		return []string{bundle.Shared}
	}
	return arms
}

// aim chooses the targets of all faults in arms. Even with an error it returns the faults whose targets it could
// choose, so that they can be recovered.
func (x *injections) aim(arms []string) (aimed []aimedFault, err error) {
	for _, arm := range x.targeted(arms) {
		for _, f := range x.faults {
			t, acts, e := x.target(arm, f.ItemHeader)
			if e != nil {
				err = errors.Join(err, e)
			} else if acts {
				aimed = append(aimed, aimedFault{f, t})
			}
		}
	}
	return aimed, err
}

// target returns where an item acts in an arm, and false if it doesn't act there.
func (x *injections) target(
	arm string,
	item scenario.ItemHeader,
) (t fault.Target, acts bool, err error) {
	if item.Target.Arm != "" && item.Target.Arm != arm {
		return t, false, nil
	}
	trial := x.env.Trial
	c, top, owner := x.env.ClusterOf(arm), trial.ClusterOf(arm), arm
	if arm == bundle.Shared {
		c, top = x.env.Cluster(), &trial.Clusters[0]
	}
	if trial.Place().SharedNodes() {
		owner = "" // a node without an arm belongs to all
	}
	labels := map[string]map[string]string{}
	for _, n := range top.Topology.Nodes {
		labels[c.Name()+"-"+n.Name] = n.Labels
	}
	nodes, err := fault.Select(item.Target, c, owner, labels, x.env.Seed())
	if err != nil {
		return t, false, fmt.Errorf("choosing the target of %s: %w", item.Name, err)
	}
	return fault.Target{
		Run:     x.env.Run(),
		Name:    item.Name,
		Arm:     arm,
		Subject: trial.Subject,
		Cluster: c,
		Nodes:   nodes,
		Expires: trial.Phases.Fault.Deadline.Duration + 2*time.Minute,
		Events:  x.events,
		Writer:  x.writer,
		Builds:  x.buildsOf(arm),
		Seams:   trial.Seams,
	}, true, nil
}

// buildsOf returns the builds of an arm; none for all arms at once.
func (x *injections) buildsOf(arm string) (out []fault.Build) {
	if arm == bundle.Shared {
		return nil
	}
	for _, b := range x.env.Build(arm).All() {
		out = append(out, fault.Build{Path: b.Path, Digest: b.Digest})
	}
	return out
}

// recover lifts every fault in every arm. It returns once each lift was observed.
func (x *injections) recover(ctx context.Context, arms []string) error {
	if x.env.Trial.NoFaults {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fault.LiftTime)
	defer cancel()
	aimed, err := x.aim(arms)
	errs := make([]error, len(aimed), len(aimed)+1)
	var wg sync.WaitGroup
	for i, f := range aimed {
		wg.Go(func() {
			if err := f.Spec.Recover(ctx, f.at); err != nil {
				errs[i] = fmt.Errorf("recovering %s in %s: %w", f.Name, f.at.Arm, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, err)...)
}
