package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host/engine"
)

// Fixable reports whether a check failed that Fix can mend.
func Fixable(checks []Check) bool {
	return slices.ContainsFunc(
		Failed(checks),
		func(c Check) bool { return c.Name == checkPrivileged },
	)
}

// Fix has the engine run privileged containers, if they fail for want of capabilities or limits: it makes the bounded
// runtime the engine's default. It writes to w what it does and how to undo it. runtime is the path of a bounded
// runtime; if it is empty, Fix builds one from the checkout. Only root can fix; for others Fix writes to w the command
// to run as root, and returns an error.
func Fix(ctx context.Context, w io.Writer, runtime, checkout string) error {
	client, err := docker.Detect(ctx)
	if err != nil {
		return err
	}
	if runtime == "" {
		dir, err := os.MkdirTemp("", "relapse-doctor-")
		if err != nil {
			return fmt.Errorf("building the bounded runtime: %w", err)
		}
		defer os.RemoveAll(dir)
		if runtime, err = buildRuntime(ctx, checkout, dir); err != nil {
			return err
		}
	}
	return engine.Fix(ctx, client, w, runtime)
}

// Undo takes back what Fix changed, and writes to w what it does. If there is nothing to undo, it says so. It needs
// root, too, and returns an error as long as a container uses the bounded runtime.
func Undo(ctx context.Context, w io.Writer) error {
	client, err := docker.Detect(ctx)
	if err != nil {
		return err
	}
	return engine.Undo(ctx, client, w)
}

// Bounded reports whether privileged containers, and so nodes, lack CAP_SYS_RESOURCE. Programs in them must then do
// without raised limits and negative OOM scores. Bounded runs a container, so its answer holds for the runtime that is
// the default. An error means that there can be no nodes at all.
func Bounded(ctx context.Context, client *docker.Client) (bool, error) {
	p, err := engine.ProbePrivileged(ctx, client)
	if err != nil {
		return false, err
	}
	return p.LacksSysResource(), nil
}
