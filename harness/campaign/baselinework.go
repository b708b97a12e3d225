package campaign

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s"
)

// workPause is how long the work rests after each object.
const workPause = 200 * time.Millisecond

// work creates, lists and deletes objects until ctx ends, and returns how many were created and deleted. Every tenth
// object is a pod, which gives the scheduler and the controllers something to do. The others are ConfigMaps.
func work(ctx context.Context, config *rest.Config) (done int) {
	client, err := klient.New(config)
	if err != nil {
		return 0
	}
	objects := client.Resources(metav1.NamespaceDefault)
	for i := 0; ctx.Err() == nil; i++ {
		meta := metav1.ObjectMeta{
			Name:      fmt.Sprintf("relapse-work-%d", i),
			Namespace: metav1.NamespaceDefault,
		}
		var o k8s.Object = &corev1.ConfigMap{ObjectMeta: meta}
		if i%10 == 9 {
			o = &corev1.Pod{
				ObjectMeta: meta,
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{
						{Name: "pause", Image: "registry.k8s.io/pause:3.10"},
					},
				},
			}
		}
		if objects.Create(ctx, o) == nil && objects.List(ctx, &corev1.ConfigMapList{}) == nil && objects.Delete(ctx, o) == nil {
			done++
		}
		select {
		case <-ctx.Done():
		case <-time.After(workPause):
		}
	}
	return done
}
