package conformance_test

import "testing"

func init() {
	collectors.add(collectorCase{
		spec: `{"interval":"200ms"}`, lay: layPodList, breaks: func(_ *testing.T, s *subject) { s.nodes[0].kill() },
	}, "interposer")
}

// layPodList makes the kubelet list one pod with a container that runs.
func layPodList(_ *testing.T, s *subject) {
	s.answers("/pods", func() string {
		return `{"items":[{"metadata":{"namespace":"default","name":"a"},"status":{"containerStatuses":[{"name":"main","state":{"running":{}}}]}}]}`
	})
}
