package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/transfer"
	"github.com/kube-relapse/relapse/harness/transfer/carry"
	"github.com/kube-relapse/relapse/harness/version"
	"github.com/kube-relapse/relapse/internal/docker"
)

func newCacheExportCmd() *cobra.Command {
	var f runFlags
	var to string
	cmd := &cobra.Command{
		Use:   "export NAME...",
		Short: "Write all that runs of scenarios need into one archive, for a host without a network",
		Long: `Export makes what is missing, as relapse build does, and writes an archive with all that relapse run needs for the
scenarios with these flags: programs, fixtures, the numbers read from sources, node images, and a SHA-256 of each file.
relapse cache import puts it into the cache of another host of the same platform. Runs there ask no network for
anything, and need no Go. See docs/offline.md.`,
		Example: `  relapse cache export pleg-deadlock -o builds.tar.zst
  relapse cache export scheduler-nil-pointer --pair modern --provider processes -o builds.tar.zst`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeScenarios,
		RunE:              func(cmd *cobra.Command, names []string) error { return runExport(cmd, f, names, to) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&to, "output", "o", "", "the archive to write, such as builds.tar.zst")
	fl.StringVar(
		&f.options.Pair,
		"pair",
		"",
		"the pair of arms, or all (default: each scenario's default pair)",
	)
	f.options.Repeat = 1
	f.registerProvider(cmd)
	f.registerNodeImage(cmd)
	f.programs.register(fl)
	f.disk.register(fl)
	f.progressFlags.register(fl)
	completeFlags(cmd)
	return cmd
}

func runExport(cmd *cobra.Command, f runFlags, names []string, to string) error {
	const hint = "relapse cache export NAME... -o builds.tar.zst"
	if len(names) == 0 {
		known, _ := completeScenarios(cmd, nil, "") // without a checkout there are none to list
		return usage(
			fmt.Errorf(
				"%s takes scenarios, and none is named %s",
				cmd.CommandPath(),
				oneOf("", known),
			),
			hint,
		)
	}
	if to == "" {
		return usage(errors.New("nothing says where the archive is to be written"), hint)
	}
	if info, err := os.Stat(to); err == nil && !info.Mode().IsRegular() {
		return usage(fmt.Errorf("%s is no file", to), hint)
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return usage(
			fmt.Errorf("the archive can't be written: there is no folder %s", filepath.Dir(to)),
			hint,
		)
	}
	root, err := moduleRoot(cmd)
	if err != nil {
		return err
	}
	var plans []*plan.Plan
	for _, name := range names { // all are refused before one is built
		p, err := f.plan(cmd, []string{name})
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	about := carry.Manifest{Relapse: version.Relapse()}
	var parts []*transfer.Parts
	defer func() {
		for _, p := range parts {
			_ = p.Close() // it only releases locks
		}
	}()
	for i, name := range names {
		one, p, err := f.gather(cmd, root, name, plans[i])
		if err != nil {
			return failed(asRefusal(err))
		}
		parts = append(parts, one)
		about.Runs = append(about.Runs, f.command(name, p))
	}
	return writeExport(cmd, to, about, parts)
}

// gather makes the parts of a scenario's runs on a provider that works here, and returns its plan for that, too.
func (f runFlags) gather(
	cmd *cobra.Command,
	root, name string,
	p *plan.Plan,
) (parts *transfer.Parts, used *plan.Plan, err error) {
	sink, done, err := f.sink(cmd.ErrOrStderr(), 1)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	events := event.NewStream(sink)
	err = f.onProviders(cmd, []string{name}, p, func(p *plan.Plan) error {
		provider, err := newProvider(p.Provider, events, false)
		if err != nil {
			return err
		}
		used = p
		parts, err = transfer.Gather(
			cmd.Context(),
			p,
			provider,
			f.artifactsOf(root, events),
		)
		return hostHint(cmd, p.Provider, err)
	})
	return parts, used, err
}

// command returns the command of a run that takes what was gathered. What this host's network decided it decides itself.
func (f runFlags) command(name string, p *plan.Plan) string {
	words := []string{"relapse run", name}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	provider := cmp.Or(p.Provider, providers.Kind)
	add("--pair", f.options.Pair)
	add("--provider", provider)
	if provider == providers.Kind && f.options.NodeImage != "auto" {
		add("--node-image", f.options.NodeImage)
	}
	if p.Programs != nil && p.MustBuild() == "" {
		switch {
		case p.Programs.From == plan.Built:
			words = append(words, "--build")
		case f.programs.release:
			words = append(words, "--release")
		}
	}
	if p.Programs != nil && p.Programs.From == plan.Published {
		add("--mirror", f.programs.from())
	}
	return strings.Join(words, " ")
}

// writeExport writes the archive, and says what to do with it.
func writeExport(
	cmd *cobra.Command,
	to string,
	about carry.Manifest,
	parts []*transfer.Parts,
) (err error) {
	dir := filepath.Dir(to)
	file, err := renameio.NewPendingFile(
		to,
		renameio.WithTempDir(dir),
		renameio.WithPermissions(0o644),
	)
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	defer func() { err = errors.Join(err, file.Cleanup()) }()
	about, err = transfer.Export(cmd.Context(), file, dir, about, parts)
	if err != nil {
		return fmt.Errorf("writing the archive %s: %w", to, err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	fmt.Fprintf(
		w,
		"%s: %s, %d files, %d images, for %s\n\nOn the other host:\n  relapse cache import %s\n",
		to,
		mib(info.Size()),
		len(about.Files),
		len(about.Images),
		about.Platform,
		filepath.Base(to),
	)
	for _, run := range about.Runs {
		fmt.Fprintln(w, " ", run)
	}
	return nil
}

func newCacheImportCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Put what relapse cache export wrote into the cache and the container engine",
		Long: `Import verifies the archive, every file of it, before anything is put into the cache. What is there already stays.
Node images are loaded into the container engine. It prints the runs that need nothing else.

The sums protect against accidents, not against forgery: take archives from those only whose programs you would run.`,
		Example: "  relapse cache import builds.tar.zst",
		Args:    exactly(1, "archive"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runImport(cmd, args[0]) },
	}
}

func runImport(cmd *cobra.Command, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return usage(err, "relapse cache export writes an archive")
	}
	defer file.Close()
	a, err := transfer.Import(cmd.Context(), file, "", func() (cluster.Carrier, error) {
		if _, err := docker.Detect(cmd.Context()); err != nil {
			return nil, err
		}
		return newKind(nil, false)
	})
	if bad := (*carry.Error)(nil); errors.As(err, &bad) {
		return usage(
			fmt.Errorf("importing %s: %w; nothing of it was imported", from, err),
			"sha256sum on both hosts tells whether it was copied whole; if it was, export it again",
		)
	}
	if err != nil {
		return fmt.Errorf("importing %s: %w", from, err)
	}
	return printArrived(cmd, a)
}

func printArrived(cmd *cobra.Command, a transfer.Arrived) error {
	w := cmd.OutOrStdout()
	fmt.Fprintf(
		w,
		"%d entries were added to the cache, %d were there; all were built by %s\n",
		a.Added,
		a.Kept,
		a.Toolchain.GOVERSION,
	)
	for _, i := range a.Images {
		if a.NoImages == nil {
			fmt.Fprintln(w, "the engine has the image", i.Ref)
		}
	}
	if a.NoImages != nil {
		note(
			cmd,
			"the images were not loaded, which runs on kind need: %v; then import the archive again",
			a.NoImages,
		)
	}
	if own := version.Relapse(); a.Relapse != own {
		note(
			cmd,
			"relapse %s exported it, and this is %s: a run may need what isn't in it",
			a.Relapse,
			own,
		)
	}
	fmt.Fprintln(w, "These runs need nothing else:")
	for _, run := range a.Runs {
		fmt.Fprintln(w, " ", run)
	}
	return nil
}
