package kubernetes

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-relapse/relapse/harness/event"
)

// watched are the pods and the Job of a run, as they were last seen.
type watched struct{ pods, jobs cache.SharedInformer }

// watch follows the run's pods and its Job until ctx ends, and goes on when the API server was away. It returns once it
// has seen both, and sends on changed after each change.
func (r *Run) watch(ctx context.Context, changed chan<- struct{}) (w watched, err error) {
	pods, jobs := r.Client.CoreV1().
		Pods(r.Job.Namespace),
		r.Client.BatchV1().
			Jobs(r.Job.Namespace)
	w.pods = r.informer(
		&corev1.Pod{},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		pods.Watch,
	)
	w.jobs = r.informer(
		&batchv1.Job{},
		func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return jobs.List(ctx, o) },
		jobs.Watch,
	)
	signal := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a look is due already
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    signal,
		UpdateFunc: func(_, o any) { signal(o) },
		DeleteFunc: signal,
	}
	for _, informer := range []cache.SharedInformer{w.pods, w.jobs} {
		err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			r.say(
				"api: "+err.Error(),
				event.Warning,
				"the API server can't be watched, and is asked again: "+err.Error(),
			)
		})
		if err != nil {
			return w, err
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return w, err
		}
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), w.pods.HasSynced, w.jobs.HasSynced) {
		return w, context.Cause(ctx)
	}
	return w, nil
}

func (r *Run) informer(
	of runtime.Object,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
) cache.SharedInformer {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = RunLabel + "=" + r.Name
			return list(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = RunLabel + "=" + r.Name
			return follow(ctx, o)
		},
	}
	return cache.NewSharedInformer(cache.ToListWatcherWithWatchListSemantics(lw, r.Client), of, 0)
}

// all returns the pods, and the Job, which is nil if it is gone.
func (w watched) all() (pods []*corev1.Pod, job *batchv1.Job) {
	for _, o := range w.pods.GetStore().List() {
		pods = append(pods, o.(*corev1.Pod))
	}
	for _, o := range w.jobs.GetStore().List() {
		job = o.(*batchv1.Job)
	}
	return pods, job
}
