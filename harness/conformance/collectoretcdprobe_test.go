package conformance_test

import "testing"

func init() {
	collectors.add(collectorCase{
		spec: `{"interval":"200ms"}`, lay: func(t *testing.T, s *subject) { layEtcd(t, s.world) }, breaks: powerOff,
	}, "etcdProbe")
}
