//go:build cluster

package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// csiNodeSpecs check the loss of a CSINode against the contract of Fault, by asking the API server.
func csiNodeSpecs(bench func() *bench) {
	It("takes a node's CSINode away, which its kubelet doesn't bring back, and creates it again as it was", func(ctx SpecContext) {
		b := bench()
		n := b.node("fixed")
		client, err := kubernetes.NewForConfig(b.env.Cluster().RESTConfig())
		Expect(err).NotTo(HaveOccurred())
		get := func(ctx context.Context) error {
			_, err := client.StorageV1().CSINodes().Get(ctx, n.Name(), metav1.GetOptions{})
			return err
		}
		was, err := client.StorageV1().CSINodes().Get(ctx, n.Name(), metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())

		c := faultCase{kind: "objects", spec: `{"verb":"delete","manifests":[{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"$(node)"}}]}`}
		t := b.target(n, "no-csinode", 5*time.Minute)
		Expect(newFault(c).Inject(ctx, t)).To(Succeed())
		Consistently(ctx, get).WithTimeout(15*time.Second).WithPolling(time.Second).Should(Satisfy(apierrors.IsNotFound), "it stays away")
		for range 2 {
			Expect(newFault(c).Recover(ctx, t)).To(Succeed()) // a new fault, which shares no memory with the one that injected
			is, err := client.StorageV1().CSINodes().Get(ctx, n.Name(), metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(is.Annotations).To(Equal(was.Annotations))
			Expect(is.OwnerReferences).To(Equal(was.OwnerReferences))
			Expect(is.Spec).To(Equal(was.Spec))
		}
	}, SpecTimeout(6*time.Minute))
}
