package carry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// packed has two entries of a cache and an image. The program is large and can't be compressed, so that it can be cut in
// its middle.
func packed(t *testing.T) ([]byte, Manifest) {
	t.Helper()
	dir := t.TempDir()
	program := make([]byte, 1<<20)
	for i, x := 0, uint32(1); i < len(program); i++ {
		x = x*1664525 + 1013904223
		program[i] = byte(x >> 24)
	}
	for name, f := range map[string]struct {
		text []byte
		mode os.FileMode
	}{
		"build/bin/agent": {program, 0o755}, "build/result.json": {[]byte("{}"), 0o644}, "constants.json": {[]byte("7"), 0o644},
		"1.tar": {[]byte("an image"), 0o644},
	} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.text, f.mode)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	m, err := Pack(t.Context(), &out, Manifest{Relapse: "v1", Runs: []string{"relapse run x"}, Images: []cluster.Image{{Ref: "node:1", File: "images/1.tar"}}},
		[]Source{{"entries/build/aa", filepath.Join(dir, "build")}, {"entries/constants/bb/constants.json", filepath.Join(dir, "constants.json")},
			{"images/1.tar", filepath.Join(dir, "1.tar")}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), m
}

func TestAnArchiveHasWhatWasPacked(t *testing.T) {
	raw, _ := packed(t)
	to := t.TempDir()
	m, err := Unpack(t.Context(), bytes.NewReader(raw), to)
	if err != nil {
		t.Fatal(err)
	}
	if m.Relapse != "v1" || m.Platform != Platform() || len(m.Files) != 4 || m.Images[0].Ref != "node:1" || m.Runs[0] != "relapse run x" {
		t.Errorf("the manifest is %+v", m)
	}
	for name, mode := range map[string]os.FileMode{"entries/build/aa/bin/agent": 0o755, "entries/build/aa/result.json": 0o644} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %o", name, info, err, mode)
		}
	}
	if text, err := os.ReadFile(filepath.Join(to, "entries/constants/bb/constants.json")); err != nil || string(text) != "7" {
		t.Errorf("a packed file has %q, %v", text, err)
	}
}

// entry is a file of an archive that a test packs itself.
type entry struct {
	name, text string
	kind       byte
}

// repacked packs a manifest and files as they are, whether or not they go together.
func repacked(t *testing.T, m Manifest, files ...entry) []byte {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return compressed(t, append([]entry{{name: manifestName, text: string(text)}}, files...)...)
}

