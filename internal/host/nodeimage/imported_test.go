package nodeimage_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

// An image that was saved on one host is found on another, by what it was got for, whether or not it has a name there.
func TestAnImportedImageIsFound(t *testing.T) {
	for _, tt := range []struct {
		name, ref, origin, want string
		modes, others           []string // by which it is found, and by which it isn't
	}{
		{"official", pinned, "official", "relapse/node:imported-abc0000000ff", []string{"auto", "official"}, []string{"assembled", "mine/node:1"}},
		{"assembled", "relapse/node:v1.34.4-0123456789ab", "assembled", "relapse/node:v1.34.4-0123456789ab", []string{"auto", "assembled"}, []string{"official"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := newFake(), newFake()
			const id = "sha256:abc0000000ff99"
			here.images[tt.ref] = fakeImage{ID: id, Version: "v1.34.9"}
			var archive bytes.Buffer
			from, _ := newStore(t, here)
			if err := from.Save(t.Context(), tt.ref, &archive); err != nil {
				t.Fatal(err)
			}
			to, _ := newStore(t, there)
			as := []nodeimage.Imported{{Version: "v1.34.4", Mode: "auto", From: id, Origin: tt.origin}, {Version: "v1.34.8", Mode: "auto", From: id, Origin: tt.origin}}
			for range 2 { // the second time there is nothing to do
				if err := to.Load(t.Context(), as, bytes.NewReader(archive.Bytes())); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(slices.DeleteFunc(there.commands, func(c string) bool { return c != "load" })); n != 1 {
				t.Errorf("the engine loaded %d archives, want 1", n)
			}
			for _, mode := range tt.modes {
				img, ok, err := to.Imported(t.Context(), "v1.34.8", mode)
				if err != nil || !ok || img.Ref != tt.want || img.ID != id || img.Origin != tt.origin || !img.Cached {
					t.Errorf("in mode %s: %+v, %t, %v; want %s", mode, img, ok, err, tt.want)
				}
			}
			for _, mode := range tt.others {
				if img, ok, err := to.Imported(t.Context(), "v1.34.8", mode); ok || err != nil {
					t.Errorf("in mode %s: %+v, %v; want none", mode, img, err)
				}
			}
			if _, ok, _ := to.Imported(t.Context(), "v1.34.5", "auto"); ok {
				t.Error("it is taken for a version that it wasn't got for")
			}
			delete(there.images, tt.want)
			if _, ok, err := to.Imported(t.Context(), "v1.34.8", "auto"); ok || err != nil {
				t.Errorf("it is found where the engine has it no more: %v", err)
			}
		})
	}
}

// What the engine can't load is an error, and nothing is found afterwards.
func TestAnArchiveThatTheEngineRefuses(t *testing.T) {
	s, _ := newStore(t, newFake())
	err := s.Load(t.Context(), []nodeimage.Imported{{Version: "v1.34.4", Mode: "auto"}}, strings.NewReader("no archive"))
	if err == nil || !strings.HasPrefix(err.Error(), "loading a node image: ") {
		t.Errorf("it was loaded: %v", err)
	}
	if _, ok, err := s.Imported(t.Context(), "v1.34.4", "auto"); ok || err != nil {
		t.Errorf("it is found: %v", err)
	}
}
