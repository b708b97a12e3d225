package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "unchangedUpdates",
		Doc: "How many updates changed no byte, or were refused: the API server counted them, and no watch showed " +
			"them.\n\n" +
			"The server stores nothing for such an update, so no record of objects has it. The server's count, " +
			"apiserver_request_total, includes every verb that updates an object, and every answer. The check " +
			"compares this count with the watches, between the first and the last sample in the quiet window that " +
			"quietWorld finds. The check is true if at most atMost updates changed nothing. An update that is under " +
			"way at either end may be counted on one side only.\n\n" +
			"The count doesn't say who asked. If the record of another arm has writes in that time, the answer is " +
			"unknown; writesTried can tell then.",
		Example: "name: updates-without-change\nkind: unchangedUpdates\nphase: fault\nspec:\n  resource: " +
			"bundledeployments.fleet.cattle.io\n  subresource: status\n" +
			"  atMost: 2\n  window:\n    terminating: 1\n",
		New: func() check.Check { return &UnchangedUpdates{Window: objects.DefaultQuiet()} },
	})
}

// UnchangedUpdates compares the updates that the API server counted with those that the watches showed.
type UnchangedUpdates struct {
	Resource    string        `json:"resource" refers:"objects" jsonschema:"resource whose objects are updated: plural name, with its API group unless that is the core group"`
	Subresource string        `json:"subresource,omitempty" jsonschema:"subresource that is updated, such as status. Default: the object itself"`
	AtMost      int           `json:"atMost" jsonschema:"how many updates may change nothing, at most (0 or more)"`
	Window      objects.Quiet `json:"window,omitzero" jsonschema:"the quiet window in which updates are counted; see quietWorld"`
}

// Reads names the server's metrics and recorded objects.
func (c *UnchangedUpdates) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.MetricSamples, bundle.Objects}
}

// Validate refuses an empty resource, a negative number and a bad window.
func (c *UnchangedUpdates) Validate() error {
	return errors.Join(
		c.Window.Validate("window."),
		question.Refuse(c.Resource == "", "resource is empty"),
		question.Refuse(c.AtMost < 0, "atMost is %d (want 0 or more)", c.AtMost),
	)
}

// updates are the verbs in the server's metric that change an object. The metric counts APPLY apart from PATCH, which
// is one verb elsewhere.
var updates = []string{"PUT", "PATCH", "APPLY"}

// Eval compares how many updates the server counted and how many the watches showed.
func (c *UnchangedUpdates) Eval(v bundle.View, s check.Scope) check.Finding {
	what := strings.TrimSuffix(c.Resource+"/"+c.Subresource, "/")
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("at most %d updates of %s that changed nothing", c.AtMost, what),
	)
	if !ok {
		return q.Finding
	}
	still := c.Window.Find(q)
	if !still.Found() {
		q.Evidence = still.Paths
		return q.Unknown(still.WhyNotFound())
	}
	resource, group, _ := strings.Cut(c.Resource, ".")
	of := map[string]string{"group": group, "resource": resource, "subresource": c.Subresource}
	counted := metrics.ReadSeriesOf(
		q.Over(still.Window).InArm(bundle.Shared),
		"apiserver_request_total",
		func(have map[string]string) bool {
			return slices.Contains(updates, have["verb"]) && metrics.HasLabels(have, of)
		},
	)
	q.Evidence = counted.Paths
	if doubt := counted.WhyNoRate(); doubt != nil {
		return q.Unknown(doubt)
	}
	q.Evidence = append(q.Evidence, still.Paths...)
	shown, others := 0, 0
	for _, arm := range v.World().Arms {
		records, doubt := objects.RecordsFollowing(v, arm.Arm, c.Resource)
		q.Evidence = question.Union(q.Evidence, objects.PathsOf(records)...)
		if doubt = cmp.Or(doubt, objects.WhyUncovered(records, counted.Extent(), 0)); doubt != nil {
			return q.Unknown(doubt)
		}
		for _, x := range objects.ActivityOf(records, c.Resource, "", counted.Extent()).All {
			switch {
			case x.Subresource != c.Subresource:
			case arm.Arm == q.Arm:
				shown++
			default:
				others++
			}
		}
	}
	asked := int(counted.Growth())
	q.Say(
		"in %s the API server counted %d updates of %s, and the watches showed %d",
		question.Span(counted.Extent()),
		question.N("updates", asked),
		what,
		question.N("shown", shown),
	)
	if others > 0 {
		q.DoubtBy(
			check.NotConclusive,
			", and %d of other arms: whose the rest are isn't known",
			question.N("ofOtherArms", others),
		)
		return q.Finding
	}
	q.Add(": %d changed nothing", question.N("unchanged", max(0, asked-shown)))
	q.Met = check.Of(asked-shown <= c.AtMost)
	return q.Finding
}
