package check

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "unchangedUpdates",
		Doc: "Updates that changed no byte: those that the API server counted and no watch showed.\n\n" +
			"The server stores nothing for them, so no record of objects has them. Its count, " +
			"apiserver_request_total, is of all arms together, and so is what is compared with it: the writes in " +
			"every arm's record, between the first and the last sample in the quiet window that quietWorld finds. " +
			"Met when at most so many changed nothing; one that is under way at either end may be counted on one " +
			"side only.",
		Example: "name: updates-without-change\nkind: unchangedUpdates\nphase: fault\nspec:\n  resource: " +
			"bundledeployments.fleet.cattle.io\n  subresource: status\n" +
			"  atMost: 2\n  window:\n    terminating: 1\n",
		New: func() Check { return &UnchangedUpdates{Window: standstill()} },
	})
}

// UnchangedUpdates counts updates by both sides.
type UnchangedUpdates struct {
	Resource    string `json:"resource" jsonschema:"whose updates they are: a plural name, with its API group unless it is the core's"`
	Subresource string `json:"subresource,omitempty" jsonschema:"such as status; when left out updates of the object itself"`
	AtMost      int    `json:"atMost" jsonschema:"how many may have changed nothing"`
	Window      Quiet  `json:"window,omitzero" jsonschema:"while what stands still; see quietWorld"`
}

// Reads names the server's metrics and recorded objects.
func (c *UnchangedUpdates) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.MetricSamples, bundle.Objects}
}

// Validate refuses an empty name, and a number that could never be met.
func (c *UnchangedUpdates) Validate() error {
	return errors.Join(
		c.Window.validate("window."),
		refuse(c.Resource == "", "resource is empty"),
		refuse(c.AtMost < 0, "atMost is %d (want 0 or more)", c.AtMost),
	)
}

// Eval compares the server's count with the watches'.
func (c *UnchangedUpdates) Eval(v bundle.View, s Scope) Finding {
	what := strings.TrimSuffix(c.Resource+"/"+c.Subresource, "/")
	q, ok := ask(c, v, s, fmt.Sprintf("at most %d updates of %s that changed nothing, all arms together", c.AtMost,
		what))
	if !ok {
		return q.Finding
	}
	still := c.Window.find(q)
	if !still.found() {
		q.Evidence = still.paths
		return q.unknown(still.never())
	}
	resource, group, _ := strings.Cut(c.Resource, ".")
	counted := metricSeries(q.over(still.window).in(bundle.Shared), "apiserver_request_total",
		map[string]string{"verb": "PUT", "code": "200", "group": group, "resource": resource,
			"subresource": c.Subresource})
	q.Evidence = counted.paths
	if doubt := counted.noRate(); doubt != "" {
		return q.unknown(doubt)
	}
	q.Evidence = append(q.Evidence, still.paths...)
	shown := 0
	for _, cell := range v.World().Cells {
		of, doubt := followersOf(v, cell.Cell, c.Resource)
		q.Evidence = union(q.Evidence, pathsOf(of)...)
		if doubt = cmp.Or(doubt, uncovered(of, counted.extent(), 0)); doubt != "" {
			return q.unknown(doubt)
		}
		for _, x := range writes(of, c.Resource, "", counted.extent()).all {
			if x.subresource == c.Subresource {
				shown++
			}
		}
	}
	updates := int(counted.grown())
	return q.answer(Of(updates-shown <= c.AtMost),
		fmt.Sprintf("in %s the API server counted %d updates of %s, and the watches showed %d: %d changed nothing",
			span(counted.extent()), updates, what, shown, max(0, updates-shown)))
}
