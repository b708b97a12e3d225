package conformance_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() {
	checks.add(checkCase{evidence: asksInVain}, "writesTried")
}

// asksInVain writes audit lines of the arm's agent. Each records a write that was refused and changed nothing.
func asksInVain(t *testing.T, s *staged) {
	s.often(func(n int) {
		write(t, s.files[s.auditLog()], fmt.Sprintf(`{"kind":"Event","auditID":"vain-%d","stage":"ResponseComplete","verb":"update","user":{"username":"agent-%s"},`+
			`"objectRef":{"resource":"bundledeployments","apiGroup":"fleet.cattle.io","subresource":"status","namespace":%q,"name":"a"},`+
			`"responseStatus":{"code":409},"stageTimestamp":%q}`, n, arm, ownNamespace, time.Now().UTC().Format(metav1.RFC3339Micro)))
	})
}
