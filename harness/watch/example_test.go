package watch_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/watch"
)

// In a test of its own: the manager runs in the test's program, and the cluster is envtest's or any other.
func ExampleStart() {
	var cfg *rest.Config
	test := func(t *testing.T) { // func TestWidgets(t *testing.T)
		w, err := watch.Start(t.Context(), watch.Options{Subject: watch.Self(), Config: cfg, Checks: []watch.Check{
			watch.NothingStuck(),
			watch.MemoryBack(),
			watch.QuietWorld(watch.Quiet{Resources: []string{"widgets.example.org"}, For: 30 * time.Second}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		// the tests
		if err := w.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	_ = test
}

// A Ginkgo suite: DeferCleanup takes Stop as it is, and fails the suite with its error.
//
//	var _ = BeforeSuite(func(ctx SpecContext) {
//		w, err := watch.Start(ctx, options)
//		Expect(err).NotTo(HaveOccurred())
//		DeferCleanup(w.Stop)
//	})
func ExampleWatch_Stop() {
	var options watch.Options
	var deferCleanup func(args ...any) // ginkgo.DeferCleanup
	begin := func(ctx context.Context) error {
		w, err := watch.Start(ctx, options)
		if err == nil {
			deferCleanup(w.Stop)
		}
		return err
	}
	_ = begin
}

// A manager in a program of its own serves profiles and metrics: with PprofBindAddress and Metrics.BindAddress.
func ExampleAt() {
	subject := watch.At(watch.Endpoint{Profiles: "http://127.0.0.1:8082", Metrics: "http://127.0.0.1:8080/metrics"})
	_ = watch.Options{Subject: subject, Checks: []watch.Check{watch.NothingStuck()}}
}

// A manager in a pod is asked through the API server.
func ExamplePod() {
	var cfg *rest.Config
	subject, err := watch.Pod(cfg, "widgets-system", "widgets-controller-manager-0", 8082, 8080)
	_, _ = subject, err
}

// After a fault: the controller still does its work.
func ExampleRecovered() {
	var createAndAwait func(context.Context) error // creates a widget, and waits for its status
	_ = watch.Recovered("a widget gets its size", createAndAwait)
}
