package loads

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Load, kinds.Kind[load.Load]{
		Name: "deleteCollection",
		Doc: "Many ConfigMaps that are deleted as whole collections, by many calls at once.\n\n" +
			"The load makes the ConfigMaps before the steady state, in the namespaces relapse-<name>-<n>. Their " +
			"names are item-00000 and so on, so that a ConfigMap's number is its place in a list. With `by: calls`, " +
			"every call of a round is a DELETECOLLECTION request for the ConfigMaps of one namespace, and the round " +
			"ends with the last answer. With `by: namespaceController`, there are as many namespaces as calls. Each " +
			"call deletes one namespace, and the namespace controller deletes the contents, with all its retries. " +
			"The round ends when the namespaces are gone, or `lasts` after the last answer.\n\n" +
			"Faults that come after the load wait until a round has begun. With `by: calls`, a round has begun once " +
			"all its requests were written, a watch has then shown `begun` deletions, and the API server's " +
			"goroutines show a worker that deletes in every call without an answer: the list of such a call is " +
			"complete. A round has also begun once more than a quarter of the objects is gone, or if the API server " +
			"doesn't show its goroutines. With `by: namespaceController`, a round has begun once all its requests " +
			"were written and the watch has then shown `begun` deletions. A round that never begins is reported, and " +
			"is recorded as such. Every answer is recorded, and none fails the load. client-go's throttle and its " +
			"retries are off. Each further round first makes the missing objects again.\n\n" +
			"With `still` and `by: calls`, the load counts the objects that each round left, once two lists that are " +
			"`still` apart show the same number. The load also counts the calls that were deleting when the round " +
			"began and those that the API server ended with a failure. Together these numbers tell how many calls " +
			"were cut short, whatever the API server logs.",
		Example: "name: deletions\nkind: deleteCollection\ntarget: {mode: all, selector: {component: " +
			"kube-apiserver}}\n" +
			"spec:\n  items: 1000\n  bytes: 2Ki\n  calls: 20\n",
		New: func() load.Load {
			return &DeleteCollection{
				By: ByCalls, Items: 1000, Bytes: "2Ki", Calls: 20, Begun: 20,
				Timeout: metav1.Duration{Duration: time.Minute},
				Rounds:  1, Lasts: metav1.Duration{Duration: 45 * time.Second},
			}
		},
	})
}

// The ways in which collections get deleted.
const (
	ByCalls               = "calls"
	ByNamespaceController = bundle.ByNamespaceController
)

// The bounds of what a load may put into etcd. An object must fit into one request. All that the rounds write must fit
// into etcd's default quota of 2 GiB, together with everything else there. The quota also counts deleted objects until
// they are compacted.
const (
	maxBytes = 512 << 10
	maxTotal = 3 << 29
	maxItems = 100_000 // item-00000 to item-99999 sort by their number
)

// DeleteCollection makes ConfigMaps and has them deleted as collections.
type DeleteCollection struct {
	By      string          `json:"by" jsonschema:"calls: the load sends DELETECOLLECTION requests; namespaceController: the load deletes namespaces"`
	Items   int             `json:"items" jsonschema:"ConfigMaps in each namespace: 1 to 100000; some hundreds overflow a channel of 256"`
	Bytes   string          `json:"bytes" jsonschema:"size of each object's data, as a quantity such as 2Ki: 1 to 512Ki; all rounds together write at most 1.5Gi"`
	Calls   int             `json:"calls" jsonschema:"requests in each round, at least 1; with namespaceController also the number of namespaces"`
	Rate    float64         `json:"rate,omitzero" jsonschema:"requests a second; default: 0, which sends all at once"`
	Begun   int             `json:"begun" jsonschema:"deletions that must be seen after the last request was written, for a round to have begun: 1 to the number of objects"`
	Timeout metav1.Duration `json:"timeout" jsonschema:"how long a call waits for its answer, above 0; the API server gives up after 34s"`
	Rounds  int             `json:"rounds" jsonschema:"how often the calls are made, at least 1; each further round first makes the missing objects again"`
	Pause   metav1.Duration `json:"pause,omitzero" jsonschema:"time from the end of a round to the next round; default: 0s"`
	Lasts   metav1.Duration `json:"lasts" jsonschema:"with namespaceController: how long a round goes on at most after its last answer; above 0"`
	Still   metav1.Duration `json:"still,omitzero" jsonschema:"with calls: how far apart two lists must show the same number of objects, to count those that a round left; default: 0s, which counts none"`
}

