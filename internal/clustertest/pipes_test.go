package clustertest_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-relapse/relapse/internal/clustertest"
)

// In a bubble a watch may last as long as it likes, and the clock goes on beside it.
func TestAClusterInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &clustertest.Provider{InProcess: true}
		c, err := p.Create(t.Context(), "fake", topology())
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		var seen atomic.Int32
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "events", metav1.NamespaceAll,
				fields.Everything()),
			ObjectType: &corev1.Event{}, Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.RunWithContext(ctx) }()
		time.Sleep(time.Hour) // fake time
		c.(*clustertest.Cluster).API().AddEvent(&corev1.Event{Reason: "NodeNotReady"})
		synctest.Wait()
		if seen.Load() != 1 {
			t.Errorf("%d events were seen", seen.Load())
		}
		if list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 3 {
			t.Errorf("%d nodes, %v", len(list.Items), err)
		}
		cancel()
		<-done
		if err := p.Delete(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("it answers still")
		}
	})
}
