package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/match/healthy"
	"github.com/kube-relapse/relapse/harness/match/measure"
)

type baselineFlags struct {
	provider, kubernetes, out string
	dumps, simulated          int
	every                     time.Duration
	disk                      diskFlags
}

// validate refuses a cluster that can't be made, and dumps that would be none.
func (o baselineFlags) validate() error {
	const hint = "relapse baseline --help lists the flags"
	switch {
	case !version3.MatchString(o.kubernetes):
		return usage(fmt.Errorf("--kubernetes %q is no Kubernetes version (want vX.Y.Z)", o.kubernetes),
			"relapse baseline --kubernetes "+cluster.DefaultVersion)
	case o.dumps < 1:
		return usage(fmt.Errorf("--dumps is %d (want at least 1)", o.dumps), hint)
	case o.simulated < 0:
		return usage(fmt.Errorf("--simulated is %d (want 0 or more)", o.simulated), hint)
	case o.simulated > 0 && o.provider == providers.Kind:
		return usage(fmt.Errorf("--simulated is for the provider %s: %s has nodes of its own", providers.Processes,
			providers.Kind), "leave it out, or add --provider "+providers.Processes)
	}
	return nil
}

// newBaselineCmd returns the command `relapse baseline`.
func newBaselineCmd() *cobra.Command {
	var o baselineFlags
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Take dumps of the components of a cluster that is well, for relapse match",
		Long: `Baseline creates a cluster, creates and deletes a few objects a second in it, and takes goroutine dumps of every
Kubernetes component. With the provider processes it also takes goroutine dumps of etcd. Then it removes the cluster.

relapse match compares a process with such dumps, and reports as unusual what the process has beyond them. relapse
match --healthy DIR... --write turns the dumps into the baselines that relapse ships with.`,
		Example: "  relapse baseline --kubernetes " + cluster.DefaultVersion + " --provider processes\n  relapse match --healthy runs/relapse-*-baseline --write",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			if err := o.disk.fits(); err != nil {
				return err
			}
			root, err := moduleRoot(cmd)
			if err != nil {
				return err
			}
			base, err := os.ReadFile(filepath.Join(root, "kind-config.yaml"))
			if err != nil {
				return err
			}
			events := event.NewStream(&event.Lines{W: cmd.ErrOrStderr()})
			provider, err := newProvider(o.provider, events, false)
			if err != nil {
				return usage(err, "relapse baseline --provider "+providers.Processes)
			}
			node := cluster.NodeSpec{Name: cluster.ControlPlane, Role: cluster.ControlPlane}
			// Neither component serves dumps by default. On kind, etcd's can't be reached.
			node.Args = map[string]map[string]string{"kube-proxy": {"enableProfiling": "true"}}
			if o.provider == providers.Processes {
				node.Args = map[string]map[string]string{"etcd": {"enable-pprof": "true"}}
			}
			dir, err := campaign.Baseline(
				cmd.Context(),
				campaign.BaselineOptions{
					Provider: provider,
					Root:     root,
					Out:      o.out,
					MaxDisk:  o.disk.max,
					Dumps:    o.dumps,
					Every:    o.every,
					Events:   events,
					Topology: cluster.Topology{Version: o.kubernetes, Base: base,
						Simulated: o.simulated, Nodes: []cluster.NodeSpec{node}},
				},
			)
			if err != nil {
				return hostHint(cmd, o.provider, failed(err))
			}
			_, err = fmt.Fprintf(
				cmd.OutOrStdout(),
				"dumps: %s\nnext:  relapse match --healthy %s --write\n",
				dir,
				dir,
			)
			return err
		},
	}
	cmd.Flags().
		StringVar(&o.provider, "provider", providers.Processes, "what makes the cluster: kind or processes")
	cmd.Flags().
		StringVar(&o.kubernetes, "kubernetes", cluster.DefaultVersion, "the Kubernetes version of the cluster")
	cmd.Flags().
		IntVar(&o.simulated, "simulated", 0, "how many nodes kwok simulates in the cluster, with the provider processes")
	runsVar(cmd.Flags(), &o.out)
	cmd.Flags().IntVar(&o.dumps, "dumps", 10, "how many dumps to take of each process")
	limitVar(
		cmd.Flags(),
		&o.every,
		"every",
		10*time.Second,
		"the time between two dumps of a process",
	)
	o.disk.register(cmd.Flags())
	return cmd
}

// writeBaselines runs `relapse match --healthy PATH --write`.
func writeBaselines(cmd *cobra.Command, paths []string) error {
	root, err := needCheckout(cmd, "a baseline")
	if err != nil {
		return err
	}
	all, err := baselines(cmd, paths)
	if err != nil {
		return err
	}
	for _, b := range all {
		at, whole, err := b.Write(root)
		if err != nil {
			return err
		}
		if err := printBaseline(cmd.OutOrStdout(), whole, relative([]string{at})[0]); err != nil {
			return err
		}
	}
	return nil
}

func printBaseline(out io.Writer, b *healthy.Baseline, at string) error {
	for _, of := range b.Of {
		if _, err := fmt.Fprintf(out, "%s %s: %d dumps of %d processes\n", b.Component, of.Version, of.Dumps, of.Processes); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s: %d places in %s\n", b.Component, len(b.Places), at)
	return err
}

// baselines makes baselines from evidence, and prints what was left out.
func baselines(cmd *cobra.Command, paths []string) ([]*healthy.Baseline, error) {
	all, left, err := measure.Well(cmd.Context(), paths)
	if err != nil {
		return nil, unread(err)
	}
	for _, l := range left {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", l.Path, l.Message)
	}
	if len(all) == 0 {
		return nil, usage(errors.New("there is no dump of a healthy process whose component and version are known"),
			"want dumps at debug=2 with metrics or a log beside them, as relapse baseline takes them, or runs of relapse")
	}
	return all, nil
}

// loadBaselines returns the built-in baselines; a baseline from paths replaces the built-in one for the same component.
func loadBaselines(cmd *cobra.Command, paths []string) ([]*healthy.Baseline, error) {
	shipped, err := healthy.Shipped()
	if err != nil || len(paths) == 0 {
		return shipped, err
	}
	out, err := baselines(cmd, paths)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for _, b := range out {
		own[b.Component] = true
	}
	for _, b := range shipped {
		if !own[b.Component] {
			out = append(out, b)
		}
	}
	return out, nil
}
