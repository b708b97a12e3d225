package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

const modulePath = "github.com/kube-relapse/relapse"

// ModuleRoot returns the folder of this module's go.mod, in dir or above it.
func ModuleRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the module: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		switch {
		case err == nil && modfile.ModulePath(data) == modulePath:
			return at, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("looking for the module: %w", err)
		case at == filepath.Dir(at):
			return "", fmt.Errorf("not inside a checkout of %s: %s", modulePath, dir)
		}
	}
}

// buildRuntime builds the bounded runtime, static, from the checkout into the folder dir, and returns its path.
func buildRuntime(ctx context.Context, checkout, dir string) (string, error) {
	path := filepath.Join(dir, "bounded-runtime")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", path, "./fixtures/bounded-runtime"}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = checkout, &stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux")
	if err := cmd.Run(); err != nil {
		return "", goFailed(args, err, stderr.String())
	}
	return path, nil
}
