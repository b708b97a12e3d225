// Package capture says what a collector is, which records diagnostics of the components during a trial. The collectors
// that several scenarios can use are in evidence/collectors. A failed capture is recorded, too, so that no evidence is
// missing without a reason.
package capture

import (
	"context"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Target is what a collector looks at: one component of one arm, or the whole cluster if Component is nil.
type Target struct {
	Arm       string
	Cluster   cluster.Cluster
	Node      cluster.Node
	Component cluster.Component
	Namespace string        // the arm's namespace, with placement workload
	Phase     func() string // the phase of the arm right now
	Mark      string        // why a snapshot is taken: "schedule", "phase", "onset"
}

// Meta returns the description of a new artifact of this target.
func (t Target) Meta(kind bundle.Kind) bundle.Meta {
	m := bundle.Meta{Kind: kind, Arm: t.Arm, Time: time.Now().UTC(), Mark: t.Mark}
	if t.Node != nil {
		m.Node = t.Node.Name()
	}
	if t.Component != nil {
		m.Component = t.Component.Name()
	}
	m.Phase = t.phase()
	return m
}

// phase returns the arm's current phase; "" if the target doesn't tell.
func (t Target) phase() string {
	if t.Phase == nil {
		return ""
	}
	return t.Phase()
}

// Collector is a Snapshotter, a Streamer, or both. Makes returns the kinds of artifacts that the collector records.
type Collector interface{ Makes() []bundle.Kind }

// Snapshotter records one snapshot a call; the harness decides when.
type Snapshotter interface {
	Collector
	Snapshot(ctx context.Context, t Target, w *bundle.Writer) error
}

// Streamer records a source until ctx ends. After a failure it tries again, and it records the gaps.
type Streamer interface {
	Collector
	Stream(ctx context.Context, t Target, w *bundle.Writer) error
}

// KubeletUser is a Collector of something that only kubelets do or report. Without kubelets there is nothing to record.
type KubeletUser interface{ NeedsKubelets() bool }

// ClusterWide is a Collector that looks at the cluster once instead of at each arm's component.
type ClusterWide interface{ ClusterWide() bool }
