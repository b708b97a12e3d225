package conformance_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
)

func init() {
	checks.add(checkCase{evidence: notLive}, "healthy")
}

// notLive makes one of the kubelet's endpoints say that the kubelet isn't healthy.
func notLive(_ *testing.T, s *staged) {
	s.Component("worker", "kubelet").Answer("/livez", func(string) ([]byte, error) {
		return nil, &cluster.StatusError{Path: "/livez", Code: 500, Status: "500 Internal Server Error"}
	})
}
