package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/scenario"
)

const modulePath = "github.com/kube-relapse/relapse"

// moduleRoot returns the folder that has scenarios/: --root, $RELAPSE_ROOT, or the nearest folder upwards whose go.mod
// is relapse's.
func moduleRoot(cmd *cobra.Command) (string, error) {
	if root, err := cmd.Flags().GetString("root"); err == nil && root != "" {
		return root, nil
	}
	if root := os.Getenv("RELAPSE_ROOT"); root != "" {
		return root, nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module's folder: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(text) == modulePath {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", usage(fmt.Errorf("%s is not inside a checkout of %s", start, modulePath),
				"pass --root or set RELAPSE_ROOT")
		}
	}
}

// scenarioFiles returns the paths scenarios/*/scenario.yaml. Finding none is an error, because an empty list would look
// like success.
func scenarioFiles(cmd *cobra.Command) ([]string, error) {
	root, err := moduleRoot(cmd)
	if err != nil {
		return nil, err
	}
	pattern := filepath.Join(root, "scenarios", "*", scenario.FileName)
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, usage(fmt.Errorf("no scenario matches %s", pattern), "pass --root or set RELAPSE_ROOT")
	}
	return relative(files), nil
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

// loadScenario loads a scenario by its name or by the path of its file or folder.
func loadScenario(cmd *cobra.Command, name string) (*scenario.Scenario, error) {
	path := name
	if !strings.ContainsRune(name, os.PathSeparator) && !strings.HasSuffix(name, ".yaml") {
		files, err := scenarioFiles(cmd)
		if err != nil {
			return nil, err
		}
		var known []string
		path = ""
		for _, f := range files {
			if folder := filepath.Base(filepath.Dir(f)); folder == name {
				path = f
			} else {
				known = append(known, folder)
			}
		}
		if path == "" {
			return nil, usage(fmt.Errorf("there is no scenario %q (want one of %s)", name, strings.Join(known, ", ")),
				"relapse list")
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
		return usage(fmt.Errorf("the scenario is not valid\n%w", err), "relapse explain KIND shows a kind's fields")
	case errors.Is(err, fs.ErrNotExist):
		return usage(err, "relapse list")
	}
	return err
}
