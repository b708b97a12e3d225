package kinds

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster/seams"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

const (
	// etcdRequests is how many answers one probe of etcd asks for: a single answer may be slow by chance.
	etcdRequests = 2
	// etcdLimit bounds each answer. A handshake and two answers together stay below capture.AskTimeout.
	etcdLimit = 5 * time.Second
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "etcdProbe",
		Doc: "How fast and how well etcd answers on the arm's control-plane node, by requests through the etcd proxy " +
			"and around it.\n\n" +
			"The requests use connections whose handshake is over, and kube-apiserver's certificate, so they show " +
			"what kube-apiserver gets. A missing answer is recorded, too: the sample says that there was no answer " +
			"within 5s. There is a gap only if the probe itself can't be made.",
		Example: "name: etcd\nkind: etcdProbe\nspec:\n  interval: 2s\n",
		New: func() capture.Collector {
			return &EtcdProbe{Interval: metav1.Duration{Duration: 2 * time.Second}}
		},
	})
}

// EtcdProbe collects probes of etcd.
type EtcdProbe struct {
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two probes; a probe that takes longer delays the next"`
}

// Validate refuses an interval of 0 or less.
func (c *EtcdProbe) Validate() error { return collectors.ValidateInterval(c.Interval) }

// Makes returns the kind of artifact that the collector records: probes of etcd.
func (*EtcdProbe) Makes() []bundle.Kind { return []bundle.Kind{bundle.EtcdProbe} }

// Stream probes etcd until ctx ends.
func (c *EtcdProbe) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	client, err := seams.Proxy(t.Node, "etcd")
	if err != nil {
		w.Fail(t.Meta(bundle.EtcdProbe), err)
		return err
	}
	return collectors.Stamp(ctx, c.Interval.Duration, t, w, bundle.EtcdProbe,
		func(ctx context.Context) (control.ConnectionProbe, error) {
			return client.Probe(ctx, etcdRequests, etcdLimit)
		})
}
