// Package ginkgo_test is a suite of Ginkgo that fails if its controller leaks goroutines, or writes for ever. The test of
// the folder above runs it on a cluster.
package ginkgo_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	widgets "example.org/widgets"
	"github.com/kube-relapse/relapse/harness/watch"
)

func TestWidgets(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "widgets")
}

var (
	namespace = os.Getenv("WIDGETS_NAMESPACE")
	cfg, err  = clientcmd.BuildConfigFromFlags("", os.Getenv("WIDGETS_KUBECONFIG"))
)

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(err).NotTo(HaveOccurred(), "go test . in the folder above names a cluster for this suite")
	runManager()
	Expect(widgets.Make(ctx, cfg, namespace, "first")).To(Succeed())

	// The ten lines of the watch.
	w, err := watch.Start(ctx, watch.Options{
		Subject: watch.Self(),
		Config:  cfg,
		Pace:    500 * time.Millisecond,
		Settle:  20 * time.Second,
		Checks: []watch.Check{watch.NothingStuck(), watch.QuietWorld(watch.Quiet{
			Resources: []string{widgets.Resource}, Namespaces: []string{namespace}, For: 3 * time.Second})},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Stop)
})

// runManager runs the controller until the suite is over. Clean-ups run in reverse order, so the watch ends before it.
func runManager() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- widgets.Run(ctx, cfg, namespace, os.Getenv("WIDGETS_DEFECT"), "0", "0") }()
	DeferCleanup(func() error { cancel(); return <-ended })
}

var _ = Describe("a widget", func() {
	for i := range 5 {
		It("gets its size", func(ctx SpecContext) {
			Expect(widgets.Make(ctx, cfg, namespace, fmt.Sprintf("widget-%d", i))).To(Succeed())
		}, SpecTimeout(time.Minute))
	}
})
