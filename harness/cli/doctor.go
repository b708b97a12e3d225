package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/internal/host"
	"github.com/kube-relapse/relapse/internal/printing"
)

type doctorFlags struct {
	fix, undo bool
	report    bool
	output    printing.Format
	wrapper   string
	root      func() (string, error) // the folder that has the sources of fixtures
	nodeImage string
	minor     int
	module    string
}

// newDoctorCmd returns the command `relapse doctor`. A failed check is exit 4.
func newDoctorCmd() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host and its container engine, and repair what is broken (--fix)",
		Long: `Doctor checks everything that a run needs on this host: the container engine, whether the engine can run
privileged nodes (doctor starts one), disk, memory, inotify limits, cgroups, the Go toolchain and its module proxy,
and everything needed to assemble a node image here. For each check doctor prints what it saw, what it wanted and how
to repair the host. Without --fix and --undo it changes nothing.

With --fix doctor repairs, as root, only what it found broken:
  - If packages are missing (on Debian), it shows the command that installs them, and runs the command.
  - If privileged containers fail because the host may not grant all capabilities, it installs a small container
    runtime in /usr/local/lib/relapse, and makes that runtime the default in the engine's settings. The other
    settings stay.
--undo takes back what --fix changed in the engine's settings. Packages stay.

--report prints what to send with an issue, as Markdown: versions, the system, which variables are set, how the last
run ended, and the checks. It has no secrets and no values of variables; read it before you send it.

The exit code is 0 if nothing failed (warnings don't count), else 4.`,
		Example: `  relapse doctor
  relapse doctor -o json | jq '.[] | select(.status != "ok")'
  relapse doctor --fix
  relapse doctor --report >report.md
  relapse doctor --undo`,
		Args: exactly(0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.undo && (f.fix || f.output != printing.Text) {
				return usage(errors.New("--undo goes with neither --fix nor -o json"),
					"relapse doctor --help lists the flags")
			}
			if f.report && (f.fix || f.undo || f.output != printing.Text) {
				return usage(errors.New("--report goes with none of --fix, --undo and -o json"),
					"relapse doctor --help lists the flags")
			}
			f.root = func() (string, error) { return moduleRoot(cmd) }
			return runDoctor(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.fix, "fix", false, "repair what is broken")
	flags.BoolVar(&f.report, "report", false, "print what to send with an issue, as Markdown")
	flags.BoolVar(&f.undo, "undo", false, "take back what --fix changed in the engine's settings")
	registerOutput(cmd, &f.output, printing.Text, printing.JSON)
	jsonFlag(flags)
	flags.StringVar(
		&f.wrapper,
		"wrapper",
		"",
		"the path of a bounded-runtime that is already built (default: build one)",
	)
	flags.StringVar(&f.nodeImage, "node-image", "auto",
		"the node image that a run would use: auto, official, assembled or a reference")
	flags.IntVar(
		&f.minor,
		"kubernetes-minor",
		0,
		"the minor version of Kubernetes that a run would use: 34 for v1.34 (default: any)",
	)
	flags.StringVar(&f.module, "module", "k8s.io/kubernetes@"+cluster.DefaultVersion,
		"a Go module that must be available; an empty value skips this check")
	return cmd
}

func runDoctor(ctx context.Context, f doctorFlags, out, progress io.Writer) error {
	if f.undo {
		return host.Undo(ctx, out)
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	checks := host.Preflight(ctx, opts)
	if f.fix {
		if err := mend(ctx, f, opts, checks, progress); err != nil {
			return err
		}
		checks = host.Preflight(ctx, opts)
	}
	if err := ctx.Err(); err != nil {
		return err // a check that was cut off is no finding
	}
	show := func() error { return printChecks(out, checks, f.output) }
	if f.report {
		show = func() error { return printReport(out, checks, filepath.Join("runs", "latest")) }
	}
	if err := show(); err != nil {
		return err
	}
	if failed := host.Failed(checks); len(failed) > 0 {
		var names []string
		for _, c := range failed {
			names = append(names, c.Name)
		}
		err := fmt.Errorf(
			"%d of %d checks failed: %s",
			len(failed),
			len(checks),
			strings.Join(names, ", "),
		)
		if f.fix {
			return hinted(err, "mend the rest by hand, as shown above")
		}
		return hinted(err, "relapse doctor --fix mends what it can, and says what it changes")
	}
	return nil
}

// options returns what to check on the host, with the cache that runs will use.
func (f doctorFlags) options() (host.Options, error) {
	dir, err := cache.DefaultDir()
	return host.Options{
		NodeImage:       f.nodeImage,
		KubernetesMinor: f.minor,
		Module:          f.module,
		CacheDir:        dir,
	}, err
}

// mend installs what is missing, and registers the bounded runtime if privileged containers fail.
func mend(
	ctx context.Context,
	f doctorFlags,
	opts host.Options,
	checks []host.Check,
	w io.Writer,
) error {
	if plan := host.InstallPlan(checks); len(plan) > 0 {
		fmt.Fprintf(w, "To install what is missing, as root:\n  %s\n", strings.Join(plan, "\n  "))
		if _, err := host.Install(ctx, w, plan); err != nil {
			return err
		}
		checks = host.Preflight(ctx, opts) // there may be an engine only now
	}
	if !host.Fixable(checks) {
		return nil
	}
	if f.wrapper != "" {
		return host.Fix(ctx, w, f.wrapper, "")
	}
	root, err := f.root()
	if err != nil {
		return hinted(err, "name a built runtime with --wrapper")
	}
	return host.Fix(ctx, w, "", root)
}

func printChecks(w io.Writer, checks []host.Check, output printing.Format) error {
	if output == printing.JSON {
		return printing.WriteJSON(w, checks)
	}
	t := printing.Table{Header: []string{"check", "status", "seen", "wanted", "remedy"}}
	for _, c := range checks {
		t.Add(c.Name, c.Status, c.Seen, c.Wanted, c.Remedy)
	}
	_, err := io.WriteString(w, t.Fit(width(w)))
	return err
}
