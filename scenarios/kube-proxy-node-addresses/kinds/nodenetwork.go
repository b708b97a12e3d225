package kinds

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "nodeNetwork",
		Doc: "How many IPv4 addresses the subject's node has, and how many node ports lead to a service, as samples " +
			"like those of metrics.\n\n" +
			"Both numbers come from lists of the node's kernel. node_ipv4_addresses is the number of addresses. " +
			"node_nodeports is the number of ports from which a rule of the chain KUBE-NODEPORTS in the nat table " +
			"jumps to a service's chain, in iptables by nftables and by the older interface together. A port counts " +
			"once, however many rules a version makes for it.",
		Example: "name: network\nkind: nodeNetwork\nspec:\n  interval: 2s\n",
		New:     func() capture.Collector { return &NodeNetwork{Interval: metav1.Duration{Duration: 2 * time.Second}} },
	})
}

// The metrics that the collector records.
const (
	nodeAddresses = "node_ipv4_addresses"
	nodePorts     = "node_nodeports"
)

// NodeNetwork collects how many addresses and node ports the kernel of a node lists.
type NodeNetwork struct {
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two samples"`
}

// Validate refuses an interval of 0 or less.
func (c *NodeNetwork) Validate() error { return collectors.ValidateInterval(c.Interval) }

// listNetwork prints the number of addresses and the number of node ports. A missing table counts as one without rules.
const listNetwork = `ip -4 -oneline address show | wc -l
for by in nft legacy; do iptables-$by-save -t nat 2>/dev/null || true; done |
	sed -n 's/^-A KUBE-NODEPORTS .*--dport \([0-9]*\).* -j KUBE-\(SVC\|XLB\|EXT\)-.*/\1/p' | sort -u | wc -l`

// Makes returns the kind of artifact that the collector records: samples.
func (*NodeNetwork) Makes() []bundle.Kind { return []bundle.Kind{bundle.MetricSamples} }

// References names the metrics whose samples the collector records.
func (*NodeNetwork) References() []kinds.Reference {
	return []kinds.Reference{
		{To: kinds.ToMetric, Name: nodeAddresses},
		{To: kinds.ToMetric, Name: nodePorts},
	}
}

// Stream records both numbers until ctx ends.
func (c *NodeNetwork) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	x, err := cluster.Commands(t.Node)
	if err != nil {
		w.Fail(t.Meta(bundle.MetricSamples), err)
		return err
	}
	st, err := w.Stream(t.Meta(bundle.MetricSamples), "jsonl")
	if err != nil {
		return err
	}
	collectors.Follow(ctx, c.Interval.Duration, st, func(ctx context.Context) error {
		asked := time.Now().UTC()
		out, err := x.Look(ctx, nil, "sh", "-ec", listNetwork)
		if err != nil {
			return err
		}
		var addresses, ports float64
		if _, err := fmt.Sscan(string(out), &addresses, &ports); err != nil {
			return fmt.Errorf("reading what node %s lists, %q: %w", t.Node.Name(), out, err)
		}
		done := time.Now().UTC()
		for name, value := range map[string]float64{nodeAddresses: addresses, nodePorts: ports} {
			if err := st.JSON(bundle.MetricSample{Time: asked, Done: done, Name: name, Value: value}); err != nil {
				return err
			}
		}
		return nil
	})
	return st.Close()
}
