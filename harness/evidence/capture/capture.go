// Package capture has the collectors, which take diagnostics from the components when it happens. Each kind has its
// own file. A failed capture is recorded, so that no evidence is missing without a reason.
package capture

import (
	"context"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Target is what a collector looks at: one component of one arm, or with Component nil the cluster as a whole.
type Target struct {
	Arm       string
	Cluster   cluster.Cluster
	Node      cluster.Node
	Component cluster.Component
	Namespace string        // of the arm, with placement workload
	Phase     func() string // the phase of the arm right now
	Mark      string        // why a snapshot is taken: "schedule", "phase", "onset"
}

// Collector is a Snapshotter, a Streamer, or both. Makes says which artifacts it leaves.
type Collector interface{ Makes() []bundle.Kind }

// Snapshotter takes one picture at a time; the harness schedules it.
type Snapshotter interface {
	Collector
	Snapshot(ctx context.Context, t Target, w *bundle.Writer) error
}

// Streamer follows something until ctx ends. It retries by itself and records its gaps.
type Streamer interface {
	Collector
	Stream(ctx context.Context, t Target, w *bundle.Writer) error
}

// KubeletUser is a Collector of what only kubelets do or report; where there are none it has nothing to record.
type KubeletUser interface{ NeedsKubelets() bool }

// ClusterWide is a Collector that looks at the cluster once instead of at each arm's component.
type ClusterWide interface{ ClusterWide() bool }
