package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/transfer"
	"github.com/kube-relapse/relapse/harness/transfer/carry"
	"github.com/kube-relapse/relapse/internal/clustertest"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// carries is a provider whose clusters start from one image, "node:1", and that creates none.
type carries struct {
	clustertest.Provider
	loaded []cluster.Image
	text   string
}

func (*carries) Prepare(context.Context, cluster.Needs) (map[string]string, error) { return nil, nil }

func (*carries) Create(context.Context, string, cluster.Topology) (cluster.Cluster, error) {
	return nil, errors.New("a cluster was created")
}

func (*carries) Images(n cluster.Needs) (out []cluster.Image) {
	for _, v := range n.Versions() {
		out = append(out, cluster.Image{Version: v, Mode: "auto", Ref: "node:1", ID: "sha256:1", Origin: "assembled"})
	}
	return out
}

func (*carries) Save(_ context.Context, i cluster.Image, w io.Writer) error {
	_, err := io.WriteString(w, "archive of "+i.Ref)
	return err
}

func (p *carries) Load(_ context.Context, images []cluster.Image, r io.Reader) error {
	text, err := io.ReadAll(r)
	p.loaded, p.text = append(p.loaded, images...), string(text)
	return err
}

// agentPlan is a plan of one trial whose only arm is a small fixture of root: nothing else builds quickly.
func agentPlan(t *testing.T, root string) *plan.Plan {
	t.Helper()
	for name, text := range map[string]string{"go.mod": "module example.org/agent\n\ngo 1.24\n", "main.go": "package main\n\nfunc main() {}\n"} {
		file := filepath.Join(root, "fixtures", "agent", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Load("../../scenarios/scheduler-nil-pointer/scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{Arms: []string{"fixed"}, Provider: providers.Kind})
	if err != nil {
		t.Fatal(err)
	}
	p.Trials[0].Arms[0].Source = scenario.Source{Fixture: "agent"}
	return p
}

// What one host exports another one imports, and then takes all of it from its cache without Go and without a network.
func TestExportAndImport(t *testing.T) {
	root, here, there := t.TempDir(), t.TempDir(), t.TempDir()
	p := &carries{}
	planned, o := agentPlan(t, root), artifacts.Options{Root: root, CacheDir: here}
	open := func() *artifacts.Artifacts {
		made, err := artifacts.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made.Close() })
		return made
	}
	makes := func() ([]harness.Built, error) {
		return harness.Build(t.Context(), harness.Options{Plan: planned, Provider: p, Artifacts: open()})
	}
	parts, err := transfer.Gather(t.Context(), planned, p, o)
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	made, err := makes()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var archive bytes.Buffer
	about, err := transfer.Export(t.Context(), &archive, dir, carry.Manifest{Runs: []string{"relapse run x"}}, []*transfer.Parts{parts, parts})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 || len(about.Images) != 1 || about.Toolchain.GOVERSION == "" {
		t.Errorf("it left %v and exported %+v", left, about)
	}

	engine := func() (cluster.Carrier, error) { return p, nil }
	for n, want := range []transfer.Arrived{{Added: 1}, {Kept: 1}} {
		a, err := transfer.Import(t.Context(), bytes.NewReader(archive.Bytes()), there, engine)
		if err != nil || a.Added != want.Added || a.Kept != want.Kept || a.NoImages != nil || len(p.loaded) != n+1 || p.loaded[n].Version != planned.Versions()[0] || p.text != "archive of node:1" {
			t.Fatalf("import %d: %+v, %v; the engine loaded %+v, %q", n+1, a, err, p.loaded, p.text)
		}
	}
	var notes []string
	o.CacheDir, o.Events = there, event.NewStream(event.SinkFunc(func(e event.Event) { notes = append(notes, e.Message) }))
	t.Setenv("GOPROXY", "off")
	t.Setenv("PATH", t.TempDir())
	got, err := makes()
	if err != nil || got[0].Digest != made[0].Digest || !strings.HasPrefix(got[0].Path, there) {
		t.Errorf("from the imported cache: %+v, %v; want %s", got, err, made[0].Digest)
	}
	if want := "all programs were imported, built by " + about.Toolchain.GOVERSION + "; nothing is built here"; !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("it said %q, and not %s", notes, want)
	}
	if f := open().Forecast(t.Context(), planned, p, planned.Needs(nil)); len(f.Missing) != 0 {
		t.Errorf("it foresees %+v", f)
	}

	// What was changed is needed, and nobody has it.
	if err := os.WriteFile(filepath.Join(root, "fixtures/agent/main.go"), []byte("package main\n\nfunc main() { println() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := makes(); err == nil || !strings.Contains(err.Error(), build.ErrNoGo.Error()) {
		t.Errorf("what isn't in the archive: %v", err)
	}
	if want := "what was imported, built by " + about.Toolchain.GOVERSION + ", isn't all that is needed; how long it takes is unknown"; !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("it said %q, and not %s", notes, want)
	}
}

// Nothing of a damaged archive gets into the cache, and an engine that isn't there keeps nothing else out.
func TestImportsThatFail(t *testing.T) {
	root, there := t.TempDir(), t.TempDir()
	parts, err := transfer.Gather(t.Context(), agentPlan(t, root), &carries{}, artifacts.Options{Root: root, CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer parts.Close()
	var archive bytes.Buffer
	if _, err := transfer.Export(t.Context(), &archive, t.TempDir(), carry.Manifest{}, []*transfer.Parts{parts}); err != nil {
		t.Fatal(err)
	}
	none := errors.New("no docker command on PATH")
	engine := func() (cluster.Carrier, error) { return nil, none }
	_, err = transfer.Import(t.Context(), bytes.NewReader(archive.Bytes()[:archive.Len()-20]), there, engine)
	var damaged *carry.Error
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("an archive without its end: %v", err)
	}
	for _, sub := range []string{"entries/*", "scratch/*/*", "toolchains.json"} {
		if found, _ := filepath.Glob(filepath.Join(there, sub)); len(found) > 0 {
			t.Errorf("it left %v", found)
		}
	}
	if a, err := transfer.Import(t.Context(), bytes.NewReader(archive.Bytes()), there, engine); err != nil || a.Added != 1 || !errors.Is(a.NoImages, none) {
		t.Errorf("without an engine: %+v, %v", a, err)
	}
}
