package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// unified reports whether the host has version 2 of cgroups only. Where it has both, version 1 is in charge of memory.
func unified() bool { return cgroups.Mode() == cgroups.Unified }

// makeMemoryGroup makes a cgroup that is limited to bytes of memory. It gets no swap, with which a leak would only get
// slow.
func makeMemoryGroup(name string, bytes int64) error {
	if unified() {
		var none int64
		_, err := cgroup2.NewManager("/sys/fs/cgroup", name,
			&cgroup2.Resources{Memory: &cgroup2.Memory{Max: &bytes, Swap: &none}})
		return err
	}
	var never uint64
	_, err := cgroup1.New(
		cgroup1.StaticPath(name),
		&specs.LinuxResources{
			Memory: &specs.LinuxMemory{Limit: &bytes, Swappiness: &never},
		},
		memoryOnly,
	)
	return err
}

var memoryOnly = cgroup1.WithHierarchy(cgroup1.SingleSubsystem(cgroup1.Default, cgroup1.Memory))

// openMemoryGroup opens a cgroup that makeMemoryGroup made. If the cgroup is gone, the error is fs.ErrNotExist.
func openMemoryGroup(name string) (memoryGroup, error) {
	if unified() {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", name)); err != nil {
			return nil, err
		}
		m, err := cgroup2.Load(name)
		return group2{m}, err
	}
	c, err := cgroup1.Load(cgroup1.StaticPath(name), memoryOnly)
	if errors.Is(err, cgroup1.ErrCgroupDeleted) {
		err = fmt.Errorf("cgroup %s: %w", name, fs.ErrNotExist)
	}
	return group1{c}, err
}

type group1 struct{ c cgroup1.Cgroup }

func (g group1) add(pid int) error { return g.c.AddProc(uint64(pid)) }
func (g group1) remove() error     { return g.c.Delete() }

func (g group1) kills() (uint64, error) {
	s, err := g.c.Stat(cgroup1.IgnoreNotExist)
	return s.GetMemoryOomControl().GetOomKill(), err
}

type group2 struct{ m *cgroup2.Manager }

func (g group2) add(pid int) error { return g.m.AddProc(uint64(pid)) }
func (g group2) remove() error     { return g.m.Delete() }

func (g group2) kills() (uint64, error) {
	s, err := g.m.StatFiltered(cgroup2.StatMemoryEvents)
	return s.GetMemoryEvents().GetOomKill(), err
}
