package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// scenarioFiles returns the paths of all scenarios: relapse's own, then those of the folders that --scenarios names.
// Finding none in a folder is an error, because an empty list would look like success.
func scenarioFiles(cmd *cobra.Command) ([]string, error) {
	root, err := moduleRoot(cmd)
	if err != nil {
		return nil, err
	}
	files, err := scenariosIn(filepath.Join(root, "scenarios"), "pass --root or set RELAPSE_ROOT")
	if err != nil {
		return nil, err
	}
	for _, dir := range ownFolders(cmd) {
		own, err := scenariosIn(
			dir,
			"--scenarios takes a folder that has NAME/"+scenario.FileName,
		)
		if err != nil {
			return nil, err
		}
		for _, f := range own {
			same := func(other string) bool { return scenarioName(other) == scenarioName(f) }
			if i := slices.IndexFunc(files, same); i >= 0 {
				return nil, usage(
					fmt.Errorf(
						"two scenarios are called %s: %s and %s",
						scenarioName(f),
						files[i],
						f,
					),
					"give the folder of yours, and its metadata.name, another name",
				)
			}
			files = append(files, f)
		}
	}
	return relative(files), nil
}

// ownFolders returns the folders of --scenarios, or else of $RELAPSE_SCENARIOS.
func ownFolders(cmd *cobra.Command) []string {
	if dirs, err := cmd.Flags().GetStringArray("scenarios"); err == nil && len(dirs) > 0 {
		return dirs
	}
	return filepath.SplitList(os.Getenv("RELAPSE_SCENARIOS"))
}

// scenariosIn returns the paths dir/*/scenario.yaml, or dir/scenario.yaml if that is there.
func scenariosIn(dir, hint string) ([]string, error) {
	if one := filepath.Join(dir, scenario.FileName); isFile(one) {
		return []string{one}, nil
	}
	pattern := filepath.Join(dir, "*", scenario.FileName)
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, usage(fmt.Errorf("no scenario matches %s", pattern), hint)
	}
	return files, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// scenarioName returns the name of the scenario in a file, which is that of the file's folder.
func scenarioName(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return filepath.Base(filepath.Dir(file))
}

// relative shortens paths below the working directory to relative ones, as messages and plans show them.
func relative(files []string) []string {
	wd, err := os.Getwd()
	for i, f := range files {
		if err != nil || !filepath.IsAbs(f) {
			continue
		}
		if rel, err := filepath.Rel(wd, f); err == nil && filepath.IsLocal(rel) {
			files[i] = rel
		}
	}
	return files
}

// isPath reports whether a word is the path of a scenario's file or folder, and not a scenario's name.
func isPath(word string) bool {
	return word == "." || word == ".." || strings.ContainsRune(word, os.PathSeparator) ||
		strings.HasSuffix(word, ".yaml")
}

// loadScenario loads a scenario by its name or by the path of its file or folder.
func loadScenario(cmd *cobra.Command, name string) (*scenario.Scenario, error) {
	path := name
	if !isPath(name) {
		files, err := scenarioFiles(cmd)
		if err != nil {
			return nil, err
		}
		var known []string
		path = ""
		for _, f := range files {
			if folder := scenarioName(f); folder == name {
				path = f
			} else {
				known = append(known, folder)
			}
		}
		if path == "" {
			return nil, usage(
				fmt.Errorf("there is no scenario %q %s", name, oneOf(name, known)),
				"relapse list",
			)
		}
	} else if info, err := os.Stat(name); err == nil && info.IsDir() {
		path = filepath.Join(name, scenario.FileName)
	}
	s, err := scenario.Load(path)
	return s, asInput(err)
}

// asInput turns a mistake in a scenario, or a missing file, into a usage error.
func asInput(err error) error {
	var vs scenario.Violations
	switch {
	case errors.As(err, &vs):
		return usage(
			fmt.Errorf("the scenario is not valid\n%w", err),
			"relapse explain KIND shows a kind's fields",
		)
	case errors.Is(err, fs.ErrNotExist):
		return usage(err, "relapse list")
	}
	return err
}

// others returns the names of the other scenarios that test the same component.
func others(cmd *cobra.Command, subject, name string) []string {
	return scenariosWith(cmd, func(s *scenario.Scenario) bool { return s.Spec.Subject == subject && s.Metadata.Name != name })
}

// scenariosWith returns the names of the valid scenarios that keep is true of.
func scenariosWith(cmd *cobra.Command, keep func(*scenario.Scenario) bool) (out []string) {
	files, err := scenarioFiles(cmd)
	if err != nil {
		return nil // whoever needs them says why
	}
	for _, f := range files {
		if s, err := scenario.Load(f); err == nil && keep(s) {
			out = append(out, s.Metadata.Name)
		}
	}
	return out
}
