package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/internal/clustertest"
)

// network holds how many addresses a fault gave a node, and when its time limit takes them away.
type network struct {
	mu    sync.Mutex
	ever  int
	count int
	until time.Time
}

// hookAddresses gives each node the scripts that add and remove addresses, and the command that lists them. The
// nodes' hooks are called first.
func hookAddresses(w *world) {
	for _, n := range w.nodes {
		n.Handle("sh", func(ctx context.Context, _ io.Reader, argv []string) ([]byte, error) {
			if err := n.hooked(ctx, []string{"sh", "change"}); err != nil {
				return nil, err
			}
			n.network.mu.Lock()
			defer n.network.mu.Unlock()
			if len(argv) == 5 { // sh -ec SCRIPT sh LINK
				n.network.count = 0
				return nil, nil
			}
			count, err := strconv.Atoi(argv[5])
			atMost, err2 := time.ParseDuration(argv[6])
			if err != nil || err2 != nil {
				return nil, errors.Join(err, err2)
			}
			n.network.ever++
			n.network.count, n.network.until = count, time.Now().Add(atMost)
			return nil, nil
		})
		n.Handle("ip", func(ctx context.Context, _ io.Reader, _ []string) ([]byte, error) {
			if err := n.hooked(ctx, []string{"ip", "probe"}); err != nil {
				return nil, err
			}
			out := "1: lo    inet 127.0.0.1/8 scope host lo\n"
			return []byte(out + strings.Repeat("7: relapse-addr    inet 198.19.0.1/32 scope global relapse-addr \n", n.network.listed())), nil
		})
	}
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

// addressesArmed counts how often a node was given addresses, and reports them while the node has them.
func addressesArmed(_ *testing.T, n *criNode) (ever int, armed []string) {
	if has := n.network.listed(); has > 0 {
		armed = append(armed, fmt.Sprintf("%d addresses", has))
	}
	n.network.mu.Lock()
	defer n.network.mu.Unlock()
	return n.network.ever, armed
}

// layNetwork writes the programs that nodeNetwork runs to list a node's addresses and rules. They print 3 addresses
// and 400 rules.
func layNetwork(t *testing.T, dir string) {
	t.Helper()
	for name, prints := range map[string]string{
		"ip": strings.Repeat("7: eth0    inet 198.19.0.1/32 scope global eth0\n", 3), "iptables-legacy-save": "",
		"iptables-nft-save": strings.Repeat("-A KUBE-NODEPORTS -p tcp -j KUBE-EXT-A\n", 400),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\ncat <<'END'\n"+prints+"END\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// answers scripts the answers that nodes get from services through curl. If well is true, they get the right answer,
// and the API servers get an endpoint. Otherwise they first get no answer, and then the answer of some other server.
func (s *loaded) answers(well bool) {
	for _, n := range s.Nodes() {
		var calls atomic.Int32
		n.(*clustertest.Node).Handle("curl", func(_ context.Context, _ io.Reader, argv []string) ([]byte, error) {
			switch {
			case !strings.HasPrefix(argv[len(argv)-1], "https://") || !well && calls.Add(1) == 1:
				return []byte("000"), errors.New("exit status 7")
			case !well:
				return []byte("404"), nil
			}
			return []byte("200"), nil
		})
	}
	if !well {
		return
	}
	s.API().AddNamespace(metav1.NamespaceDefault, nil)
	client := kubernetes.NewForConfigOrDie(s.RESTConfig())
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Name: "https", Port: 6443}}}}}
	if _, err := client.CoreV1().Endpoints(metav1.NamespaceDefault).Create(context.Background(), e, metav1.CreateOptions{}); err != nil {
		panic(err) // a fake that can't create Endpoints
	}
}
