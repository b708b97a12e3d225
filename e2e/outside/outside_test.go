package widgets_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"

	widgets "example.org/widgets"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/relapsetest"
)

// name is the cluster's.
const name = "relapse-outside"

// kubeconfig leads to the cluster, and dir has what the suites of the folders below need.
var kubeconfig, dir string

// The tests run on a cluster that e2e-framework's own functions make and remove, by relapse's adapter. $RELAPSE_PROVIDER
// names its provider.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if dir, err = os.MkdirTemp("", "widgets-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	topology := cluster.Topology{Version: cluster.DefaultVersion,
		Nodes: []cluster.NodeSpec{{Name: "control-plane", Role: cluster.ControlPlane}}}
	inner, err := relapsetest.Clusters(context.Background(), cmp.Or(os.Getenv("RELAPSE_PROVIDER"), "processes"), topology)
	if err != nil {
		return 1, err
	}
	p := e2eframework.New(inner, topology, dir)
	suite := env.NewWithConfig(envconf.New())
	suite.Setup(envfuncs.CreateCluster(p, name), func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
		kubeconfig = p.GetKubeconfig()
		var all []string
		for _, c := range suites {
			all = append(all, c.namespace())
		}
		return ctx, widgets.Install(ctx, cfg.Client().RESTConfig(), all...)
	})
	logs := filepath.Join(dir, "logs")
	suite.Finish(envfuncs.ExportClusterLogs(name, logs), envfuncs.DestroyCluster(name))
	if code = suite.Run(m); code != 0 {
		if p.Cluster() != nil { // the framework skips Finish after a Setup that failed
			err = p.Destroy(context.Background())
		}
		return code, err
	}
	if found, err := filepath.Glob(filepath.Join(logs, "*")); err != nil || len(found) == 0 {
		return 1, errors.Join(err, errors.New("ExportClusterLogs left no logs"))
	}
	if p.Cluster() != nil {
		return 1, errors.New("DestroyCluster left the cluster")
	}
	return code, nil
}

type suiteRun struct {
	suite, defect string
	want          []string // of what it prints if it fails; nil if it passes
}

func (c suiteRun) namespace() string { return c.suite + "-" + cmp.Or(c.defect, "well") }

var suites = []suiteRun{
	{suite: "ginkgo"},
	{"ginkgo", widgets.Leak, []string{"nothingStuck is not met", "wait to send or for a lock: too many", "widgets.(*Reconciler).Reconcile"}},
	{"ginkgo", widgets.Churn, []string{"quietWorld is not met", "until a write to widgets.example.org", "status.seen: "}},
	{suite: "framework"},
	{"framework", widgets.Leak, []string{"nothingStuck is not met", "chan send", "widgets.(*Reconciler).Reconcile"}},
}

// A suite that looks at sizes only passes with either defect. The watch fails it, and shows why.
func TestSuites(t *testing.T) {
	for _, suite := range []string{"ginkgo", "framework"} {
		build := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-s -w", "-c", "-o", program(suite), "./"+suite)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the suite %s: %v\n%s", suite, err, out)
		}
	}
	for _, c := range suites {
		t.Run(c.namespace(), func(t *testing.T) {
			t.Parallel() // each has a program and a namespace of its own
			cmd := exec.CommandContext(t.Context(), program(c.suite), "-test.v", "-test.timeout=3m")
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "WIDGETS_KUBECONFIG="+kubeconfig, "WIDGETS_NAMESPACE="+c.namespace(), "WIDGETS_DEFECT="+c.defect)
			raw, err := cmd.CombinedOutput()
			out := string(raw)
			if (err != nil) != (len(c.want) > 0) {
				t.Errorf("it ended with %v", err)
			}
			if !strings.Contains(out, "5 Passed") && strings.Count(out, "--- PASS: TestWidgets/widgets/widget_") != 5 {
				t.Error("its own five tests didn't pass")
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("want %q in its output", want)
				}
			}
			found, err := filepath.Glob(filepath.Join(cmd.Dir, "relapse-watch", "*", "findings.json"))
			if err != nil || len(found) != 1 {
				t.Errorf("the findings are %q, %v; want one file", found, err)
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func program(suite string) string { return filepath.Join(dir, suite+".test") }
