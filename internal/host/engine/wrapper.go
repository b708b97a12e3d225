package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const modulePath = "github.com/kube-relapse/relapse"

// ErrNoModule says that neither the given folder nor any above it holds this module.
var ErrNoModule = errors.New("not inside a checkout of " + modulePath)

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
			return "", fmt.Errorf("%w: %s", ErrNoModule, dir)
		}
	}
}

// BuildWrapper builds the bounded runtime, static, from the module at root
// into the folder dir, and returns its path.
func BuildWrapper(ctx context.Context, root, dir string) (string, error) {
	path := filepath.Join(dir, "bounded-runtime")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", path, "./fixtures/bounded-runtime"}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, &stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux")
	if err := cmd.Run(); err != nil {
		return "", &CommandError{Args: append([]string{"go"}, args...),
			Stderr: redact(strings.TrimSpace(stderr.String())),
			Err:    err}
	}
	return path, nil
}
