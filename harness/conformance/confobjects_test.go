package conformance_test

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/scenarios/fleet-status-churn/kinds"
)

// ownNamespace is the namespace of the arm that is looked at.
const ownNamespace = "own"

// namespaceFor returns the namespace that a collector is given, "" for most. The collectors of objects observe an arm
// that is a workload in a namespace. The others observe a node's kubelet.
func namespaceFor(c capture.Collector) string {
	switch c.(type) {
	case *capture.Objects, *kinds.ObjectList:
		return ownNamespace
	}
	return ""
}

// layObjects adds two kinds to the API server, with one object of each.
func (s *subject) layObjects() {
	for plural, kind := range map[string]string{"bundles": "Bundle", "bundledeployments": "BundleDeployment"} {
		s.API().AddKind(metav1.GroupVersionKind{Group: "fleet.cattle.io", Version: "v1alpha1", Kind: kind}, plural)
		s.putObject(plural, 0)
	}
}

// putObject writes an object as the arm's agent does.
func (s *subject) putObject(plural string, n int64) {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"n": n}}}
	o.SetNamespace(ownNamespace)
	o.SetName("a")
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "agent-" + arm, Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.Now())}})
	s.API().PutObject(plural+".fleet.cattle.io", o)
}

// churns writes one of the objects ten times a second until ctx ends.
func (s *subject) churns(ctx context.Context, wg *sync.WaitGroup) {
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := int64(1); ctx.Err() == nil; n++ {
			s.putObject("bundledeployments", n)
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
}
