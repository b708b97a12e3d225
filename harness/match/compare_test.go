package match_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/match"
)

// unzipped is a dump of the test data: of a process that was well, and none of those that the baselines were made of.
func unzipped(t *testing.T, component string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "well", component+".txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// leaking is n goroutines more, of a function and a state that nobody knows.
func leaking(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "goroutine %d [chan send]:\nk8s.io/kubernetes/pkg/leak.(*Leak[...]).Send.func%d(0x1)\n\t/leak.go:1 +0x1\n"+
			"created by k8s.io/kubernetes/pkg/leak.New in goroutine 1\n\t/leak.go:2 +0x1\n\n", 9_000_000+i, i%3+1)
	}
	return b.String()
}

// A process that is well has nothing unusual beside another one, and of one that leaks the leak is named first.
func TestBesideHealthy(t *testing.T) {
	const build = "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v%s\"} 1\n"
	for component, of := range map[string]struct{ metrics, version, other string }{
		"kube-apiserver": {build, "1.34.4", "1.27.3"}, "kube-controller-manager": {build, "1.34.4", "1.27.3"},
		"kube-scheduler": {build, "1.34.4", "1.27.3"},
		"etcd":           {"# TYPE etcd_server_version gauge\netcd_server_version{server_version=\"%s\"} 1\n", "3.6.5", "3.5.9"},
	} {
		t.Run(component, func(t *testing.T) {
			well := unzipped(t, component)
			r := run(t, nil, files(t, map[string]string{component + "/stacks.txt": well, component + "/metrics.txt": fmt.Sprintf(of.metrics, of.version)}))
			if u := r.Unexplained; len(u.Compared) > 0 || len(u.AsUsual) != 1 || !strings.HasSuffix(u.AsUsual[0], "stacks.txt:1") {
				t.Errorf("a process that is well: %+v, as usual %q", u.Compared, u.AsUsual)
			}
			for version, differs := range map[string]string{of.version: "", of.other: "there is none of v" + of.other} {
				r := run(t, nil, files(t, map[string]string{component + "/stacks.txt": well + "\n" + leaking(50),
					component + "/metrics.txt": fmt.Sprintf(of.metrics, version)}))
				if len(r.Unexplained.Compared) != 1 {
					t.Fatalf("a leak: %+v", r.Unexplained)
				}
				c := r.Unexplained.Compared[0]
				if u := c.Unusual[0]; u.At != "k8s.io/kubernetes/pkg/leak.Leak.Send" || u.Count != 50 || u.Usual != 0 || u.State != "chan send" {
					t.Errorf("the first is %+v", u)
				}
				if c.Component != component || c.Version != "v"+version || c.Differs != differs || !strings.Contains(c.With, component+" v"+of.version) {
					t.Errorf("it is %s %s beside %s, but %q", c.Component, c.Version, c.With, c.Differs)
				}
			}
		})
	}
}

// Nothing is claimed of a component without a baseline, nor where it isn't known whose dump it is.
func TestBesideNothing(t *testing.T) {
	other := "goroutine 1 [select]:\nk8s.io/kubernetes/cmd/kube-other/app.Run(0x1)\n\t/a.go:1 +0x1\n\n"
	r := run(t, nil, files(t, map[string]string{"a.txt": other + leaking(50), "b.txt": leaking(50)}))
	if u := r.Unexplained; len(u.Compared)+len(u.AsUsual) > 0 {
		t.Errorf("%+v, as usual %q", u.Compared, u.AsUsual)
	}
	if len(r.Unexplained.Goroutines) == 0 {
		t.Error("the groups themselves are not told")
	}
}

// The leak of a judged trial is what its vulnerable arm has beyond healthy processes, which were of other clusters; its
// fixed arm has nothing.
func TestBesideOwnRun(t *testing.T) {
	r := run(t, nil, "../report/testdata/earlier/apiserver-goroutine-leak.tar.zst")
	if len(r.Unexplained.Compared) != 1 || len(r.Unexplained.AsUsual) != 1 {
		t.Fatalf("compared %+v, as usual %q", r.Unexplained.Compared, r.Unexplained.AsUsual)
	}
	c := r.Unexplained.Compared[0]
	if u := c.Unusual[0]; u.At != "k8s.io/apiserver/pkg/registry/generic/registry.Store.DeleteCollection" || u.State != "chan send" || u.Count != 6 {
		t.Errorf("the first is %+v", u)
	}
	if !strings.Contains(c.Where, "arm vulnerable") || c.Differs != "it is a build with changes: mutated dropCase" ||
		!strings.Contains(r.Unexplained.AsUsual[0], "arm fixed") {
		t.Errorf("it is in %s, but %q; as usual is %q", c.Where, c.Differs, r.Unexplained.AsUsual)
	}
}

// Baselines are made of what is known to have been well: of a judged trial only the baseline of the arm without
// changes.
func TestWell(t *testing.T) {
	judged := map[string]bool{"vulnerable": true, "fixed": true}
	for _, c := range []struct {
		name   string
		judged map[string]bool
		dumps  int
		left   string
	}{
		{"both were well", judged, 2, "arm vulnerable left out: it has changes"},
		{"none was", nil, 0, "arm fixed left out: it has changes, or wasn't judged to be well"},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, left, err := match.Well(t.Context(), []string{"../report/testdata/earlier/apiserver-goroutine-leak.tar.zst"}, "(devel)",
				func(*match.Trial) (map[string]bool, error) { return c.judged, nil })
			if err != nil {
				t.Fatal(err)
			}
			dumps := 0
			for _, b := range all {
				if b.Component != "kube-apiserver" || b.Of[0].Version != "v1.34.4" || b.Of[0].Processes != 1 {
					t.Errorf("it is of %s, %+v", b.Component, b.Of)
				}
				dumps += b.Of[0].Dumps
			}
			if dumps != c.dumps || !strings.Contains(fmt.Sprint(left), c.left) {
				t.Errorf("%d dumps; left out: %v", dumps, left)
			}
		})
	}
}

// A file with etcd's version and another component's is the other's: etcd's would gate its incidents.
func TestEtcdsVersionIsItsOwn(t *testing.T) {
	const both = "# TYPE etcd_server_version gauge\netcd_server_version{server_version=\"3.6.5\"} 1\n" +
		"# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=\"v1.22.17\"} 1\n"
	r := run(t, nil, files(t, map[string]string{"kube-apiserver/stacks.txt": unzipped(t, "kube-apiserver") + leaking(50), "kube-apiserver/metrics.txt": both}))
	if c := r.Unexplained.Compared; len(c) != 1 || c[0].Version != "v1.22.17" {
		t.Errorf("the API server is compared as %+v", c)
	}
}
