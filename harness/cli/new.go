package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/scenario/start"
)

func newNewCmd() *cobra.Command {
	var of start.Scenario
	cmd := &cobra.Command{
		Use:   "new NAME --subject COMPONENT --vulnerable VERSION --fixed VERSION",
		Short: "Write the start of a scenario, with a candidate and a README to fill in",
		Long: `New writes the folder scenarios/NAME, or outside a checkout of relapse the folder NAME, with a scenario that is valid,
a candidate and a README.
Comments in them say what belongs where. Until that is filled in, a run is Inconclusive.`,
		Example: "  relapse new stuck-queue --subject kube-controller-manager --vulnerable v1.36.1 --fixed v1.36.2",
		Args:    exactly(1, "name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			of.Name = args[0]
			files, err := of.Files()
			if err != nil {
				return usage(err, "relapse new --help")
			}
			root, err := checkout(cmd)
			if err != nil {
				return err
			}
			dir := of.Name
			if root != "" {
				dir = filepath.Join(root, "scenarios", of.Name)
			}
			if err := writeNew(dir, files); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintln(cmd.OutOrStdout(), relative([]string{filepath.Join(dir, name)})[0])
			}
			path := relative([]string{filepath.Join(dir, scenario.FileName)})[0]
			v := validation{path: path}
			if v.run(cmd, false); len(v.mistakes) > 0 {
				return fmt.Errorf(
					"what was written is not valid: %s",
					strings.Join(v.mistakes, "; "),
				)
			}
			fmt.Fprintf(
				cmd.OutOrStdout(),
				"next: fill in what says FILL IN, then relapse validate %s\n",
				path,
			)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&of.Subject, "subject", "", "the component under test: kubelet")
	fl.StringVar(&of.Vulnerable, "vulnerable", "", "a version with the bug: v1.36.1")
	fl.StringVar(&of.Fixed, "fixed", "", "a version with the fix: v1.36.2")
	return cmd
}

// writeNew writes files into the folder dir, which must not be there yet.
func writeNew(dir string, files map[string][]byte) error {
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return usage(fmt.Errorf("%s is there already", dir), "relapse new with another name")
	} else if err != nil {
		return fmt.Errorf("making the folder of the scenario: %w", err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}
