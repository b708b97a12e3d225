package check

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "nodeReady",
		Doc: "The Ready condition of the cell's node or of a named one, as the API server shows it, through the last stretch of the window.\n\n" +
			"hold says for how long before the end of the window it must have been so without interruption. A node whose kubelet stopped reporting " +
			"is Unknown, which is a status of its own. A named node is one of the cell's cluster, whoever it belongs to: the collector leases looks at all.",
		Example: "name: node-not-ready\nkind: nodeReady\nphase: recovery\nspec:\n  status: \"False\"\n  reason: KubeletNotReady\n  message: ^PLEG is not healthy\n",
		New:     func() Check { return &NodeReady{Hold: "5s"} },
	})
}

// NodeReady asks for a node's Ready condition.
type NodeReady struct {
	Node    string `json:"node,omitempty" jsonschema:"a node's name relative to the cluster, worker2, instead of the cell's own"`
	Status  string `json:"status" jsonschema:"True, False or Unknown"`
	Reason  string `json:"reason,omitempty" jsonschema:"the condition's reason, whole"`
	Message string `json:"message,omitempty" jsonschema:"a regular expression that the condition's message must match"`
	Hold    string `json:"hold,omitempty" jsonschema:"for how long before the end of the window: a duration with its unit"`
}

// Reads names node conditions.
func (c *NodeReady) Reads() []bundle.Kind { return []bundle.Kind{bundle.Nodes} }

// NeedsNodes names the node, if it is.
func (c *NodeReady) NeedsNodes() []string {
	if c.Node == "" {
		return nil
	}
	return []string{c.Node}
}

// Validate refuses a status that doesn't exist, a message that is no pattern, and a stretch that is none.
func (c *NodeReady) Validate() error {
	if !slices.Contains([]string{"True", "False", "Unknown"}, c.Status) {
		return fmt.Errorf("status is %q (want True, False or Unknown)", c.Status)
	}
	if _, err := regexp.Compile(c.Message); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	return positive("hold", c.Hold)
}

// Eval looks at all states that each of the cell's nodes had in the last stretch of the window, the one it began with included. The stretch
// ends where the node was last looked at, so that all of it was watched. One other state is decisive; holding needs the whole stretch.
func (c *NodeReady) Eval(v bundle.View, s Scope) Finding {
	wanted := c.wanted()
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	hold, _ := time.ParseDuration(c.Hold) // Validate has read it
	re := regexp.MustCompile(c.Message)   // and compiled it
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	last := bundle.Window{Start: later(w.Start, w.End.Add(-hold)), End: w.End}
	cell := s.Cell
	if c.Node != "" {
		cell = ofCluster(v, bundle.Nodes, s.Cell)
	}
	st := read[bundle.NodeStatus](v, bundle.Nodes, cell, last)
	if st.doubt != "" {
		return unknown(wanted, st.doubt, st.paths)
	}
	if st.last.Before(last.End) {
		last.End = st.last
		last.Start = later(w.Start, last.End.Add(-hold))
	}
	records, among := c.of(v, s.Cell, st.records)
	if len(records) == 0 && c.Node != "" {
		return unknown(wanted, fmt.Sprintf("no condition of a node %s was recorded (there are those of %s)", c.Node, strings.Join(among, ", ")), st.paths)
	}
	held := holding(records, last)
	if len(held) == 0 {
		return unknown(wanted, "no condition of the node was recorded by "+last.End.UTC().Format("15:04:05"), st.paths)
	}
	newest := held[len(held)-1]
	f := Finding{Met: Met, Wanted: wanted, Evidence: st.paths, Detail: newest.Message, Seen: state(newest)}
	for _, r := range held {
		if r.Status == c.Status && (c.Reason == "" || r.Reason == c.Reason) && re.MatchString(r.Message) {
			continue
		}
		f.Met = NotMet
		f.Differs = append(f.Differs, r.Time.UTC().Format("15:04:05")+": "+state(r))
	}
	f.Differs = few(f.Differs)
	if so := last.End.Sub(last.Start); f.Met == Met && so < hold {
		return unknown(wanted, fmt.Sprintf("%s, but for %s only", f.Seen, max(so, 0).Round(100*time.Millisecond)), st.paths)
	}
	return f
}

// of are the records that are about the node that is meant, and the names of all nodes that there are any of.
func (c *NodeReady) of(v bundle.View, cell string, all []bundle.NodeStatus) (out []bundle.NodeStatus, among []string) {
	for _, r := range all {
		if !slices.Contains(among, r.Node) {
			among = append(among, r.Node)
		}
	}
	if c.Node == "" {
		return all, among
	}
	full := nodeNamed(v, cell, c.Node, among)
	return slices.DeleteFunc(slices.Clone(all), func(r bundle.NodeStatus) bool { return full == "" || r.Node != full }), among
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

// holding is, in order of time, the state that each node had when the window began and all that came up within it.
func holding(all []bundle.NodeStatus, w bundle.Window) []bundle.NodeStatus {
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
