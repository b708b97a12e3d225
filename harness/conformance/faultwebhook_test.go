package conformance_test

import "testing"

func init() {
	faults.add(faultCase{lay: layWebhooks((*webhookAPI).answers)}, "webhook")
}

// answers tells whether both webhooks for a node answer by the rule that the suite gives them. Those by which the fault is
// seen allow everything.
func (a *webhookAPI) answers(t *testing.T, n *criNode) bool {
	t.Helper()
	byRule := 0
	for _, c := range a.configs(n.Name()) {
		if said, err := review(t.Context(), c); err == nil && said["arm"] == arm { // an error is a server that has ended
			byRule++
		}
	}
	return byRule == 2
}
