package environment

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
)

// controlPlane is a cluster with one instance of each of some components.
type controlPlane struct {
	cluster.Cluster
	has       []string
	restarted map[string]int // by component
	url       string
}

func (c controlPlane) RESTConfig() *rest.Config { return &rest.Config{Host: c.url} }

func (c controlPlane) Components(name string) []cluster.Component {
	if !slices.Contains(c.has, name) {
		return nil
	}
	return []cluster.Component{instance{name: name, restarted: c.restarted}}
}

// instance runs in the arm of the fixed arm.
type instance struct {
	cluster.Component
	name      string
	restarted map[string]int
}

func (instance) Node() cluster.Node { return inArm{} }

func (i instance) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Restart: func(context.Context) error {
		i.restarted[i.name]++
		return nil
	}}
}

type inArm struct{ cluster.Node }

func (inArm) Arm() string { return "fixed" }

// After an API server was replaced, the run goes on once the others lead again: a Lease that is there, and that nobody
// renews, is no leader's.
func TestTheOthersLeadAgainBeforeATrialGoesOn(t *testing.T) {
	const manager, scheduler = "kube-controller-manager", "kube-scheduler"
	both := []string{"kube-apiserver", manager, scheduler}
	for _, c := range []struct {
		name         string
		has          []string
		renewed      map[string]time.Duration // from when on a Lease is renewed every two seconds
		elects       string                   // the scheduler's flag
		unresponsive bool
		took         time.Duration
		restarted    map[string]int
		warning      string
	}{
		{name: "both at once", has: both, renewed: map[string]time.Duration{manager: 0, scheduler: 0}, took: time.Second, restarted: map[string]int{manager: 1, scheduler: 1}},
		{name: "one when its old Lease has run out", has: both, renewed: map[string]time.Duration{manager: 32 * time.Second, scheduler: 0}, took: 32 * time.Second, restarted: map[string]int{manager: 1, scheduler: 1}},
		{name: "one never", has: both, renewed: map[string]time.Duration{manager: 0}, took: leadTime, restarted: map[string]int{manager: 1, scheduler: 1}, warning: "no kube-scheduler has renewed its Lease for 2m0s"},
		{name: "one that isn't there", has: both[:2], renewed: map[string]time.Duration{manager: 0}, took: time.Second, restarted: map[string]int{manager: 1}},
		{name: "one that doesn't elect", has: both, renewed: map[string]time.Duration{manager: 0}, elects: "false", took: time.Second, restarted: map[string]int{manager: 1}},
		{name: "with a kubelet, which starts them", has: append([]string{"kubelet"}, both...), renewed: map[string]time.Duration{manager: 0, scheduler: 0},
			took: time.Second, restarted: map[string]int{}},
		{name: "of an API server that doesn't answer", has: both, unresponsive: true, restarted: map[string]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				client := fake.NewClientset()
				for _, name := range []string{manager, scheduler} {
					lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem},
						Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: began.Add(-time.Minute)}}}
					leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
					if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					after, renews := c.renewed[name]
					if !renews {
						continue
					}
					go func() {
						for next := time.NewTimer(after); ; next.Reset(2 * time.Second) {
							select {
							case <-ctx.Done():
								return
							case now := <-next.C:
								lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
								_, err := leases.Update(ctx, lease, metav1.UpdateOptions{})
								if apierrors.IsNotFound(err) { // it was deleted
									_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
								}
								if err != nil {
									t.Error(err)
								}
							}
						}
					}()
				}
				heard := &told{}
				node := cluster.NodeSpec{Args: map[string]map[string]string{scheduler: {"leader-elect": c.elects}}}
				e := &Environment{events: event.NewStream(heard), Trial: plan.Trial{Subject: "kube-apiserver",
					Clusters: []plan.Cluster{{Topology: cluster.Topology{Nodes: []cluster.NodeSpec{node}}}}}}
				if c.unresponsive {
					e.unresponsive = []string{"fixed"}
				}
				made := controlPlane{has: c.has, restarted: map[string]int{}}
				if err := e.leading(ctx, client, made); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.restarted, made.restarted); diff != "" {
					t.Errorf("restarted are:\n%s", diff)
				}
				if took := time.Since(began); took < c.took || took > c.took+6*time.Second { // two renewals, and who comes first at one instant
					t.Errorf("it took %s, want %s", took, c.took)
				}
				said := ""
				for _, one := range heard.all {
					said += one.Message
				}
				if (c.warning == "") != (said == "") || !strings.Contains(said, c.warning) {
					t.Errorf("it said %q, want %q", said, c.warning)
				}
			})
		})
	}
}

// A memory limit restarts an API server just as another build does.
func TestWhoLeadsIsAskedAfterALimit(t *testing.T) {
	for _, c := range []struct {
		name, subject string
		memory        map[string]string
		asked         bool
	}{
		{"limited", "kube-apiserver", map[string]string{"kube-apiserver": "512Mi"}, true},
		{"as it was made", "kube-apiserver", nil, false},
		{"of a node", "kubelet", map[string]string{"kube-apiserver": "512Mi"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Store(true)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"renewTime": %q}}`,
					time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
			}))
			defer server.Close()
			e := &Environment{events: event.NewStream(&told{}), Trial: plan.Trial{Subject: c.subject}}
			made := controlPlane{has: []string{c.subject, "kube-scheduler"}, restarted: map[string]int{}, url: server.URL}
			if err := e.leadAgain(t.Context(), plan.Cluster{Memory: c.memory}, made); err != nil {
				t.Fatal(err)
			}
			if asked.Load() != c.asked {
				t.Errorf("asked for leaders: %v, want %v", asked.Load(), c.asked)
			}
		})
	}
}