func compressed(t *testing.T, files ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o644, Typeflag: f.kind}
		if f.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.text))
		} else {
			h.Linkname, f.text = f.text, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sevenSum is the SHA-256 of "7".
const sevenSum = "7902699be42c8a8e46fbbb4501726517e86b22c56a189f7625a6da49081b2451"

// seven is a manifest of one file with the text "7".
func seven(name string) Manifest {
	return Manifest{Format: format, Platform: Platform(), Files: []File{{Name: name, Size: 1, SHA256: sevenSum}}}
}

// What is not as it was packed is refused, with the file and what was expected, and what a foreign archive asks for.
func TestDamagedArchivesAreRefused(t *testing.T) {
	raw, whole := packed(t)
	const at = "entries/constants/bb/constants.json"
	changed := bytes.Clone(raw)
	changed[len(changed)/2] ^= 1
	foreign, older := seven(at), seven(at)
	foreign.Platform, older.Format = "plan9/amd64", "relapse-cache/0"
	unlisted := seven(at)
	unlisted.Images = []cluster.Image{{Ref: "node:1", File: "images/1.tar"}}
	file := entry{name: at, text: "7"}
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"no archive":             {[]byte("hello, I am a text"), "it is no archive of relapse cache export, or it was cut off: "},
		"nothing":                {nil, "it is no archive of relapse cache export, or it was cut off: EOF"},
		"another archive":        {compressed(t, file), `it is no archive of relapse cache export: its first file is "` + at + `", expected manifest.json`},
		"cut in a program":       {raw[:len(raw)/2], "the archive was cut off in entries/build/aa/bin/agent: expected 1048576 bytes with SHA-256 " + whole.Files[0].SHA256},
		"a byte changed":         {changed, "the archive was changed in entries/build/aa/bin/agent: "},
		"a file changed":         {repacked(t, seven(at), entry{name: at, text: "8"}), "the archive was changed in " + at + ": it has SHA-256 2c624232cdd221771294dfbb310aca000a0df6ac8b66b696d90ef06fdefb64a3, expected " + sevenSum},
		"a file missing":         {repacked(t, seven(at)), "the archive was cut off: " + at + " is missing, expected 1 bytes with SHA-256 " + sevenSum},
		"another size":           {repacked(t, seven(at), entry{name: at, text: "77"}), `the archive has "` + at + `" of 2 bytes, expected ` + at + " of 1 bytes"},
		"another file":           {repacked(t, seven(at), entry{name: "entries/x/y/z", text: "7"}), `the archive has "entries/x/y/z" of 1 bytes, expected ` + at + " of 1 bytes"},
		"a link":                 {repacked(t, seven(at), entry{at, "/etc/passwd", tar.TypeSymlink}), `the archive has "` + at + `" of 0 bytes, expected`},
		"one file more":          {repacked(t, seven(at), file, entry{name: "entries/x/y/z", text: "7"}), `the archive has "entries/x/y/z", which its manifest doesn't list`},
		"a foreign platform":     {repacked(t, foreign, file), "the archive has programs for plan9/amd64, and this host is " + Platform() + ": export it on a host of that platform"},
		"another layout":         {repacked(t, older, file), `the archive's layout is "relapse-cache/0", and this relapse reads "relapse-cache/1"`},
		"an image that isn't in": {repacked(t, unlisted, file), `the archive's manifest has the image node:1 in "images/1.tar", which it doesn't list`},
		"outside":                {repacked(t, seven("../outside"), entry{name: "../outside", text: "7"}), `the archive's manifest names "../outside", which is no place in a cache`},
		"outside of an entry":    {repacked(t, seven("entries/a/b/../../../../c")), `names "entries/a/b/../../../../c", which is no place in a cache`},
		"absolute":               {repacked(t, seven("/etc/cron.d/x")), `names "/etc/cron.d/x", which is no place in a cache`},
		"hidden":                 {repacked(t, seven("entries/.a/b/c")), `names "entries/.a/b/c", which is no place in a cache`},
		"beside the entries":     {repacked(t, seven("locks/a/b/c")), `names "locks/a/b/c", which is no place in a cache`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := Unpack(t.Context(), bytes.NewReader(c.archive), filepath.Join(dir, "in"))
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if outside, _ := filepath.Glob(filepath.Join(dir, "*")); len(outside) > 1 {
				t.Errorf("it wrote %v", outside)
			}
		})
	}
}

func TestInterruptedArchives(t *testing.T) {
	raw, m := packed(t)
	why := errors.New("that's enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := Unpack(ctx, bytes.NewReader(raw), t.TempDir()); !errors.Is(err, why) {
		t.Errorf("unpacking: %v, want %v", err, why)
	}
	if err := write(ctx, io.Discard, m); !errors.Is(err, why) {
		t.Errorf("packing: %v, want %v", err, why)
	}
}

// A file that another program changes meanwhile would be refused on the other host.
func TestAFileThatChangesIsNotPacked(t *testing.T) {
	_, m := packed(t)
	if err := os.WriteFile(m.Files[2].path, []byte("8"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), io.Discard, m); err == nil || !strings.Contains(err.Error(), "constants.json: it was changed while it was packed") {
		t.Errorf("it was packed: %v", err)
	}
	if _, err := Pack(t.Context(), io.Discard, Manifest{}, []Source{{"entries/a/b", os.DevNull}}); err == nil || !strings.Contains(err.Error(), "/dev/null: it is no regular file") {
		t.Errorf("a device was packed: %v", err)
	}
}
