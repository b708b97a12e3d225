package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-relapse/relapse/harness/ledger"
)

// readerLabel is the label with a run's name on the pod that reads the run's volume.
const readerLabel = "relapse.dev/reader"

// How long a volume's reader lives, if whoever made it is killed, and how long it may take to run.
const (
	readerLives = time.Hour
	readerComes = 5 * time.Minute
)

// reader returns a pod that does nothing. Who runs commands in it can read the volume with a run's bundles.
func reader(run string, j ledger.Job) (*corev1.Pod, error) {
	s := JobSpec{
		Run:       run,
		Namespace: j.Namespace,
		Image:     j.Image,
		Secret:    j.Secret,
		Storage:   j.Storage,
		Memory:    resource.MustParse("256Mi"),
	}
	if j.CPU != "" {
		cpu, err := resource.ParseQuantity(j.CPU)
		if err != nil {
			return nil, err
		}
		s.CPU = &cpu
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: run + "-reader-",
			Namespace:    j.Namespace,
			Labels: map[string]string{
				"app.kubernetes.io/name": "relapse",
				readerLabel:              run,
			},
		},
		Spec: podSpec(s),
	}
	p.Spec.ActiveDeadlineSeconds = ptr.To(int64(readerLives.Seconds()))
	p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(0)) // it has nothing to do, and is no process that hears of its end
	c := &p.Spec.Containers[0]
	c.Command, c.Args, c.Env = []string{"sleep"}, []string{"infinity"}, nil
	return p, nil
}

// volumeOf returns the bundles on a run's volume, and what ends the pod that reads it.
func volumeOf(
	ctx context.Context,
	client kubernetes.Interface,
	exec Exec,
	run string,
	j ledger.Job,
) (f files, end func() error, err error) {
	pods := client.CoreV1().Pods(j.Namespace)
	want, err := reader(run, j)
	if err != nil {
		return f, nil, err
	}
	made, err := pods.Create(ctx, want, metav1.CreateOptions{})
	if err != nil {
		return f, nil, refusedBy(
			fmt.Errorf("creating the pod that reads the volume %s: %w", j.Storage, err),
			j.Namespace,
		)
	}
	end = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err := pods.Delete(ctx, made.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	last := made
	err = wait.PollUntilContextTimeout(ctx, time.Second, readerComes, true, func(ctx context.Context) (bool, error) {
		p, err := pods.Get(ctx, made.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = p
		return p.Status.Phase == corev1.PodRunning, nil
	})
	if err != nil {
		return f, nil, errors.Join(&ClusterError{fmt.Errorf("the pod %s, which reads the volume %s, doesn't run: %s: %w", made.Name, j.Storage, keeps(last), err),
			"kubectl -n " + j.Namespace + " describe persistentvolumeclaim " + j.Storage}, end())
	}
	return files{
		exec:      exec,
		namespace: j.Namespace,
		pod:       made.Name,
		folder:    keptIn(run, j.Storage, false),
	}, end, nil
}

// removeReaders removes the pods that a process left which was killed while it read the volume.
func removeReaders(ctx context.Context, client kubernetes.Interface, l ledger.Ledger) error {
	pods := client.CoreV1().Pods(l.Job.Namespace)
	left, err := pods.List(ctx, metav1.ListOptions{LabelSelector: readerLabel + "=" + l.Run})
	if err != nil {
		return refusedBy(err, l.Job.Namespace)
	}
	for _, p := range left.Items {
		if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// keeps says what keeps a pod from running.
func keeps(p *corev1.Pod) string {
	s := "it is " + string(p.Status.Phase)
	for _, c := range p.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			s += ", " + c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			s += ", " + c.State.Waiting.Reason + " " + c.State.Waiting.Message
		}
	}
	return s
}
