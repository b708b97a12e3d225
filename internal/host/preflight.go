// Package host checks what kind's clusters need of a host, and brings a host there that lacks it. It installs packages,
// has the container engine run privileged nodes where the host's capabilities are bounded, and assembles node images
// where no registry is behind the engine. On a host with a registry and a healthy engine, the checks pass, node images
// are pulled, and nothing else is done.
//
// The packages below it are its parts, which no other package imports.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/internal/docker"
	"github.com/kube-relapse/relapse/internal/host/engine"
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

// checkPrivileged is the name of the check that Fix can mend.
const checkPrivileged = "privileged nodes"

// Options say what a run will need. The zero value stands for a cluster of any
// version whose node image is pulled or assembled, whichever works.
type Options struct {
	CacheDir        string // the cache directory, which may not exist yet; empty: not checked
	KubernetesMinor int    // 34 for v1.34; 0: not known yet
	NodeImage       string // "auto" (also when empty), "official", "assembled" or a reference
	Module          string // a module@version that builds start from; empty: not asked for
	HasImages       bool   // no node image has to be pulled or assembled
	Host            string // root folder of /proc and /etc; empty: "/"
}

// Preflight checks everything that a run depends on in the host and the engine, and returns at least one Check. It
// makes nothing but the image and the container of the probe, and removes both, even if ctx ends.
func Preflight(ctx context.Context, o Options) []Check {
	m := machine(cmp.Or(o.Host, "/"))
	checks, info := engineChecks(ctx, m)
	checks = append(checks, m.memory(), m.inotify())
	if info != nil {
		checks = append(
			checks,
			cgroups(info.CgroupVersion, o.KubernetesMinor),
			m.engineDisk(info.RootDir),
		)
	}
	if o.CacheDir != "" {
		checks = append(checks, m.cacheDisk(o.CacheDir))
	}
	checks = append(checks, toolchain(ctx, o)...)
	if o.HasImages {
		return checks
	}
	return append(checks, m.assembly(o.NodeImage)...)
}

// engineChecks checks the engine, and returns no Info if there is no engine to ask.
func engineChecks(ctx context.Context, m machine) ([]Check, *docker.Info) {
	reach := Check{Name: "engine", Wanted: "a docker daemon that answers"}
	client, err := docker.Detect(ctx)
	var info docker.Info
	if err == nil {
		info, err = client.ServerInfo(ctx)
	}
	if err != nil {
		reach.Status, reach.Seen, reach.Remedy = Fail, err.Error(), "systemctl start docker"
		if errors.Is(err, docker.ErrNoCLI) {
			reach.Seen, reach.Remedy = docker.ErrNoCLI.Error(), "install Docker, then start it"
			if m.debian() {
				reach.Remedy = aptInstall + "docker.io"
			}
		}
		return []Check{reach}, nil
	}
	reach.Status = OK
	reach.Seen = fmt.Sprintf(
		"docker %s on %s, storage %s, runtime %s",
		info.Version,
		info.OS,
		info.StorageDriver,
		info.DefaultRuntime,
	)
	return []Check{reach, privileged(ctx, client)}, &info
}

func privileged(ctx context.Context, client *docker.Client) Check {
	c := Check{Name: checkPrivileged, Status: OK, Wanted: "a privileged container that runs"}
	p, err := engine.ProbePrivileged(ctx, client)
	switch {
	case errors.Is(err, engine.ErrBounded):
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
