package e2eframework_test

import (
	"os"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/watch"
)

// A suite of the framework on a cluster of relapse, with a fault in force while its tests run. inner makes the cluster:
// relapsetest.Clusters returns one.
func ExampleProvider_Inject() {
	var inner cluster.Provider
	var slow fault.Fault
	main := func(m *testing.M, dir string) { // func TestMain(m *testing.M)
		suite := env.NewWithConfig(envconf.New())
		topology := cluster.Topology{Version: cluster.DefaultVersion, Nodes: []cluster.NodeSpec{
			{Name: "control-plane", Role: cluster.ControlPlane},
			{Name: "worker", Role: cluster.Worker},
		}}
		p := e2eframework.New(inner, topology, dir)
		i := e2eframework.Injection{Name: "slow", Fault: slow, Expires: time.Hour,
			On: func(n cluster.Node) bool { return n.Role() == cluster.Worker }}
		suite.Setup(envfuncs.CreateCluster(p, "relapse-mine"), p.Inject(i))
		suite.Finish(p.Recover(i), envfuncs.ExportClusterLogs("relapse-mine", dir), envfuncs.DestroyCluster("relapse-mine"))
		os.Exit(suite.Run(m))
	}
	_ = main
}

// A suite of the framework that fails if its controller left goroutines behind, or writes for ever.
func ExampleWatch() {
	main := func(m *testing.M) { // func TestMain(m *testing.M)
		suite := env.NewWithConfig(envconf.New())
		w := e2eframework.Watch(func(cfg *envconf.Config) (watch.Options, error) {
			return watch.Options{Subject: watch.Self(), Config: cfg.Client().RESTConfig(), Checks: []watch.Check{
				watch.NothingStuck(), watch.QuietWorld(watch.Quiet{Resources: []string{"widgets.example.org"}})}}, nil
		})
		suite.Setup(w.Start)
		suite.Finish(w.Stop)
		os.Exit(w.ExitCode(suite.Run(m)))
	}
	_ = main
}
