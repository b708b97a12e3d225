package processes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A component whose memory is limited has its own cgroup, which is named after the component and its cluster. It also
// has a mark, by which the supervisor puts each of its processes there.

// memoryGroup is a cgroup that limits memory.
type memoryGroup interface {
	add(pid int) error
	kills() (uint64, error) // how often the kernel killed because of the limit
	remove() error
}

func memoryGroupName(cluster, component string) string { return "/" + cluster + "." + component }

// limitMark returns the path of a file whose presence says that a component has a memory group.
func limitMark(home, component string) string {
	return filepath.Join(home, stateDir, component+".limited")
}

// noMemoryLimits returns why this user can't limit memory here, or "" if that works. It finds out by trying.
var noMemoryLimits = sync.OnceValue(func() string {
	name := memoryGroupName(fmt.Sprintf("relapse-%d", os.Getpid()), "trial")
	err := makeMemoryGroup(name, 64<<20)
	if err == nil {
		var g memoryGroup
		if g, err = openMemoryGroup(name); err == nil {
			err = g.remove()
		}
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf(
		"a process is limited by a cgroup, and this user can't make one: %v (root can, and so can "+
			"containers: --provider kind)",
		err,
	)
})

// Limit restarts the component in a cgroup with that limit, and returns once the component answers.
func (k *Component) Limit(ctx context.Context, memory string) error {
	if err := k.limit(ctx, memory); err != nil {
		return fmt.Errorf(
			"limiting the memory of the %s of %s to %s: %w",
			k.name,
			k.n.c.name,
			memory,
			err,
		)
	}
	return nil
}

func (k *Component) limit(ctx context.Context, memory string) error {
	if err := k.memoryLimit(ctx, memory); err != nil {
		return err
	}
	if err := k.Restart(ctx); err != nil {
		return err
	}
	now, err := k.state()
	if err != nil {
		return err
	}
	return k.answers(ctx, now.Starts)
}

// memoryLimit makes the component's next process run under a limit.
func (k *Component) memoryLimit(ctx context.Context, memory string) error {
	inContainer := k.n.c.containers != ""
	if why := noMemoryLimits(); why != "" && !inContainer {
		return errors.New(why)
	}
	amount, err := resource.ParseQuantity(memory)
	if err != nil {
		return err
	}
	if inContainer {
		return k.takeContainer(ctx, amount.Value())
	}
	// The mark comes first, because removeMemoryGroups removes only groups with a mark.
	if err := os.WriteFile(limitMark(k.n.c.home, k.process), nil, 0o600); err != nil {
		return err
	}
	return makeMemoryGroup(memoryGroupName(k.n.c.name, k.process), amount.Value())
}

// removeMemoryGroups removes the cgroups of a cluster whose processes are gone. It tries again for a while, because the
// kernel still counts a process for a moment.
func removeMemoryGroups(ctx context.Context, home, cluster string) (err error) {
	marks, err := filepath.Glob(limitMark(home, "*"))
	for _, mark := range marks {
		component := strings.TrimSuffix(filepath.Base(mark), filepath.Ext(mark))
		if c, e := containerOf(home, component); c != nil || e != nil {
			err = errors.Join(err, e, c.leave())
			continue
		}
		g, e := openMemoryGroup(memoryGroupName(cluster, component))
		if errors.Is(e, fs.ErrNotExist) {
			continue
		}
		if e == nil {
			var last error
			if wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, endTime, true, func(context.Context) (bool, error) {
				last = g.remove()
				return last == nil, nil
			}) != nil {
				e = last
			}
		}
		err = errors.Join(err, e)
	}
	return err
}

// memory is what a supervisor knows about a process's memory group.
type memory struct {
	group memoryGroup // nil without a limit
	kills uint64      // the group's, before the process was started
}

// memoryOf returns the opened memory group of a component, or no group if the component has none.
func memoryOf(home, component string) (m memory, err error) {
	if _, err := os.Stat(limitMark(home, component)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return m, nil
		}
		return m, err
	}
	if m.group, err = openMemoryGroup(memoryGroupName(filepath.Base(home), component)); err == nil {
		m.kills, err = m.group.kills()
	}
	return m, err
}

// begin starts the process and then puts it into its memory group, if it has one. Memory that the process takes before
// that is not counted, and processes that it starts before that are not limited; but no component starts any.
//
// A process that has a container gets its output's file, and is started there.
func (p *supervised) begin(home string, out *os.File) (err error) {
	p.child, p.memory = own{p.cmd}, memory{}
	c, err := containerOf(home, p.Name)
	if err != nil {
		return err
	}
	if c != nil {
		started, err := c.start(p.cmd, out)
		if err == nil {
			p.child = started
		}
		return err
	}
	if p.memory, err = memoryOf(home, p.Name); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil || p.memory.group == nil {
		return err
	}
	if err = p.memory.group.add(p.cmd.Process.Pid); err != nil {
		err = errors.Join(err, p.cmd.Process.Kill())
		_ = p.cmd.Wait() // it was killed
	}
	return err
}

// ranOut reports whether the kernel has killed because of the limit since the process was started.
func (m memory) ranOut() bool {
	if m.group == nil {
		return false
	}
	now, err := m.group.kills()
	return err == nil && now > m.kills
}
