package campaign_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/match/measure"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// A baseline's cluster is looked at, at work, and nothing of it is left. What was taken makes baselines of its
// components.
func TestABaselineLeavesNothingOfItsCluster(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers bool // the components' endpoints
		works   bool // the API server
		want    string
	}{
		{"well", true, true, ""},
		{"a component that doesn't answer", false, true, "looking at kube-apiserver on "},
		{"a cluster that can't work", true, false, "not one object could be created and deleted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			provider := &clustertest.Provider{Made: func(made *clustertest.Cluster) error {
				if c.works {
					made.API().AddNamespace("default", nil)
				}
				for _, name := range []string{"kubelet", "kube-apiserver"} {
					k := made.Component(made.Nodes()[0].Name(), name)
					k.Say("/metrics", "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.34.4\"} 1\n")
					if c.answers || name == "kubelet" {
						var asked atomic.Int64
						k.Answer("/debug/pprof/goroutine", func(string) ([]byte, error) {
							return fmt.Appendf(nil, "goroutine 1 [select]:\nk8s.io/kubernetes/cmd/%s/app.Run(0x1)\n\t/a.go:1 +0x1\nmain.main()\n\t/main.go:1 +0x1\n\n"+
								"goroutine %d [select]:\nnet/http.(*conn).serve(0x1)\n\t/b.go:1 +0x1\ncreated by net/http.(*Server).Serve in goroutine 3\n\t/b.go:2 +0x1\n\n", name, 7+asked.Add(1)), nil // whoever takes a dump is another goroutine each time
						})
					}
				}
				return nil
			}}
			dir, err := campaign.Baseline(t.Context(), campaign.BaselineOptions{Provider: provider, Root: "..", Out: t.TempDir(), CacheDir: t.TempDir(), Dumps: 2,
				Every: time.Second, Events: event.NewStream(), Topology: cluster.Topology{Version: "v1.34.4",
					Nodes: []cluster.NodeSpec{{Name: cluster.ControlPlane, Role: cluster.ControlPlane}}}})
			if left := provider.Clusters(); len(left) > 0 {
				t.Errorf("clusters are left: %q", left)
			}
			if left, _ := os.ReadDir(filepath.Join(state, "relapse", "runs")); len(left) > 0 {
				t.Errorf("the run is still recorded: %v", left)
			}
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it ended with %v; want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all, left, err := measure.Well(t.Context(), []string{dir})
			if err != nil || len(left) > 0 || len(all) != 2 {
				t.Fatalf("%d baselines, %v, left out %v", len(all), err, left)
			}
			for _, b := range all {
				if len(b.Of) != 1 || b.Of[0].Version != "v1.34.4" || b.Of[0].Dumps != 2 {
					t.Errorf("%s is of %+v", b.Component, b.Of)
				}
			}
		})
	}
}
