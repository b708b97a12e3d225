package host

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// buildRuntime builds the bounded runtime, static, from the checkout into the folder dir, and returns its path.
func buildRuntime(ctx context.Context, checkout, dir string) (string, error) {
	path := filepath.Join(dir, "bounded-runtime")
	args := []string{
		"build",
		"-trimpath",
		"-buildvcs=false",
		"-o",
		path,
		"./fixtures/bounded-runtime",
	}
	store, err := cache.Open("")
	if err != nil {
		return "", err
	}
	done, err := store.Compiling(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = checkout, &stderr
	cmd.Env = append(
		os.Environ(),
		"CGO_ENABLED=0",
		"GOFLAGS=",
		"GOOS=linux",
		"GOCACHE="+store.GoDir(),
	)
	if err := cmd.Run(); err != nil {
		return "", goFailed(args, err, stderr.String())
	}
	return path, nil
}
