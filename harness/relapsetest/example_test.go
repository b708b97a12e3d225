package relapsetest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/relapsetest"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A scenario as a test: does the build in this checkout still have the bug?
func ExampleRun() {
	test := func(t *testing.T) { // func TestNoGoroutineLeak(t *testing.T)
		relapsetest.Run(t, "apiserver-goroutine-leak",
			relapsetest.Candidate("src:../.."),
			relapsetest.Provider("processes"))
	}
	_ = test
}

// A pair other than the default one, three trials of it, a parameter of one's own, and a scenario of one's own.
func ExampleScenarios() {
	test := func(t *testing.T) {
		relapsetest.Run(t, "widgets-never-deleted",
			relapsetest.Scenarios("testdata/scenarios"),
			relapsetest.Pair("modern"),
			relapsetest.Repeat(3),
			relapsetest.Set("widgets", "2000"))
	}
	_ = test
}

// A test that shows that a scenario knows its bug: a build without the fix is still vulnerable.
func ExampleWant() {
	test := func(t *testing.T) {
		r := relapsetest.Run(t, "policy-type-check-crash",
			relapsetest.Candidate("release:v1.34.1"),
			relapsetest.Runs(t.ArtifactDir()),
			relapsetest.Want(verdict.StillVulnerable))
		t.Logf("kept in %s", r.Dir)
	}
	_ = test
}

// Clusters for a suite of e2e-framework: the provider is kind or processes.
func ExampleClusters() {
	main := func(m *testing.M, dir string) int { // func TestMain(m *testing.M)
		topology := cluster.Topology{Version: cluster.DefaultVersion,
			Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}}
		inner, err := relapsetest.Clusters(context.Background(), "processes", topology)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		p := e2eframework.New(inner, topology, dir)
		suite := env.NewWithConfig(envconf.New())
		suite.Setup(envfuncs.CreateCluster(p, "relapse-mine"))
		suite.Finish(envfuncs.ExportClusterLogs("relapse-mine", dir), envfuncs.DestroyCluster("relapse-mine"))
		return suite.Run(m)
	}
	_ = main
}
