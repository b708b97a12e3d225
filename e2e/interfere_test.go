//go:build cluster

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
)

// This file holds what specs do without the harness's knowledge.

const kubeletPath = "/usr/bin/kubelet"

// take copies the kubelet of an arm's node to the host and returns the copy's path.
func (b *bench) take(ctx context.Context, arm string) string {
	GinkgoHelper()
	out, err := b.node(arm).Abilities().Commands.Exec(ctx, nil, "cat", kubeletPath)
	Expect(err).NotTo(HaveOccurred())
	name := filepath.Join(scratch, "kubelet-"+arm)
	Expect(os.WriteFile(name, out, 0o755)).To(Succeed())
	return name
}

// put installs a kubelet in an arm's node and restarts it.
func (b *bench) put(ctx context.Context, arm, source string) {
	GinkgoHelper()
	k := b.kubelet(arm)
	before, err := k.Identity(ctx, true)
	Expect(err).NotTo(HaveOccurred())
	Expect(k.Node().Install(ctx, "kubelet", source)).To(Succeed())
	Expect(k.Abilities().Restart(ctx)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) (string, error) {
		now, err := k.Identity(ctx, true)
		return now.SHA256, err
	}).WithTimeout(2 * time.Minute).ShouldNot(Or(BeEmpty(), Equal(before.SHA256)))
	Expect(b.env.WaitReady(ctx, readyTime)).To(Succeed())
}

// kill is a SIGKILL that was planned and may be done.
type kill struct {
	done   chan struct{}
	once   sync.Once
	said   error
	detach func() // nothing is killed after it
}

// err returns nil if the kubelet was killed and another process took its place. Otherwise it returns what went wrong.
func (k *kill) err() error {
	select {
	case <-k.done:
		return k.said
	default:
		return errors.New("the flood was never seen, or the kubelet never came back, so nothing was shown")
	}
}

// killDuringFlood kills an arm's kubelet once, as soon as the flood is seen on its node.
func killDuringFlood(ctx SpecContext, b *bench, arm string) *kill {
	GinkgoHelper()
	k := &kill{done: make(chan struct{})}
	comp := b.kubelet(arm)
	k.detach = events.Attach(event.SinkFunc(func(e event.Event) {
		if e.Type == event.FaultSeen && e.Arm == arm && strings.HasPrefix(e.Message, "flood:") {
			k.once.Do(func() { go k.run(ctx, comp) }) // a sink must not block
		}
	}))
	return k
}

func (k *kill) run(ctx context.Context, comp cluster.Component) {
	defer close(k.done)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	before, err := comp.Identity(ctx, false)
	if err == nil {
		err = comp.Signal(ctx, syscall.SIGKILL, cluster.Identity{})
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		now, look := comp.Identity(ctx, false)
		if look == nil && now.PID > 0 && now.PID != before.PID {
			return
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-tick.C:
		}
	}
	k.said = err
}
