package collectors

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "heap",
		Doc: "Heap profiles of the subject, each after a garbage collection.\n\n" +
			"So all memory that a profile shows in use is retained: none of it only waits to be collected.",
		Example: "name: heap\nkind: heap\nevery: 20s\n",
		New:     func() capture.Collector { return &Heap{} },
	})
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "cpu",
		Doc: "CPU profiles of the subject, over a few seconds each.\n\n" +
			"A process makes one CPU profile at a time. If another client is taking one, the request is refused, and " +
			"the refusal is recorded.",
		Example: "name: cpu\nkind: cpu\nspec:\n  seconds: 5\n",
		New:     func() capture.Collector { return &CPU{Seconds: 5} },
	})
}

// Heap collects heap profiles.
type Heap struct{}

// Makes returns the kind of artifact that the collector records: heap profiles.
func (*Heap) Makes() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Snapshot records a heap profile, which the subject takes after it has collected its garbage.
func (*Heap) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	return Get(ctx, t, w, bundle.Heap, "/debug/pprof/heap?gc=1", "pb.gz")
}

// maxSeconds bounds a CPU profile: a snapshot that takes longer holds up the phases.
const maxSeconds = 60

// CPU collects CPU profiles.
type CPU struct {
	Seconds int `json:"seconds,omitzero" jsonschema:"length of each profile in seconds: 1 to 60"`
}

// Validate refuses less than a second, and more than maxSeconds.
func (c *CPU) Validate() error {
	if c.Seconds < 1 || c.Seconds > maxSeconds {
		return fmt.Errorf("seconds is %d (want 1 to %d)", c.Seconds, maxSeconds)
	}
	return nil
}

// Makes returns the kind of artifact that the collector records: CPU profiles.
func (*CPU) Makes() []bundle.Kind { return []bundle.Kind{bundle.CPU} }

// Snapshot records a CPU profile that begins now, which is also the artifact's time.
func (c *CPU) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	took := time.Duration(c.Seconds) * time.Second
	return getWithin(
		ctx,
		took+AskTimeout,
		t,
		w,
		bundle.CPU,
		fmt.Sprintf("/debug/pprof/profile?seconds=%d", c.Seconds),
		"pb.gz",
	)
}
