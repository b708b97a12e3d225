package host

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

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
