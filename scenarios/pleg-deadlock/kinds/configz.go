package kinds

import (
	"context"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name:    "configz",
		Doc:     "The subject's configuration from /configz, when a phase changes and at the incident's onset.",
		Example: "name: configz\nkind: configz\n",
		New:     func() capture.Collector { return &Configz{} },
	})
}

// Configz collects the subject's configuration.
type Configz struct{}

// Makes returns the kind of artifact that the collector records: the configuration.
func (*Configz) Makes() []bundle.Kind { return []bundle.Kind{bundle.Configz} }

// Snapshot records the configuration once.
func (*Configz) Snapshot(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	return collectors.Get(ctx, t, w, bundle.Configz, "/configz", "json")
}
