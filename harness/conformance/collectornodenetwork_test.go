package conformance_test

import (
	"strings"
	"testing"
)

func init() {
	collectors.add(collectorCase{spec: `{"interval":"200ms"}`, lay: layNetwork, breaks: powerOff}, "nodeNetwork")
}

// layNetwork gives the node the programs that list its addresses and rules. They print 3 addresses and 400 rules.
func layNetwork(t *testing.T, s *subject) {
	t.Helper()
	s.program(t, "ip", strings.Repeat("7: eth0    inet 198.19.0.1/32 scope global eth0\n", 3))
	s.program(t, "iptables-legacy-save", "")
	s.program(t, "iptables-nft-save", strings.Repeat("-A KUBE-NODEPORTS -p tcp -j KUBE-EXT-A\n", 400))
}
