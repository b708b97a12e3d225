// Package engine finds out whether a container engine can run privileged nodes, and has it run them by another runtime
// where the host's bounded capabilities prevent that.
package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/internal/docker"
)

// RunLabel is the label on what a probe makes in the engine. Its value is the name of the probe.
const RunLabel = "dev.relapse.run"

// capSysResource is the bit of CAP_SYS_RESOURCE, from linux/capability.h.
const capSysResource = 24

// stepTime bounds the steps of a probe: the end of ctx doesn't cut all of them off.
const stepTime = time.Minute

// Probe is what a privileged container saw of its own process.
type Probe struct {
	Bounding uint64        // its capability bounding set, one bit each
	Took     time.Duration // from making the image to the container's exit
}

// LacksSysResource reports whether even a privileged container lacks CAP_SYS_RESOURCE.
func (p Probe) LacksSysResource() bool { return p.Bounding&(1<<capSysResource) == 0 }

// ErrBounded says that the runtime couldn't give a privileged container what
// was asked for, because the host's own capabilities or limits are bounded.
// Fix mends it.
var ErrBounded = errors.New("the host's capabilities are bounded")

// ProbePrivileged runs a privileged container and returns what it saw. The image is made on the spot, without a
// registry. Both are removed, even if ctx ends. An error wraps ErrBounded if the runtime refused capabilities or
// limits.
func ProbePrivileged(ctx context.Context, d *docker.Client) (_ Probe, err error) {
	began := time.Now()
	info, err := d.ServerInfo(ctx)
	if err != nil {
		return Probe{}, err
	}
	program, err := probeProgram(info.Architecture)
	if err != nil {
		return Probe{}, err
	}
	image, err := probeTar(program)
	if err != nil {
		return Probe{}, fmt.Errorf("making the probe's image: %w", err)
	}
	name, err := probeName()
	if err != nil {
		return Probe{}, err
	}
	defer func() { err = errors.Join(err, removeProbe(ctx, d, name)) }()
	status, err := runProbe(ctx, d, name, image)
	if err != nil {
		return Probe{}, classify(err)
	}
	bounding, err := parseBounding(status)
	return Probe{Bounding: bounding, Took: time.Since(began)}, err
}

func probeName() (string, error) {
	var id [6]byte
	if _, err := rand.Read(id[:]); err != nil {
		return "", fmt.Errorf("naming the probe: %w", err)
	}
	return "relapse-probe-" + hex.EncodeToString(id[:]), nil
}

// runProbe imports the image, creates the container, starts it and returns its output. The end of ctx doesn't cancel
// the first two steps: if the client were killed during a request, the daemon would finish it after removeProbe.
func runProbe(ctx context.Context, d *docker.Client, name string, image []byte) ([]byte, error) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTime)
	defer cancel()
	label := RunLabel + "=" + name
	err := d.Stream(whole, bytes.NewReader(image), nil, "import", "--change", "LABEL "+label, "-", name)
	if err != nil {
		return nil, err
	}
	_, err = d.Output(whole, "create", "--name", name, "--label", label,
		"--privileged", "--network", "none", name, "/probe")
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	start, stop := context.WithTimeout(ctx, stepTime)
	defer stop()
	return d.Output(start, "start", "--attach", name)
}

// removeProbe removes the container and the image. It is no error if either is missing.
func removeProbe(ctx context.Context, d *docker.Client, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTime)
	defer cancel()
	var errs []error
	for _, args := range [][]string{{"rm", "--force", "--volumes", name}, {"rmi", "--force", name}} {
		_, err := d.Output(ctx, args...)
		if err != nil && !strings.Contains(err.Error(), "No such") {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// classify wraps err in ErrBounded if the bounded runtime mends it. It looks for the words of runc and crun for
// failures of capset(2) and setrlimit(2).
func classify(err error) error {
	var failed *docker.CommandError
	if !errors.As(err, &failed) {
		return err
	}
	for _, words := range []string{"unable to apply caps", "unable to apply bounding set", "setting rlimits",
		"setrlimit",
		"capset"} {
		if strings.Contains(failed.Stderr, words) {
			return fmt.Errorf("%w: %w", ErrBounded, err)
		}
	}
	return err
}

// parseBounding returns the set that a /proc/PID/status has under CapBnd, in hexadecimal.
func parseBounding(status []byte) (uint64, error) {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				return 0, fmt.Errorf("parsing CapBnd of the probe's container: %w", err)
			}
			return set, nil
		}
	}
	return 0, fmt.Errorf(
		"the probe's container ran and didn't print its CapBnd; it printed %q",
		status,
	)
}
