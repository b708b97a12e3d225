package conformance_test

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
)

func init() {
	checks.add(checkCase{evidence: keepsHeap}, "retainedHeap", "allocShare")
	checks.add(checkCase{evidence: spendsCPU}, "cpuShare")
}

// keepsHeap makes the kubelet's heap one of 24 MiB, all from one function.
func keepsHeap(t *testing.T, s *staged) {
	t.Helper()
	p := profileOf(3, 24<<20, 3, 24<<20)
	p.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"},
		{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}}
	s.profiled(t, "/debug/pprof/heap", p)
}

// spendsCPU makes the kubelet's CPU profile one of a single stack.
func spendsCPU(t *testing.T, s *staged) {
	t.Helper()
	p := profileOf(3, 24<<20)
	p.SampleType, p.DurationNanos = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, 1e6
	s.profiled(t, "/debug/pprof/profile", p)
}

// profileOf returns a profile with one sample, of one function.
func profileOf(values ...int64) *profile.Profile {
	f := &profile.Function{ID: 1, Name: "k8s.io/kubernetes/pkg/kubelet/pleg.(*GenericPLEG).Relist"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	return &profile.Profile{
		Sample:   []*profile.Sample{{Value: values, Location: []*profile.Location{l}}},
		Location: []*profile.Location{l}, Function: []*profile.Function{f},
	}
}

// profiled makes an endpoint of the kubelet answer with a profile.
func (s *staged) profiled(t *testing.T, path string, p *profile.Profile) {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	s.answers(path, b.String)
}
