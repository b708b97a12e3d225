package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/host"
	"github.com/kube-relapse/relapse/internal/printing"
)

// planFlags are the flags that shape a plan.
type planFlags struct {
	options  plan.Options
	seeded   bool   // options.Seed is to be taken as it is, though --seed wasn't given
	provider string // a name, or autoProvider
	set      []string
	swap     []string
	until    untilFlags
}

// autoProvider stands for the first of the scenario's providers that works on this host.
const autoProvider = "auto"

// register adds the flags to cmd.
func (f *planFlags) register(cmd *cobra.Command) {
	o := &f.options
	fl := cmd.Flags()
	fl.StringVar(
		&o.Pair,
		"pair",
		"",
		"the pair of arms to run, or all (default: the scenario's default pair)",
	)
	fl.IntVar(&o.Repeat, "repeat", 1, "trials of each pair; several pairs take turns")
	f.until.register(cmd)
	registerSeed(cmd, &o.Seed)
	fl.BoolVar(
		&o.Sequential,
		"sequential",
		false,
		"run one arm after the other; not for placement workload, whose arms share their nodes",
	)
	fl.BoolVar(&o.NoFaults, "no-faults", false, "the null control: run everything but the faults")
	fl.StringSliceVar(&o.Without, "without", nil, "names of faults to leave out")
	fl.StringSliceVar(&o.Arms, "arms", nil, "run only these arms")
	f.registerProvider(cmd)
	f.registerNodeImage(cmd)
	fl.StringArrayVar(&f.set, "set", nil, "change a declared parameter (relapse explain NAME lists them), "+
		"or any field by its path: faults.flood.spec.pods=500")
	fl.StringArrayVar(&f.swap, "swap", nil, "give an arm the build of another arm: ARM=OTHER (a test of relapse itself)")
}

func (f *planFlags) registerNodeImage(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.options.NodeImage, "node-image", "auto",
		"the node image: auto (official if there is one, else assembled), official, assembled or a reference")
}

// resolve returns the plan of a scenario.
func (f *planFlags) resolve(cmd *cobra.Command, name string) (*plan.Plan, error) {
	o := f.options
	var err error
	if o.Params, err = assignments("--set", f.set, name); err != nil {
		return nil, err
	}
	if o.Swap, err = assignments("--swap", f.swap, name); err != nil {
		return nil, err
	}
	if o.Repeat < 1 {
		return nil, usage(
			fmt.Errorf("--repeat is %d (want at least 1)", o.Repeat),
			cmd.CommandPath()+" --help lists the flags",
		)
	}
	if o.Until, err = f.until.resolve(cmd); err != nil {
		return nil, err
	}
	if !f.seeded {
		if err := drawSeed(cmd, &o.Seed); err != nil {
			return nil, err
		}
	}
	s, err := loadScenario(cmd, name)
	if err != nil {
		return nil, err
	}
	if f.provider != autoProvider {
		o.Provider = f.provider
	}
	if o.Base, err = kindConfig(cmd); err != nil {
		return nil, err
	}
	if err := fitProvider(cmd, s, o); err != nil {
		return nil, err
	}
	o.FreeMemory = host.FreeMemory()
	p, err := plan.New(s, o)
	if err != nil {
		return nil, usage(err, planHint(s, o))
	}
	p.Others = others(cmd, s.Spec.Subject, s.Metadata.Name)
	return p, nil
}

// besideDefaults returns a flag that was given beside --defaults and would say nothing there, "" for none.
func besideDefaults(cmd *cobra.Command) (name string) {
	persistent := cmd.InheritedFlags()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "defaults" && persistent.Lookup(f.Name) == nil {
			name = f.Name
		}
	})
	return name
}

