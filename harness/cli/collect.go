package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-relapse/relapse/harness/match/collect"
	"github.com/kube-relapse/relapse/internal/printing"
)

type collectFlags struct {
	dir, kubeconfig, context string
	dryRun                   bool
	budget                   collect.Budget
}

// newCollectCmd returns the command `relapse collect`.
func newCollectCmd() *cobra.Command {
	o := collectFlags{budget: collect.Default}
	cmd := &cobra.Command{
		Use:   "collect [SCENARIO...]",
		Short: "Collect evidence for relapse match from a live cluster, with GET requests only",
		Long: `Collect asks a live cluster for the evidence that the rules of relapse match need: the rules of the named
scenarios, or of all scenarios that have a match section. The evidence is versions, nodes, pods and warnings, the
goroutines and metrics of the kubelets and of the API server that answers, and the logs of the components' pods.

Collect makes only GET requests, with your own kubeconfig and rights, one after the other, within a budget. A dump
with the state of each goroutine stops a process for a moment. The more goroutines there are, the longer it stops. So
collect takes such a dump only of processes with at most --max-goroutines goroutines.

Collect writes a folder for relapse match, and a list of all requests. It leaves out secrets that it recognises by
their names or forms. With --dry-run it lists the requests and makes none.

For goroutines you need the right to get nodes/proxy and the URL /debug/pprof/*. If a request is refused, collect
says so and goes on without the answer.`,
		Example: "  relapse collect --dry-run\n  relapse collect pleg-deadlock --out evidence && relapse match evidence",
		RunE: func(cmd *cobra.Command, args []string) error {
			components, err := componentsOf(cmd, args)
			if err != nil {
				return err
			}
			if o.dryRun {
				return printPlanned(
					cmd.OutOrStdout(),
					collect.Plan(components, o.budget),
					o.budget,
				)
			}
			if o.dir == "" {
				o.dir = "relapse-evidence-" + time.Now().UTC().Format("20060102-150405")
			}
			rules := clientcmd.NewDefaultClientConfigLoadingRules()
			rules.ExplicitPath = o.kubeconfig
			config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
				&clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
			if err != nil {
				return usage(err, "pass --kubeconfig and --context, or set KUBECONFIG")
			}
			out := cmd.OutOrStdout()
			err = collect.Run(
				cmd.Context(),
				collect.Options{Config: config, Dir: o.dir, Components: components,
					Budget: o.budget, Log: func(r collect.Request) { printRequest(out, r) }},
			)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(
				out,
				"\nevidence: %s\nnext:     relapse match %s\n",
				o.dir,
				o.dir,
			)
			return err
		},
	}
	cmd.Flags().StringVar(&o.dir, "out", "",
		"the folder to write, which must be new or empty (default: relapse-evidence-TIME)")
	renamed(cmd.Flags(), "dir", "out")
	cmd.Flags().
		StringVar(&o.kubeconfig, "kubeconfig", "", "the path of the kubeconfig (default: as for kubectl)")
	cmd.Flags().
		StringVar(&o.context, "context", "", "the context of the kubeconfig (default: the current context)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the requests and make none")
	cmd.Flags().
		IntVar(&o.budget.Requests, "max-requests", o.budget.Requests, "the most requests in all")
	cmd.Flags().
		Int64Var(&o.budget.Bytes, "max-bytes", o.budget.Bytes, "the most bytes of answers in all")
	cmd.Flags().IntVar(&o.budget.Goroutines, "max-goroutines", o.budget.Goroutines,
		"take no dump with states of a process that has more goroutines than this")
	cmd.Flags().
		IntVar(&o.budget.Nodes, "max-nodes", o.budget.Nodes, "the most nodes whose kubelets are asked")
	return cmd
}

// componentsOf returns the subjects of the named scenarios, or of all scenarios that have a match section.
func componentsOf(cmd *cobra.Command, names []string) (out []string, err error) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		all, err := matchable(cmd, name, true)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if !slices.Contains(out, s.Spec.Subject) {
				out = append(out, s.Spec.Subject)
			}
		}
	}
	return out, nil
}

func printPlanned(out io.Writer, all []collect.Request, b collect.Budget) error {
	var t printing.Table
	for _, r := range all {
		t.Add("GET", r.Path, r.Why)
	}
	_, err := fmt.Fprintf(
		out,
		"%s\nat most %d requests and %d bytes; nothing was asked\n",
		t.Text(),
		b.Requests,
		b.Bytes,
	)
	return err
}

func printRequest(out io.Writer, r collect.Request) {
	if r.Error != "" {
		fmt.Fprintf(out, "%s: %s\n", r.Path, r.Error)
		return
	}
	fmt.Fprintf(out, "%s: %d bytes in %d ms\n", r.Path, r.Bytes, r.Millis)
}
