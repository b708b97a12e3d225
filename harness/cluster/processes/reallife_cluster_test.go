//go:build cluster

package processes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// Two clusters stand side by side, each with its own objects.
func TestRealClustersNeverMeet(t *testing.T) {
	p, _ := prepared(t)
	for _, n := range []string{name, name + "-too"} {
		t.Cleanup(func() {
			if err := p.Delete(context.Background(), n); err != nil {
				t.Error(err)
			}
		})
		c, err := p.Create(t.Context(), n, topology(nil))
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// A component that refuses a flag says so, whichever it is, and nothing is left of the others.
func TestRealComponentRefusesAFlag(t *testing.T) {
	p, _ := prepared(t)
	top := topology(nil)
	top.Nodes[0].Args["kube-controller-manager"] = map[string]string{"nope": "1"}
	_, err := p.Create(t.Context(), name, top)
	if err == nil || !strings.Contains(err.Error(),
		"kube-controller-manager ended before it was ready (exit status 1)") ||
		!strings.Contains(err.Error(), "unknown flag: --nope") {
		t.Errorf("it ended with %v", err)
	}
}

// A cluster that is retained outlives its maker, with a supervisor that starts its components again, until it is
// deleted.
func TestRealClusterIsRetained(t *testing.T) {
	_, programs := prepared(t)
	delete(programs, proxy)
	p, dir := newProvider(t)
	t.Cleanup(func() {
		if err := p.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	maker := makerOf(dir, programs)
	maker.Env = append(os.Environ(), retainVariable+"=1")
	out, err := maker.CombinedOutput()
	if err != nil || string(out) != "made\n" {
		t.Fatalf("the maker said %q, %v", out, err)
	}
	c, err := p.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	k := c.Components("kube-scheduler")[0]
	before, err := k.Identity(t.Context(), false)
	if err != nil || before.PID == 0 {
		t.Fatalf("it is %+v, %v", before, err)
	}
	if err := k.Signal(t.Context(), syscall.SIGKILL, cluster.Identity{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		now, err := k.Identity(t.Context(), false)
		if err == nil && now.Restarts != before.Restarts+1 {
			err = errors.New("it is not started again")
		}
		return err
	})
}

// Whoever makes a cluster and is killed at any moment leaves no process. The moments are drawn anew each time.
func TestRealKills(t *testing.T) {
	_, programs := prepared(t)
	delete(programs, proxy)
	for i := range 12 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			killed(t, programs, time.Duration(rand.Int64N(int64(12*time.Second))))
		})
	}
}
