package environment

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// starting has an arm for each arm, in one cluster or, with versions, in one of its own each.
func starting(placement string, arms []string, versions ...string) *Environment {
	e := &Environment{Trial: plan.Trial{Placement: placement}, builds: map[string]Build{}}
	roles := map[string]string{"vulnerable": scenario.Vulnerable, "fixed": scenario.Fixed, "candidate": scenario.Candidate}
	for i, name := range arms {
		e.Trial.Arms = append(e.Trial.Arms, plan.Arm{Arm: scenario.Arm{Name: name, Role: roles[name]}})
		e.builds[name] = Build{Digest: name}
		node := cluster.NodeSpec{Name: name, Arm: name}
		switch {
		case len(versions) > 0:
			e.Trial.Clusters = append(e.Trial.Clusters, plan.Cluster{Name: name, Topology: cluster.Topology{Version: versions[i], Nodes: []cluster.NodeSpec{node}}})
		case i == 0:
			e.Trial.Clusters = []plan.Cluster{{Topology: cluster.Topology{Version: "v1.34.4", Nodes: []cluster.NodeSpec{node}}}}
		default:
			e.Trial.Clusters[0].Topology.Nodes = append(e.Trial.Clusters[0].Topology.Nodes, node)
		}
	}
	return e
}

func TestACandidatesNodeBeginsWithAControlsBuild(t *testing.T) {
	all := []string{"vulnerable", "fixed", "candidate"}
	for _, c := range []struct {
		name     string
		env      *Environment
		want     string // what the candidate's node begins with
		replaces bool
	}{
		{"nodes", starting(plan.PlacementNode, all), "fixed", true},
		{"nodes without the fixed arm", starting(plan.PlacementNode, []string{"vulnerable", "candidate"}), "vulnerable", true},
		{"alone", starting(plan.PlacementNode, []string{"candidate"}), "candidate", false},
		{"clusters", starting(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.22.2"), "vulnerable", true},
		{"clusters of one version", starting(plan.PlacementCluster, all, "v1.34.4", "v1.34.4", "v1.34.4"), "fixed", true},
		{"a cluster of a version that no control has", starting(plan.PlacementCluster, all, "v1.22.2", "v1.23.17", "v1.24.0"), "candidate", false},
		{"workloads", starting(plan.PlacementWorkload, all), "candidate", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.env.firstBuild("candidate").Digest; got != c.want {
				t.Errorf("it begins with the build of %s, want %s", got, c.want)
			}
			if got := c.env.replaces(); got != c.replaces {
				t.Errorf("builds are replaced afterwards: %t, want %t", got, c.replaces)
			}
			for _, name := range []string{"vulnerable", "fixed"} {
				if _, there := c.env.builds[name]; there && c.env.firstBuild(name).Digest != name {
					t.Errorf("%s begins with the build of %s", name, c.env.firstBuild(name).Digest)
				}
			}
		})
	}
	e := starting(plan.PlacementNode, all)
	e.unresponsive = []string{"candidate"}
	if got := e.Responsive(all); !slices.Equal(got, []string{"vulnerable", "fixed"}) {
		t.Errorf("responsive are %v", got)
	}
}

// A static pod that was replaced is waited for until its new container is reported; where that never comes the run goes
// on, and says so.
func TestAReplacedStaticPodIsWaitedForUntilItIsReported(t *testing.T) {
	made := clustertest.New("relapse-x", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}})
	defer made.Close()
	for _, c := range []struct {
		name     string
		after    time.Duration // from when on the new container is reported; 0 is never
		took     time.Duration
		warnings int
	}{
		{"soon", 25 * time.Second, 25 * time.Second, 0},
		{"never", 0, reportTime, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-relapse-x-control-plane", Namespace: metav1.NamespaceSystem}}
				started := func(at time.Time) {
					pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "kube-apiserver", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}}}
				}
				started(began.Add(-time.Minute))
				client := fake.NewClientset(pod)
				if c.after > 0 {
					time.AfterFunc(c.after, func() {
						started(began.Add(5 * time.Second))
						if _, err := client.CoreV1().Pods(metav1.NamespaceSystem).UpdateStatus(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
							t.Error(err)
						}
					})
				}
				heard := &told{}
				e := &Environment{events: event.NewStream(heard)}
				if err := e.reported(t.Context(), client, made.Component("control-plane", "kube-apiserver"), began); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.took || took > c.took+2*time.Second {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if len(heard.all) != c.warnings {
					t.Errorf("it said %+v", heard.all)
				}
			})
		})
	}
}
