package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/internal/embedded"
)

const modulePath = "github.com/kube-relapse/relapse"

// moduleRoot returns the folder that has relapse's own scenarios and the sources of fixtures: a checkout, or else a
// folder to which the program unpacks those that it carries.
func moduleRoot(cmd *cobra.Command) (string, error) {
	root, err := checkout(cmd)
	if root != "" || err != nil {
		return root, err
	}
	return unpack()
}

// checkout returns the folder of a checkout of relapse: --root, $RELAPSE_ROOT, or the nearest folder upwards whose
// go.mod is relapse's. It returns "" if there is none.
func checkout(cmd *cobra.Command) (string, error) {
	if root, err := cmd.Flags().GetString("root"); err == nil && root != "" {
		return root, nil
	}
	if root := os.Getenv("RELAPSE_ROOT"); root != "" {
		return root, nil
	}
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for a checkout of relapse: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(text) == modulePath {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", nil
		}
	}
}

// needCheckout returns the folder of a checkout, for a command that writes into it.
func needCheckout(cmd *cobra.Command, what string) (string, error) {
	root, err := checkout(cmd)
	if err == nil && root == "" {
		err = usage(
			fmt.Errorf("%s is written into a checkout of %s, and this is none", what, modulePath),
			"pass --root or set RELAPSE_ROOT",
		)
	}
	return root, err
}

// unpack returns a folder with what the program carries, in the cache, or where that can't be written to in the folder
// of temporary files. A command asks for it several times, and it is compared with the program once.
var unpack = sync.OnceValues(unpackCarried)

func unpackCarried() (string, error) {
	dirs := []string{filepath.Join(os.TempDir(), "relapse-"+strconv.Itoa(os.Getuid()))}
	if dir, err := cache.DefaultDir(); err == nil {
		dirs = append([]string{filepath.Join(dir, "carried")}, dirs...)
	}
	root, err := embedded.Unpack(dirs...)
	var changed *embedded.ChangedError
	if errors.As(err, &changed) {
		return "", usage(
			err,
			fmt.Sprintf(
				"to keep the change, copy its scenario's folder to a place of your own and name it by "+
					"its path; then rm -r %s",
				changed.Root,
			),
		)
	}
	return root, err
}

// isCarried reports whether a scenario's file is one that the program unpacked.
func isCarried(file string) bool {
	root, err := unpack()
	if err != nil {
		return false
	}
	abs, err := filepath.Abs(file)
	return err == nil && strings.HasPrefix(abs, root+string(filepath.Separator))
}
