// Package framework_test is a suite of e2e-framework that watches its controller from outside, by the profiles and
// metrics that it serves. The test of the folder above runs it on a cluster.
package framework_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	widgets "example.org/widgets"
	"github.com/kube-relapse/relapse/harness/e2eframework"
	"github.com/kube-relapse/relapse/harness/watch"
)

var (
	suite     = env.NewWithConfig(envconf.NewWithKubeConfig(os.Getenv("WIDGETS_KUBECONFIG")))
	namespace = os.Getenv("WIDGETS_NAMESPACE")
)

func TestMain(m *testing.M) {
	if namespace == "" {
		fmt.Fprintln(os.Stderr, "error: there is no cluster for this suite\nhint: go test . in the folder above names one")
		os.Exit(1)
	}
	profiles, metrics := free(), free()
	w := e2eframework.Watch(func(cfg *envconf.Config) (watch.Options, error) {
		make := func(name string) func(context.Context) error {
			return func(ctx context.Context) error { return widgets.Make(ctx, cfg.Client().RESTConfig(), namespace, name) }
		}
		return watch.Options{
			Subject: watch.At(watch.Endpoint{Profiles: "http://" + profiles, Metrics: "http://" + metrics + "/metrics"}),
			Config:  cfg.Client().RESTConfig(),
			Pace:    500 * time.Millisecond,
			Settle:  20 * time.Second,
			Checks: []watch.Check{watch.NothingStuck(), watch.MemoryBack(), watch.Recovered("a widget gets its size", make("last")),
				watch.QuietWorld(watch.Quiet{Resources: []string{widgets.Resource}, Namespaces: []string{namespace}, For: 3 * time.Second})},
		}, make("first")(context.Background())
	})
	suite.Setup(runManager(profiles, metrics), w.Start)
	suite.Finish(w.Stop)
	os.Exit(w.ExitCode(suite.Run(m)))
}

// runManager runs the controller until the program ends.
func runManager(profiles, metrics string) env.Func {
	return func(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
		go func() {
			err := widgets.Run(context.Background(), cfg.Client().RESTConfig(), namespace, os.Getenv("WIDGETS_DEFECT"), profiles, metrics)
			fmt.Fprintln(os.Stderr, "the manager ended:", err)
			os.Exit(1)
		}()
		return ctx, nil
	}
}

// free returns an address that nobody listens on.
func free() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestWidgets(t *testing.T) {
	f := features.New("widgets")
	for i := range 5 {
		f.Assess(fmt.Sprintf("widget %d gets its size", i), func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			if err := widgets.Make(ctx, cfg.Client().RESTConfig(), namespace, fmt.Sprintf("widget-%d", i)); err != nil {
				t.Error(err)
			}
			return ctx
		})
	}
	suite.Test(t, f.Feature())
}
