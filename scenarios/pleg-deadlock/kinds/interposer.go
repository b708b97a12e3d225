package kinds

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "interposer",
		Doc: "What the CRI interposer did: its counts with the times of delivery, the harness's CRI calls through " +
			"its socket, and a census of containers.\n\n" +
			"The harness makes the calls in the same way as the kubelet, so they show what the kubelet sees: how " +
			"slow the runtime is and how many pods it reports. The census has the containers that the kubelet runs, " +
			"and how many others were only reported.",
		Example: "name: interposer\nkind: interposer\nspec:\n  interval: 5s\n",
		New: func() capture.Collector {
			return &Interposer{Interval: metav1.Duration{Duration: 5 * time.Second}}
		},
	})
}

// Interposer collects the counts and the probe of the CRI interposer on the arm's node.
type Interposer struct {
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two readings"`
}

// Validate refuses an interval of 0 or less.
func (c *Interposer) Validate() error { return collectors.ValidateInterval(c.Interval) }

// Makes returns the kinds of artifacts that the collector records: counts, probes and the census of containers.
func (*Interposer) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Interposer, bundle.Probe, bundle.Containers}
}

// NeedsKubelets returns true: without kubelets there is nothing to record.
func (*Interposer) NeedsKubelets() bool { return true }

// Snapshot records a census: the containers that kubelet itself runs, and how many were only reported.
func (*Interposer) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, collectors.AskTimeout)
	defer cancel()
	m := t.Meta(bundle.Containers)
	c, err := census(ctx, t)
	if err == nil {
		_, err = w.WriteJSON(m, c)
	}
	if err != nil {
		err = fmt.Errorf("census of the containers on %s: %w", m.Node, err)
		w.Fail(m, err)
	}
	return err
}

func census(ctx context.Context, t capture.Target) (bundle.ContainerCensus, error) {
	out := bundle.ContainerCensus{
		Time: time.Now().UTC(),
		Ran:  []string{},
		ReportedAs: fmt.Sprintf(
			"namespace %s, ids beginning with %s",
			control.Namespace,
			control.IDPrefix,
		),
	}
	client, err := seams.Interposer(t.Node)
	if err != nil {
		return out, err
	}
	p, err := client.Probe(ctx)
	if err != nil {
		return out, err
	}
	out.ReportedPods, out.ReportedContainers = p.ReportedPods, p.ReportedContainers
	body, err := t.Component.Get(ctx, "/pods")
	if err != nil {
		return out, err
	}
	defer body.Close()
	var pods corev1.PodList
	if err := json.NewDecoder(body).Decode(&pods); err != nil {
		return out, fmt.Errorf("reading the pods of %s: %w", t.Component.Name(), err)
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				out.Ran = append(out.Ran, pod.Namespace+"/"+pod.Name+"/"+c.Name)
			}
		}
	}
	return out, nil
}

// Stream records the interposer's counts and its probes until ctx ends.
func (c *Interposer) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	client, err := seams.Interposer(t.Node)
	if err != nil {
		w.Fail(t.Meta(bundle.Interposer), err)
		return err
	}
	probes := make(chan error, 1)
	go func() {
		probes <- collectors.Stamp(ctx, c.Interval.Duration, t, w, bundle.Probe, client.Probe)
	}()
	err = collectors.Stamp(ctx, c.Interval.Duration, t, w, bundle.Interposer, client.Counts)
	if e := <-probes; err == nil {
		err = e
	}
	return err
}
