package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Status is how a check came out.
type Status string

// A run can go on with Warn, though something asked for later may not work.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
)

// Check is one thing that a run needs of the host: what was seen, what was
// wanted, and, unless it is OK, the command or change that mends it.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Seen   string `json:"seen"`
	Wanted string `json:"wanted"`
	Remedy string `json:"remedy,omitempty"`
}

// Names of checks that callers act on.
const (
	CheckEngine     = "engine"
	CheckPrivileged = "privileged nodes"
)

// Options say what a run will need. The zero value stands for a cluster of any
// version whose node image is pulled or assembled, whichever works.
type Options struct {
	Run             string // value of RunLabel for the probe; empty: made up
	CacheDir        string // the cache directory, which may not exist yet; empty: not checked
	KubernetesMinor int    // 34 for v1.34; 0: not known yet
	NodeImage       string // "auto" (also when empty), "official", "assembled" or a reference
	Module          string // a module@version that builds start from; empty: not asked for
	Host            string // root folder of /proc and /etc; empty: "/"
}

// Preflight checks everything that a run depends on in the host and the engine, and returns at least one Check. It
// makes nothing but the image and the container of the probe, and removes both, even if ctx ends.
func Preflight(ctx context.Context, o Options) []Check {
	h := host(cmp.Or(o.Host, "/"))
	checks, info := engineChecks(ctx, o, h)
	checks = append(checks, h.memory(), h.inotify())
	if info != nil {
		checks = append(checks, cgroups(info.CgroupVersion, o.KubernetesMinor), h.engineDisk(info.RootDir))
	}
	if o.CacheDir != "" {
		checks = append(checks, h.cacheDisk(o.CacheDir))
	}
	checks = append(checks, toolchain(ctx, o.Module)...)
	return append(checks, h.assembly(o.NodeImage)...)
}

// engineChecks checks the engine, and returns no Info if there is no engine to ask.
func engineChecks(ctx context.Context, o Options, h host) ([]Check, *Info) {
	reach := Check{Name: CheckEngine, Wanted: "a docker daemon that answers"}
	e, err := Detect(ctx)
	var info Info
	if err == nil {
		info, err = e.ServerInfo(ctx)
	}
	if err != nil {
		reach.Status, reach.Seen, reach.Remedy = Fail, err.Error(), "systemctl start docker"
		if errors.Is(err, ErrNoCLI) {
			reach.Seen, reach.Remedy = ErrNoCLI.Error(), "install Docker, then start it"
			if h.debian() {
				reach.Remedy = aptInstall + "docker.io"
			}
		}
		return []Check{reach}, nil
	}
	reach.Status = OK
	reach.Seen = fmt.Sprintf("%s %s on %s, storage %s, runtime %s", e.Name, info.Version, info.OS, info.StorageDriver,
		info.DefaultRuntime)
	return []Check{reach, privileged(ctx, e, o.Run)}, &info
}

func privileged(ctx context.Context, e *Engine, run string) Check {
	c := Check{Name: CheckPrivileged, Status: OK, Wanted: "a privileged container that runs"}
	p, err := e.ProbePrivileged(ctx, run)
	switch {
	case errors.Is(err, ErrBounded):
		c.Status, c.Seen, c.Remedy = Fail, err.Error(), "relapse doctor --fix"
	case err != nil:
		c.Status, c.Seen, c.Remedy = Fail, err.Error(), "docker info"
	default:
		c.Seen = fmt.Sprintf("one ran in %s", p.Took.Round(10*time.Millisecond))
		if p.LacksSysResource() {
			c.Seen += ", without CAP_SYS_RESOURCE"
		}
	}
	return c
}

// Failed returns the checks that failed.
func Failed(checks []Check) (failed []Check) {
	for _, c := range checks {
		if c.Status == Fail {
			failed = append(failed, c)
		}
	}
	return failed
}
