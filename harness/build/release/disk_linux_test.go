package release_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/internal/disktest"
)

// A full disk is no answer to whether a program is published: a run must not build all of its programs for it.
func TestAFullDiskIsNotTakenForAProgramThatIsNotPublished(t *testing.T) {
	dir := disktest.Small(t, "1")
	if dir == "" {
		return
	}
	raw := append(program(t, "kube-apiserver", version), make([]byte, 2<<20)...)
	asFile, asImage := serve(t), serve(t)
	asFile.file("kube-apiserver", raw)
	asImage.image(t, "kube-apiserver:"+version, "kube-apiserver", runtime.GOARCH, raw)
	store, err := cache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, m := range []*mirror{asFile, asImage} {
		from, err := release.New(release.Options{Mirror: m.URL})
		if err != nil {
			t.Fatal(err)
		}
		_, err = from.Get(t.Context(), store, "kube-apiserver", version)
		var full *cache.FullError
		if !errors.As(err, &full) || full.Disk.Folder != dir || errors.As(err, new(*release.Error)) {
			t.Errorf("on a full disk: %v, want a *cache.FullError of %s and no *release.Error", err, dir)
		}
		for _, left := range []string{"entries", "scratch"} {
			if of, err := filepath.Glob(filepath.Join(dir, left, "*", "*")); err != nil || len(of) != 0 {
				t.Errorf("%q is left (%v)", of, err)
			}
		}
	}
	disktest.Grow(t, dir, "32")
	for _, m := range []*mirror{asFile, asImage} {
		from, err := release.New(release.Options{Mirror: m.URL})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := from.Get(t.Context(), store, "kube-apiserver", version); err != nil || got.SHA256 != sum(raw) {
			t.Errorf("with more room: %+v, %v", got, err)
		}
	}
}