// Makes returns the kinds of artifacts that the load records: the calls and their summary.
func (*DeleteCollection) Makes() []bundle.Kind {
	return []bundle.Kind{bundle.Calls, bundle.LoadSummary}
}

// Validate refuses a load that asks nothing, or more than etcd can keep.
func (l *DeleteCollection) Validate() error {
	size, err := l.size()
	if err != nil {
		return err
	}
	switch {
	case l.By != ByCalls && l.By != ByNamespaceController:
		return fmt.Errorf("by is %q (want %s or %s)", l.By, ByCalls, ByNamespaceController)
	case l.Items < 1 || l.Items > maxItems:
		return fmt.Errorf("items is %d (want 1 to %d)", l.Items, maxItems)
	case l.Calls < 1:
		return fmt.Errorf("calls is %d (want at least 1)", l.Calls)
	case l.Rounds < 1:
		return fmt.Errorf("rounds is %d (want at least 1)", l.Rounds)
	case l.Rate < 0:
		return fmt.Errorf(
			"rate is %g requests a second (want 0 for all at once, or more)",
			l.Rate,
		)
	case l.Begun < 1 || l.Begun > l.Items*l.namespaces():
		return fmt.Errorf(
			"begun is %d deletions (want 1 to %d, which is all there can be)",
			l.Begun,
			l.Items*l.namespaces(),
		)
	case l.Timeout.Duration <= 0:
		return fmt.Errorf("timeout is %s (want above 0)", l.Timeout.Duration)
	case l.Pause.Duration < 0:
		return fmt.Errorf("pause is %s (want 0 or more)", l.Pause.Duration)
	case l.Still.Duration < 0:
		return fmt.Errorf("still is %s (want 0 or more)", l.Still.Duration)
	case l.Lasts.Duration <= 0:
		return fmt.Errorf("lasts is %s (want above 0)", l.Lasts.Duration)
	}
	if total := float64(size) * float64(l.Items) * float64(l.namespaces()) * float64(l.Rounds); total > maxTotal {
		return fmt.Errorf("%d rounds of %d namespaces with %d items of %s write %.2f GiB (want at most 1.5 GiB: "+
			"etcd's default quota is 2 GiB)",
			l.Rounds, l.namespaces(), l.Items, l.Bytes, total/(1<<30))
	}
	return nil
}

// size returns Bytes as a number.
func (l *DeleteCollection) size() (int64, error) {
	q, err := resource.ParseQuantity(l.Bytes)
	if err != nil {
		return 0, fmt.Errorf("bytes is %q (want a quantity such as 2Ki): %w", l.Bytes, err)
	}
	if n := q.Value(); n < 1 || n > maxBytes {
		return 0, fmt.Errorf("bytes is %s (want 1 to 512Ki)", l.Bytes)
	}
	return q.Value(), nil
}

// namespaces returns how many namespaces are filled.
func (l *DeleteCollection) namespaces() int {
	if l.By == ByNamespaceController {
		return l.Calls
	}
	return 1
}

// Describe returns in words what the load asks of the cluster.
func (l *DeleteCollection) Describe() string {
	pace := "at once"
	if l.Rate > 0 {
		pace = "at " + strconv.FormatFloat(l.Rate, 'g', -1, 64) + " a second"
	}
	out := fmt.Sprintf(
		"%d DELETECOLLECTION calls %s on %d ConfigMaps of %s",
		l.Calls,
		pace,
		l.Items,
		l.Bytes,
	)
	if l.By == ByNamespaceController {
		out = fmt.Sprintf(
			"%d namespaces of %d ConfigMaps of %s each are deleted %s, their contents by the namespace "+
				"controller, watched for up to %s",
			l.Calls,
			l.Items,
			l.Bytes,
			pace,
			l.Lasts.Duration,
		)
	}
	if l.Rounds > 1 {
		out = fmt.Sprintf("%d rounds of: %s", l.Rounds, out)
	}
	return out
}
