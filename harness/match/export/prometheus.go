package export

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/expr"
	"github.com/kube-relapse/relapse/harness/check/objects"
)

// threshold matches the only form of expression that is a Prometheus query too: a metric's last or largest value
// compared with a number.
var threshold = regexp.MustCompile(
	`^metric\('([a-zA-Z_:][a-zA-Z0-9_:]*)'(?:, (\{[^}]*\}))?\)\.(?:last|max) (>=?) ([0-9.]+)$`,
)

// alert translates a check to an alert of Prometheus. It returns false if that is not possible.
func (r rule) alert(k check.Check) bool {
	switch k := k.(type) {
	case *expr.CEL:
		m := threshold.FindStringSubmatch(strings.TrimSpace(k.Expression))
		if m == nil {
			return false
		}
		var labels map[string]string
		if m[2] != "" && json.Unmarshal([]byte(strings.ReplaceAll(m[2], "'", `"`)), &labels) != nil {
			return false
		}
		r.recordLoss("it is asked of every process that has such a metric, and of each set of labels by itself")
		r.rule(m[1]+selector(labels)+" "+m[3]+" "+m[4], "0s")
	case *objects.NodeReady:
		if k.Status == "True" {
			return false
		}
		r.recordLoss("kube-state-metrics tells neither the reason %q nor the message %q", k.Reason, k.Message)
		r.rule(fmt.Sprintf(`kube_node_status_condition{condition="Ready",status=%q} == 1`, strings.ToLower(k.Status)), k.Hold)
	default:
		return false
	}
	return true
}

func selector(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", k, labels[k]))
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (r rule) rule(expr, hold string) {
	severity := "warning"
	if r.sign.Is == "decisive" {
		severity = "critical"
	}
	r.translation.alerts = append(r.translation.alerts, object{
		"alert": "Relapse" + camel(r.s.Metadata.Name) + camel(r.sign.Name), "expr": expr, "for": hold,
		"labels":      object{"severity": severity, "incident": r.s.Metadata.Name},
		"annotations": object{"description": r.message()},
	})
}

// camel returns a name in the style of Prometheus: pleg-deadlock becomes PlegDeadlock.
func camel(name string) string {
	var b strings.Builder
	for _, part := range strings.Split(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
