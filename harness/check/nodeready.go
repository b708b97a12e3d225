package check

import (
	"fmt"
	"regexp"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "nodeReady",
		Doc: "The Ready condition of the cell's node, as the API server shows it, through the last stretch of the window.\n\n" +
			"hold says for how long before the end of the window it must have been so without interruption. A node whose kubelet stopped reporting " +
			"is Unknown, which is a status of its own.",
		Example: "name: node-not-ready\nkind: nodeReady\nphase: recovery\nspec:\n  status: \"False\"\n  reason: KubeletNotReady\n  message: ^PLEG is not healthy\n",
		New:     func() Check { return &NodeReady{Hold: "5s"} },
	})
}

// NodeReady asks for a node's Ready condition.
type NodeReady struct {
	Status  string `json:"status" jsonschema:"True, False or Unknown"`
	Reason  string `json:"reason,omitempty" jsonschema:"the condition's reason, whole"`
	Message string `json:"message,omitempty" jsonschema:"a regular expression that the condition's message must match"`
	Hold    string `json:"hold,omitempty" jsonschema:"for how long before the end of the window: a duration with its unit"`
}

// Reads names node conditions.
func (c *NodeReady) Reads() []bundle.Kind { return []bundle.Kind{bundle.Nodes} }

// Eval looks at all states that held in the last stretch of the window, the one it began with included.
func (c *NodeReady) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("Ready=%s", c.Status)
	if c.Reason != "" {
		wanted += ", reason " + c.Reason
	}
	if c.Message != "" {
		wanted += ", message like " + c.Message
	}
	wanted += " for the last " + c.Hold
	re, err := regexp.Compile(c.Message)
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	hold, err := time.ParseDuration(c.Hold)
	if err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, ok := s.Window(v)
	if !ok {
		return unknown(wanted, "the phase "+s.Phase+" never began", nil)
	}
	w.Start = later(w.Start, w.End.Add(-hold))
	st := read[bundle.NodeStatus](v, bundle.Nodes, s.Cell, w)
	if st.doubt != "" {
		return unknown(wanted, st.doubt, st.paths)
	}
	held := holding(st.records, w)
	if len(held) == 0 {
		return unknown(wanted, "no condition of the node was recorded by "+w.End.UTC().Format("15:04:05"), st.paths)
	}
	last := held[len(held)-1]
	f := Finding{Met: Met, Wanted: wanted, Evidence: st.paths, Detail: last.Message,
		Seen: fmt.Sprintf("Ready=%s, reason %s, message %q", last.Status, last.Reason, last.Message)}
	for _, r := range held {
		if r.Status == c.Status && (c.Reason == "" || r.Reason == c.Reason) && re.MatchString(r.Message) {
			continue
		}
		f.Met = NotMet
		f.Differs = append(f.Differs, fmt.Sprintf("%s: Ready=%s, reason %s, message %q", r.Time.UTC().Format("15:04:05"), r.Status, r.Reason, r.Message))
	}
	f.Differs = few(f.Differs)
	return f
}

// holding is the state that the window began with and all that came up within it.
func holding(all []bundle.NodeStatus, w bundle.Window) []bundle.NodeStatus {
	var out []bundle.NodeStatus
	for _, r := range all {
		if r.Time.After(w.End) {
			break
		}
		if !r.Time.After(w.Start) {
			out = out[:0]
		}
		out = append(out, r)
	}
	return out
}
