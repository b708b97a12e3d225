package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/kube-relapse/relapse/harness/artifacts"
)

// An image volume has what an image has below /relapse, and starts this program, whose copy gets its arguments.
func TestTheProgramsOfAnImageVolume(t *testing.T) {
	r, _, _ := farRun(t)
	dir := t.TempDir()
	self, subject := filepath.Join(dir, "self"), filepath.Join(dir, "subject")
	for file, text := range map[string]string{self: "#!/bin/sh\necho \"$0 got $*\"\n", subject: "a build"} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	load := cargo{carried: &artifacts.Carried{}, files: map[string]string{programsDir + "/1/etcd": subject}}
	img, err := assembleVolume(self, load, r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := registryOf(r.Job).push(t.Context(), runName, img)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := registryOf(r.Job).tagged(digest)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := pulled.ConfigFile(); err != nil || c.OS != runtime.GOOS || c.Architecture != runtime.GOARCH {
		t.Errorf("it is for no platform: %+v, %v", c, err)
	}
	layers, err := pulled.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	mounted := filepath.Join(root, "relapse")
	for _, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if err := unpack(in, mounted, os.O_EXCL); err != nil {
			t.Fatal(err)
		}
	}
	files := contents(t, mounted)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"bin/relapse", "programs/1/etcd", "run/carried.json", "run/plan.json"}, names); diff != "" {
		t.Errorf("mounted are (-want +got):\n%s", diff)
	}
	if files["programs/1/etcd"] != "a build" || !strings.Contains(files["run/plan.json"], `"scenario": "x"`) {
		t.Errorf("they have %q", files)
	}

	s := spec()
	s.Programs = "x"
	c := Job(s).Spec.Template.Spec.Containers[0]
	if err := os.Chmod(filepath.Join(mounted, "bin", "relapse"), 0o755); err != nil { // unpack is for bundles, which have no programs
		t.Fatal(err)
	}
	if err := os.MkdirAll(root+workDir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer(programFile, root+programFile, workDir+"/", root+workDir+"/").Replace(c.Command[2])
	out, err := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, c.Command[3]}, c.Args...)...).CombinedOutput()
	if want := root + "/trial/relapse-recorder got recorder --run relapse-1a2b3c4d --registry registry.test/relapse\n"; err != nil || string(out) != want {
		t.Errorf("it says %q, %v; want %q", out, err, want)
	}
}

// Nodes pull the base by themselves, so what they get has to be what was looked at here.
func TestABaseIsPinned(t *testing.T) {
	base := mutate.MediaType(empty.Image, "application/vnd.oci.image.manifest.v1+json")
	digest, err := base.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"debian:trixie-slim":                 "index.docker.io/library/debian@" + digest.String(),
		"registry.test:5000/b/c":             "registry.test:5000/b/c@" + digest.String(),
		"registry.test/b@" + digest.String(): "registry.test/b@" + digest.String(),
	} {
		if got, err := pinned(ref, base, Registry{Repository: "registry.test/relapse"}); err != nil || got != want {
			t.Errorf("%s is %s, %v; want %s", ref, got, err, want)
		}
	}
}
