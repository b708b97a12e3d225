package kinds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/kinds"
)

type lines struct {
	Component string `json:"component" refers:"log,status"`
}

type asking struct {
	lines
	Lines  *lines `json:"lines,omitempty"`
	Absent *lines `json:"absent,omitempty"`
	Many   []struct {
		Load string `json:"load" refers:"load"`
	} `json:"many,omitempty"`
	Metrics []string `json:"metrics" refers:"metric"`
	Hold    string   `json:"hold" refers:"stretch"`
	Plain   string   `json:"plain"`
	secret  lines
}

func (*asking) References() []kinds.Reference {
	return []kinds.Reference{{To: kinds.ToObjects, Name: "pods"}}
}

// A kind says by the tags of its fields what they refer to, however deep they lie.
func TestReferencesOfASpec(t *testing.T) {
	spec := &asking{lines: lines{"etcd"}, Lines: &lines{"kubelet"}, Metrics: []string{"a", "", "b"}, Plain: "x", secret: lines{"y"}}
	spec.Many = append(spec.Many, struct {
		Load string `json:"load" refers:"load"`
	}{"pods"})
	want := []kinds.Reference{
		{To: "log", Name: "kubelet", Path: []string{"lines", "component"}}, {To: "status", Name: "kubelet", Path: []string{"lines", "component"}},
		{To: "load", Name: "pods", Path: []string{"many", "0", "load"}},
		{To: "metric", Name: "a", Path: []string{"metrics", "0"}}, {To: "metric", Name: "b", Path: []string{"metrics", "2"}},
		{To: "objects", Name: "pods"},
	}
	if diff := cmp.Diff(want, kinds.References(spec)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
