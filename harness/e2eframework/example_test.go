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
)

// A suite of the framework on a cluster of relapse, with a fault in force while its tests run. inner is what makes the
// cluster: kind.New of harness/cluster/kind, or processes.New of harness/cluster/processes.
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
		suite.Setup(envfuncs.CreateCluster(p, "mine"), p.Inject(i))
		suite.Finish(p.Recover(i), envfuncs.ExportClusterLogs("mine", dir), envfuncs.DestroyCluster("mine"))
		os.Exit(suite.Run(m))
	}
	_ = main
}
