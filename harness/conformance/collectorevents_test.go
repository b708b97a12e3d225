package conformance_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func init() {
	collectors.add(collectorCase{lay: layEvent, breaks: closeAPI}, "events")
}

func layEvent(_ *testing.T, s *subject) {
	s.API().AddEvent(&corev1.Event{Reason: "Rebooted", Message: "an event"})
}
