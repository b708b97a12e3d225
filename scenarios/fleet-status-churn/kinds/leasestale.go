package kinds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "leaseStale",
		Doc: "Through the last stretch of the window, the Leases of nodes had run out and were not renewed.\n\n" +
			"The nodes are given by name, or by the fault that was seen on them. The Leases of all these nodes must " +
			"have run out. A Lease runs out when the duration that it states has passed since its last renewal, as " +
			"the API server showed the Lease at each look. One renewal makes the check false.",
		Example: "name: lease-stale\nkind: leaseStale\nphase: fault\nspec:\n  fault: off\n  for: 10s\n",
		Meets:   `{"nodes":["worker2"],"for":"1s"}`,
		Differs: `{"nodes":["worker"],"for":"1s"}`,
		New:     func() check.Check { return &LeaseStale{For: "10s"} },
	})
}

// LeaseStale asks whether nodes have stopped renewing their Leases.
type LeaseStale struct {
	Nodes []string `json:"nodes,omitempty" refers:"node" jsonschema:"names of the nodes within the cluster, such as worker2. Give either nodes or fault"`
	Fault string   `json:"fault,omitempty" refers:"fault" jsonschema:"instead of nodes: name of a fault, for the nodes on which the fault was seen"`
	For   string   `json:"for,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
}

// leaseMissed is how old the newest record of a Lease may be. The collector looks at each Lease every two seconds;
// without newer records the Lease may have been deleted.
const leaseMissed = 6 * time.Second

// Reads names leases.
func (c *LeaseStale) Reads() []bundle.Kind { return []bundle.Kind{bundle.Leases} }

// Validate refuses a spec with both nodes and a fault or with neither, and a bad duration.
func (c *LeaseStale) Validate() error {
	if (len(c.Nodes) > 0) == (c.Fault != "") || slices.Contains(c.Nodes, "") {
		return errors.New("want either nodes, by name, or the fault that they are the targets of")
	}
	return question.Positive("for", c.For)
}

// Eval checks that each node's Lease had run out throughout the last stretch of the window.
func (c *LeaseStale) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(
		c,
		v,
		s,
		fmt.Sprintf("the Lease of %s run out for the last %s", c.meant(), c.For),
	)
	if !ok {
		return q.Finding
	}
	all, last, doubt := question.ReadLast[bundle.LeaseSample](
		q,
		bundle.Leases,
		objects.RecordedUnder(v, bundle.Leases, q.Arm),
		question.Duration(c.For),
	)
	if doubt != nil {
		return q.Unknown(doubt)
	}
	nodes, doubt := c.nodes(q, all)
	if doubt != nil {
		return q.Unknown(doubt)
	}
	q.Met = check.True
	var seen, differ []string
	for _, n := range nodes {
		said, differs, doubt := staleness(all, n, last)
		if doubt != nil {
			return q.Unknown(doubt)
		}
		seen = append(seen, said)
		if differs != "" {
			q.Met, differ = check.False, append(differ, differs)
		}
	}
	q.Seen, q.Differs = strings.Join(seen, "; "), question.FirstAndLast(differ)
	return q.Throughout(last, question.Duration(c.For))
}

func (c *LeaseStale) meant() string {
	if c.Fault != "" {
		return "the nodes of the fault " + c.Fault
	}
	return strings.Join(c.Nodes, ", ")
}

// nodes returns the full names of the nodes in the spec, or of those on which its fault was seen. A fault seen on a
// node only says which node it is; the Leases say what became of the node.
func (c *LeaseStale) nodes(
	q *question.Question,
	all []bundle.LeaseSample,
) (out []string, doubt error) {
	var among []string
	for _, r := range all {
		among = question.Union(among, r.Node)
	}
	for _, name := range c.Nodes {
		full := objects.FullNodeName(q.View, q.Arm, name, among)
		if full == "" {
			return nil, check.Doubt(
				check.NotRecorded,
				"no Lease of a node %s was recorded (there are those of %s)",
				name,
				strings.Join(among, ", "),
			)
		}
		out = append(out, full)
	}
	if c.Fault == "" {
		return out, nil
	}
	for _, e := range q.View.Timeline() {
		node, _ := e.Fields["node"].(string)
		mine := e.Arm == q.Arm || e.Arm == "" || e.Arm == bundle.Shared
		if e.Type == event.FaultSeen && e.Fields["fault"] == c.Fault && mine && node != "" &&
			!slices.Contains(out, node) {
			out = append(out, node)
		}
	}
	if len(out) == 0 {
		return nil, check.Doubt(check.NotRecorded, "the fault %s was seen on no node", c.Fault)
	}
	return out, nil
}

// staleness describes the newest record of one node's Lease by the end of w. differs says how the Lease was still good
// in w, "" if it wasn't. doubt says why that isn't known.
func staleness(
	all []bundle.LeaseSample,
	node string,
	w bundle.Window,
) (seen, differs string, doubt error) {
	var newest bundle.LeaseSample
	for _, r := range all {
		if r.Node == node && !r.Time.After(w.End) && !r.Time.Before(newest.Time) {
			newest = r
		}
	}
	if newest.Time.IsZero() || w.End.Sub(newest.Time) > leaseMissed {
		return "", "", check.Doubt(
			check.Gap,
			"no Lease of %s was recorded by %s",
			node,
			question.Clock(w.End),
		)
	}
	out := newest.Renewed.Add(time.Duration(newest.Seconds) * time.Second)
	seen = fmt.Sprintf(
		"the Lease of %s was renewed last at %s and is good for %ds",
		node,
		question.Clock(newest.Renewed),
		newest.Seconds,
	)
	if out.After(w.Start) {
		differs = fmt.Sprintf("%s: it runs out at %s", node, question.Clock(out))
	}
	return seen, differs, nil
}