// planHint returns the next command after a scenario couldn't be planned. What fails with all of the scenario's own
// choices too is its file's mistake; otherwise a flag's value doesn't fit the scenario.
func planHint(s *scenario.Scenario, o plan.Options) string {
	if _, err := plan.New(s, plan.Options{Pair: plan.AllPairs, Base: o.Base}); err != nil {
		return "relapse validate " + s.Origin.File
	}
	return "relapse explain " + s.Metadata.Name + " shows its pairs, arms, faults and parameters"
}

// assignments reads the values of a flag that sets something of the scenario called name.
func assignments(flag string, in []string, scenario string) (map[string]string, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, a := range in {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return nil, usage(
				fmt.Errorf("%s %q has no name and value (want NAME=VALUE)", flag, a),
				"relapse explain "+scenario+" shows what can be set",
			)
		}
		if before, twice := out[name]; twice {
			return nil, usage(fmt.Errorf("%s %s: %s was set to %q before it (want one value)", flag, a, name, before),
				"leave out one of them")
		}
		out[name] = value
	}
	return out, nil
}

// kindConfig returns the default kind config at the module's root, or nil if there is none, or no module.
func kindConfig(cmd *cobra.Command) ([]byte, error) {
	root, err := moduleRoot(cmd)
	if err != nil {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(root, "kind-config.yaml"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	return b, err
}

func newPlanCmd() *cobra.Command {
	var flags runFlags
	var output printing.Format
	var defaults bool
	cmd := &cobra.Command{
		Use:   "plan NAME|FILE",
		Short: "Show what a run would do, without a cluster",
		Long: `Plan shows what relapse run with the same flags would do. It takes all flags of run, and refuses what run would
refuse before it builds anything. On stderr it says what is not in the cache, and how long building it and a trial took
this host earlier.`,
		Example: `  relapse plan pleg-deadlock
  relapse plan pleg-deadlock --defaults
  relapse plan pleg-deadlock --candidate src:../kubernetes
  relapse plan pleg-deadlock -o json > plan.json && relapse run -f plan.json`,
		Args:              flags.args,
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			if defaults && flags.file != "" {
				return usage(
					errors.New("--defaults shows a scenario's file, and -f is a plan"),
					"relapse plan NAME --defaults",
				)
			}
			if other := besideDefaults(cmd); defaults && other != "" {
				return usage(fmt.Errorf("--defaults shows a scenario's file as it is, and --%s is about a plan", other),
					"leave out one of them")
			}
			if defaults {
				s, err := loadScenario(cmd, args[0])
				if err != nil {
					return err
				}
				return plan.Defaults(cmd.OutOrStdout(), s)
			}
			p, err := flags.plan(cmd, args)
			if err != nil {
				return err
			}
			if err := flags.fits(p); err != nil {
				return err
			}
			if err := writePlan(cmd.OutOrStdout(), p, output); err != nil || output != printing.Text {
				return err
			}
			root, err := moduleRoot(cmd)
			if err == nil {
				err = flags.forecast(cmd.Context(), cmd.ErrOrStderr(), root, p)
			}
			if err != nil { // the plan stands without it
				fmt.Fprintln(cmd.ErrOrStderr(), "how long a run takes is unknown:", err)
			}
			return nil
		},
	}
	flags.register(cmd)
	registerOutput(cmd, &output, printing.Text, printing.JSON, printing.YAML)
	cmd.Flags().
		BoolVar(&defaults, "defaults", false, "show the scenario with all defaults filled in, each marked")
	return cmd
}

func writePlan(w io.Writer, p *plan.Plan, output printing.Format) error {
	if output == printing.Text {
		return p.Text(w)
	}
	b, err := plan.Encode(p)
	if err != nil {
		return err
	}
	if output == printing.YAML {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return fmt.Errorf("converting the plan to YAML: %w", err)
		}
	}
	_, err = w.Write(b)
	return err
}

func completeScenarios(
	cmd *cobra.Command,
	_ []string,
	_ string,
) ([]string, cobra.ShellCompDirective) {
	files, err := scenarioFiles(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, f := range files {
		out = append(out, scenarioName(f))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
