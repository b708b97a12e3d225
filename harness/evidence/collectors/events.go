package collectors

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "events",
		Doc: "All core/v1 Events of the cluster, as they come.\n\n" +
			"Every 5s the collector asks for the versions of all Events. The evidence reaches as far as the watch is " +
			"seen to have shown all of them. If the watch can't go on, the collector lists the Events again, and the " +
			"time in between is a gap.",
		Example: "name: events\nkind: events\n",
		New:     func() capture.Collector { return &Events{} },
	})
}

// Events collects the cluster's events.
type Events struct{}

// Makes returns the kind of artifact that the collector records: events.
func (*Events) Makes() []bundle.Kind { return []bundle.Kind{bundle.Events} }

// ClusterWide returns true: events belong to no arm.
func (*Events) ClusterWide() bool { return true }

// Stream records the cluster's events until ctx ends, by means of the collector objects.
func (*Events) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	all := &Objects{Chosen: Chosen{Resources: []string{"events"}, Shared: true}}
	all.Interval.Duration = 5 * time.Second
	recorded := map[string]string{} // object -> the version that was recorded last: a list may show it again
	return all.stream(ctx, t, w, bundle.Events, "jsonl", func(st *bundle.Stream, v churn.Version) error {
		key := v.Namespace + "/" + v.Name
		if v.Type == string(watch.Deleted) {
			delete(recorded, key)
		}
		if v.Object == nil || v.Type == string(watch.Deleted) || recorded[key] == v.ResourceVersion {
			return nil
		}
		e := &corev1.Event{}
		if err := json.Unmarshal(v.Object, e); err != nil {
			return fmt.Errorf("decoding event %s: %w", key, err)
		}
		e.TypeMeta, e.ManagedFields = metav1.TypeMeta{}, nil
		recorded[key] = v.ResourceVersion
		return st.JSON(bundle.Stamped[*corev1.Event]{Time: v.Time, Value: e})
	})
}
