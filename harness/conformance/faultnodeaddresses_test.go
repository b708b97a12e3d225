package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func init() {
	faults.add(faultCase{lay: layAddresses}, "nodeAddresses")
}

// layAddresses gives each node the scripts that add and remove addresses, and the command that lists them. The nodes'
// hooks are called first.
func layAddresses(_ *testing.T, w *world) sight {
	networks := map[*criNode]*network{}
	for _, n := range w.nodes {
		has := &network{}
		networks[n] = has
		n.Handle("sh", func(ctx context.Context, _ io.Reader, argv []string) ([]byte, error) {
			if err := n.hooked(ctx, []string{"sh", "change"}); err != nil {
				return nil, err
			}
			has.mu.Lock()
			defer has.mu.Unlock()
			if len(argv) == 5 { // sh -ec SCRIPT sh LINK
				has.count = 0
				return nil, nil
			}
			count, err := strconv.Atoi(argv[5])
			atMost, err2 := time.ParseDuration(argv[6])
			if err != nil || err2 != nil {
				return nil, errors.Join(err, err2)
			}
			has.ever++
			has.count, has.until = count, time.Now().Add(atMost)
			return nil, nil
		})
		n.Handle("ip", func(ctx context.Context, _ io.Reader, _ []string) ([]byte, error) {
			if err := n.hooked(ctx, []string{"ip", "probe"}); err != nil {
				return nil, err
			}
			out := "1: lo    inet 127.0.0.1/8 scope host lo\n"
			return []byte(out + strings.Repeat("7: relapse-addr    inet 198.19.0.1/32 scope global relapse-addr \n", has.listed())), nil
		})
	}
	return sight{armed: func(_ *testing.T, n *criNode) (int, []string) { return networks[n].armed() }}
}

// network holds how many addresses a fault gave a node, and when its time limit takes them away.
type network struct {
	mu    sync.Mutex
	ever  int
	count int
	until time.Time
}

// listed returns how many addresses the node has in addition to its own.
func (n *network) listed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().After(n.until) {
		n.count = 0
	}
	return n.count
}

// armed counts how often the node was given addresses, and reports them while the node has them.
func (n *network) armed() (ever int, armed []string) {
	if has := n.listed(); has > 0 {
		armed = append(armed, fmt.Sprintf("%d addresses", has))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ever, armed
}
