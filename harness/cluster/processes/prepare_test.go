package processes_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/processes"
)

func TestCheck(t *testing.T) {
	p, dir := newProvider(t)
	if err := p.Check(t.Context(), cluster.Needs{}); err != nil {
		t.Error(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	if err := p.Check(t.Context(), cluster.Needs{}); err == nil || !strings.Contains(err.Error(), "shell: no sh on PATH, ") {
		t.Errorf("a host without a shell: %v", err)
	}
	t.Setenv("PATH", path)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := processes.New(processes.Options{Dir: filepath.Join(file, "below"), Supervisor: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	var host *cluster.HostError
	if err := p.Check(t.Context(), cluster.Needs{}); !errors.As(err, &host) || !strings.Contains(err.Error(),
		"folder of the clusters: mkdir ") || host.Hint == "" {
		t.Errorf("a folder that can't be: %v", err)
	}
}

// notes is a Builder that only notes down what it is asked for.
type notes struct{ asked []string }

func (n *notes) BuildPrograms(_ context.Context, _, version string, packages ...string) (map[string]string, error) {
	n.asked = append(n.asked, filepath.Base(packages[0])+"@"+version)
	return map[string]string{}, nil
}

func (n *notes) BuildFixture(context.Context, string) (string, error) { return "", nil }

// Only what the clusters run is built, and what arms bring along isn't.
func TestPrepareBuildsWhatIsRun(t *testing.T) {
	p, _ := newProvider(t)
	n := &notes{}
	needs := cluster.Needs{Topologies: []cluster.Topology{{Version: "v1.1.0"}, {Version: "v1.2.0"}, {Version: "v1.1.0"}},
		Builder: n, Arms: []string{"kube-apiserver"}}
	if _, err := p.Prepare(t.Context(), needs); err != nil {
		t.Fatal(err)
	}
	want := []string{"v3@" + component.EtcdVersion, "kube-controller-manager@v1.1.0", "kube-scheduler@v1.1.0",
		"kube-controller-manager@v1.2.0", "kube-scheduler@v1.2.0"}
	if !slices.Equal(n.asked, want) {
		t.Errorf("it asked for %q, want %q", n.asked, want)
	}
	seen, err := p.Foresee(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	var foreseen []string
	for _, x := range seen.Programs {
		foreseen = append(foreseen, filepath.Base(x.Packages[0])+"@"+x.Version)
	}
	if !slices.Equal(foreseen, want) {
		t.Errorf("it foresees %q, want %q", foreseen, want)
	}
	n.asked, needs.Arms, needs.Topologies = nil, []string{"etcd"}, needs.Topologies[:1]
	versions, err := p.Prepare(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"kube-apiserver@v1.1.0", "kube-controller-manager@v1.1.0", "kube-scheduler@v1.1.0"}; !slices.Equal(n.asked, want) || versions["etcd"] != "" {
		t.Errorf("beside arms of etcd it asked for %q and says %v, want %q and no version of etcd", n.asked, versions, want)
	}
	needs.Builder = nil
	if _, err := p.Prepare(t.Context(), needs); err == nil || !strings.Contains(err.Error(), "nothing can be built here") {
		t.Errorf("without a builder: %v", err)
	}
}
