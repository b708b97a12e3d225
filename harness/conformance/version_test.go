package conformance_test

import (
	"path/filepath"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// otherVersions lists the scenarios whose clusters don't have the usual version, and why.
var otherVersions = map[string]string{
	"service-workers-stuck": "its controller is of v1.34, and may be one minor version older than its API server",
}

// All scenarios' clusters, except those in otherVersions, have the version that is the commands' default: a build
// takes twenty minutes on two cores.
func TestScenariosAreOfOneVersion(t *testing.T) {
	files, err := filepath.Glob("../../scenarios/*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios %v, error %v", files, err)
	}
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		name := s.Metadata.Name
		switch same := s.Spec.Version == cluster.DefaultVersion; {
		case !same && otherVersions[name] == "":
			t.Errorf("%s: its clusters are of %s, want %s, or a reason here", name, s.Spec.Version, cluster.DefaultVersion)
		case same && otherVersions[name] != "":
			t.Errorf("%s: its clusters are of %s like most, so there is no reason for another version", name, s.Spec.Version)
		}
	}
}
