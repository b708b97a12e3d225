package objects

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "nodeReady",
		Doc: "Through the last stretch of the window, the Ready condition of the arm's node or of a named node had a " +
			"given status, as the API server shows it.\n\n" +
			"hold says for how long before the end of the window the condition must have lasted without " +
			"interruption. A node whose kubelet stopped reporting has the status Unknown. A named node may be any " +
			"node of the arm's cluster, whichever arm it belongs to: the collector leases looks at all nodes.",
		Example: "name: node-not-ready\nkind: nodeReady\nphase: recovery\nspec:\n  status: \"False\"\n  reason: " +
			"KubeletNotReady\n  message: ^PLEG is not healthy\n",
		Meets:   `{"status":"True","reason":"KubeletReady","hold":"1s"}`,
		Differs: `{"status":"False","hold":"1s"}`,
		New:     func() check.Check { return &NodeReady{Hold: "5s"} },
	})
}

// NodeReady asks for a node's Ready condition.
type NodeReady struct {
	Node    string `json:"node,omitempty" refers:"node" jsonschema:"name of a node within the cluster, such as worker2. Default: the arm's node"`
	Status  string `json:"status" jsonschema:"the condition's status"`
	Reason  string `json:"reason,omitempty" jsonschema:"the condition's reason, in full. Default: any reason"`
	Message string `json:"message,omitempty" jsonschema:"regular expression that the condition's message must match; case matters. Default: any message"`
	Hold    string `json:"hold,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit"`
}

// Reads names node conditions.
func (c *NodeReady) Reads() []bundle.Kind { return []bundle.Kind{bundle.Nodes} }

// Choices lists the statuses of a condition.
func (c *NodeReady) Choices() map[string][]string {
	return map[string][]string{"status": {"True", "False", "Unknown"}}
}

// Validate refuses a status that doesn't exist, a bad pattern and a bad duration.
func (c *NodeReady) Validate() error {
	if !slices.Contains(c.Choices()["status"], c.Status) {
		return fmt.Errorf("status is %q (want True, False or Unknown)", c.Status)
	}
	if _, err := regexp.Compile(c.Message); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return question.Positive("hold", c.Hold)
}

// Eval compares every state that the nodes had in the last stretch of the window with the wanted one. The state that a
// node had when the stretch began counts, too. One other state decides that the answer is False.
func (c *NodeReady) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.wanted())
	if !ok {
		return q.Finding
	}
	recorded := q.Arm
	if c.Node != "" {
		recorded = RecordedUnder(v, bundle.Nodes, q.Arm)
	}
	all, last, doubt := question.ReadLast[bundle.NodeStatus](
		q,
		bundle.Nodes,
		recorded,
		question.Duration(c.Hold),
	)
	if doubt != nil {
		return q.Unknown(doubt)
	}
	records, among := c.statusesOfNode(v, q.Arm, all)
	if len(records) == 0 && c.Node != "" {
		return q.Unknown(
			check.Doubt(
				check.NotRecorded,
				"no condition of a node %s was recorded (there are those of %s)",
				c.Node,
				strings.Join(among, ", "),
			),
		)
	}
	held := NodeStatesIn(records, last)
	if len(held) == 0 {
		return q.Unknown(
			check.Doubt(
				check.NotRecorded,
				"no condition of the node was recorded by %s",
				question.Clock(last.End),
			),
		)
	}
	newest := held[len(held)-1]
	q.Met, q.Seen, q.Detail = check.True, state(newest), newest.Message
	re := regexp.MustCompile(c.Message) // Validate has compiled it
	for _, r := range held {
		if r.Status != c.Status || c.Reason != "" && r.Reason != c.Reason || !re.MatchString(r.Message) {
			q.Met, q.Differs = check.False, append(q.Differs, question.Clock(r.Time)+": "+state(r))
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	return q.Throughout(last, question.Duration(c.Hold))
}

// statusesOfNode returns the records about the node in the spec, and the names of all nodes that have records.
func (c *NodeReady) statusesOfNode(
	v bundle.View,
	arm string,
	all []bundle.NodeStatus,
) (out []bundle.NodeStatus, among []string) {
	for _, r := range all {
		among = question.Union(among, r.Node)
	}
	if c.Node == "" {
		return all, among
	}
	full := FullNodeName(v, arm, c.Node, among)
	return slices.DeleteFunc(slices.Clone(all),
		func(r bundle.NodeStatus) bool { return full == "" || r.Node != full }), among
}

func (c *NodeReady) wanted() string {
	wanted := "Ready=" + c.Status
	if c.Reason != "" {
		wanted += ", reason " + c.Reason
	}
	if c.Message != "" {
		wanted += ", message like " + c.Message
	}
	if c.Node != "" {
		wanted = c.Node + " " + wanted
	}
	return wanted + " for the last " + c.Hold
}

func state(r bundle.NodeStatus) string {
	return fmt.Sprintf("Ready=%s, reason %s, message %q", r.Status, r.Reason, r.Message)
}

// NodeStatesIn lists the state that each node had when the window began and every later state in the window, in order
// of time.
func NodeStatesIn(all []bundle.NodeStatus, w bundle.Window) []bundle.NodeStatus {
	byNode := map[string][]bundle.NodeStatus{}
	for _, r := range all {
		switch {
		case r.Time.After(w.End):
		case !r.Time.After(w.Start):
			byNode[r.Node] = []bundle.NodeStatus{r}
		default:
			byNode[r.Node] = append(byNode[r.Node], r)
		}
	}
	out := slices.Concat(slices.Collect(maps.Values(byNode))...)
	slices.SortFunc(out, func(a, b bundle.NodeStatus) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// RecordedUnder returns the arm under which a kind of evidence is recorded for an arm's whole cluster: bundle.Shared if
// arms share the cluster, else the arm itself.
func RecordedUnder(v bundle.View, kind bundle.Kind, arm string) string {
	if len(v.Artifacts(bundle.Query{Kind: kind, Arm: bundle.Shared})) > 0 {
		return bundle.Shared
	}
	return arm
}

// FullNodeName finds a node's full name by its name relative to the arm's cluster. The cluster's name is that of the
// run, followed by that of the arm if the arm has the cluster to itself. FullNodeName returns "" if there is no such
// node, even if another node's name ends alike.
func FullNodeName(v bundle.View, arm, relative string, among []string) string {
	run := v.World().Run
	for _, full := range []string{run + "-" + relative, run + "-" + arm + "-" + relative} {
		if run != "" && slices.Contains(among, full) {
			return full
		}
	}
	return ""
}
