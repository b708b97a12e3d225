package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
)

type member struct{ name, text, link string }

func packTar(t testing.TB, all ...member) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range all {
		h := &tar.Header{Name: m.name, Size: int64(len(m.text)), Mode: 0o644, Typeflag: tar.TypeReg}
		if m.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, m.text)
	}
	w.Close()
	return b.String()
}

func packZip(t testing.TB, all ...member) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range all {
		f, err := w.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, m.text)
	}
	w.Close()
	return b.String()
}

func compress(t testing.TB, text string, open func(io.Writer) (io.WriteCloser, error)) string {
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func gz(t testing.TB, s string) string {
	return compress(t, s, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func zst(t testing.TB, s string) string {
	return compress(t, s, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

func xzip(t testing.TB, s string) string {
	return compress(t, s, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

// walked is what a walk saw, one "path: text" for each file, and its problems.
func walked(t testing.TB, o archive.Options, paths ...string) (seen, problems []string) {
	t.Helper()
	bad, err := archive.Walk(context.Background(), paths, o, func(e archive.Entry) error {
		b, err := io.ReadAll(e)
		seen = append(seen, fmt.Sprintf("%s: %.20s", e.Path, b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range bad {
		problems = append(problems, p.Path+": "+p.Message)
	}
	return seen, problems
}

// What something is comes from its contents: the names here are all wrong.
func TestForms(t *testing.T) {
	both := []member{{name: "./logs/kubelet.log", text: "hello"}, {name: "b.zip", text: "plain"}}
	for name, content := range map[string]string{
		"tar": packTar(t, both...), "gzip": gz(t, packTar(t, both...)), "zstd": zst(t, packTar(t, both...)),
		"xz": xzip(t, packTar(t, both...)), "zip": packZip(t, both...), "zip in gzip": gz(t, packZip(t, both...)),
		"all in each other": gz(t, packTar(t, member{name: "logs", text: zst(t, packZip(t, member{name: "kubelet.log", text: "hello"}))},
			member{name: "b.zip", text: "plain"})),
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := walked(t, archive.Options{Stdin: strings.NewReader(content)}, archive.Stdin)
			if want := []string{"stdin/logs/kubelet.log: hello", "stdin/b.zip: plain"}; !slices.Equal(got, want) || len(problems) > 0 {
				t.Errorf("saw %q, problems %q; want %q", got, problems, want)
			}
		})
	}
}

// A file in base64 is read as what it holds, in one line or in several, and whatever a shell has put behind it. Other
// letters are left as they are.
func TestBase64(t *testing.T) {
	text := strings.Repeat("I1121 12:00:00.000000 1 a.go:1] hello\n", 8)
	one := base64.StdEncoding.EncodeToString([]byte(text))
	lines := ""
	for rest := one; rest != ""; rest = rest[min(76, len(rest)):] {
		lines += rest[:min(76, len(rest))] + "\r\n"
	}
	digest := strings.Repeat("0123456789abcdef", 32) + "\n"
	for _, c := range []struct{ name, content, want string }{
		{"one line", one + "\n", "I1121 12:00:00.00000"},
		{"a shell's mark", one + "%\n", "I1121 12:00:00.00000"},
		{"lines", lines, "I1121 12:00:00.00000"},
		{"packed", base64.StdEncoding.EncodeToString([]byte(gz(t, strings.Repeat(text, 9)+one))) + "\n", "I1121 12:00:00.00000"},
		{"a digest", digest, digest[:20]},
		{"a word", "hello\n", "hello\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := walked(t, archive.Options{Stdin: strings.NewReader(c.content)}, archive.Stdin)
			if want := []string{"stdin: " + c.want}; !slices.Equal(got, want) || len(problems) > 0 {
				t.Errorf("saw %q, problems %q; want %q", got, problems, want)
			}
		})
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one", "sub/b": gz(t, "two")} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("a.txt", filepath.Join(dir, "inside"))
	os.Symlink("/etc/hostname", filepath.Join(dir, "outside"))
	got, problems := walked(t, archive.Options{}, dir)
	if want := []string{dir + "/a.txt: one", dir + "/sub/b: two"}; !slices.Equal(got, want) {
		t.Errorf("saw %q; want %q", got, want)
	}
	if want := []string{dir + "/outside: it is a link that leaves the folder or leads nowhere: not followed"}; !slices.Equal(problems, want) {
		t.Errorf("problems %q; want %q", problems, want)
	}
	if _, err := archive.Walk(context.Background(), []string{dir + "/nowhere"}, archive.Options{}, nil); err == nil {
		t.Error("a path that isn't there is no error")
	}
}

// What is hostile is named, and the rest is read.
func TestHostile(t *testing.T) {
	small := archive.Limits{Depth: 3, Entries: 3, Total: 1 << 20, Ratio: 50, Free: 4 << 10, Spool: 64 << 10}
	zeros := strings.Repeat("0", 300<<10)
	good := member{name: "good", text: "read"}
	deep := packTar(t, good)
	for range 5 {
		deep = gz(t, deep)
	}
	asksForMuch := []byte(xzip(t, "x"))
	asksForMuch[12+4] = 40 // the dictionary's size in the block's header
	asksForMuch[12+2] = 0x21
	for _, c := range []struct {
		name, content, want string
		seen                []string
	}{
		{"names that leave", packTar(t, member{name: "../../etc/x", text: "x"}, member{name: "/abs", text: "x"}, good),
			`the name "../../etc/x" leaves the folder`, []string{"stdin/good: read"}},
		{"names that leave, in a zip", packZip(t, member{name: "../x", text: "x"}, good), `the name "../x" leaves the folder`, []string{"stdin/good: read"}},
		{"a link that leaves", packTar(t, member{name: "a/l", link: "../../x"}, member{name: "a/in", link: "../good"}, good),
			`stdin/a/l: it is a link to "../../x", which leaves`, []string{"stdin/good: read"}},
		{"a bomb", packTar(t, member{name: "bomb", text: gz(t, zeros)}, good), "it unpacks to too much", []string{"stdin/bomb: " + zeros[:20], "stdin/good: read"}},
		{"a bomb in zstd", zst(t, zeros), "it unpacks to too much", []string{"stdin: " + zeros[:20]}},
		{"too deep", deep, "over 3 deep", nil},
		{"too many files", packTar(t, good, good, good, good, good), "there are over 3 files",
			[]string{"stdin/good: read", "stdin/good: read", "stdin/good: read"}},
		{"a tar that is cut", packTar(t, good, member{name: "b", text: strings.Repeat("b", 2000)})[:1700], "unexpected EOF", []string{"stdin/good: read", "stdin/b: bbbbbbbbbbbbbbbbbbbb"}},
		{"a gzip that is cut", gz(t, "hello")[:14], "unexpected EOF", []string{"stdin: hel"}},
		{"no gzip at all", "\x1f\x8bxx", "begins like a compressed file and isn't one", nil},
		{"a zip that is too long to keep", packZip(t, member{name: "x", text: string(random(80 << 10))}), "over 65536 bytes long", nil},
		{"an xz that asks for much memory", string(asksForMuch), "it asks for 4294967296 bytes of memory", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := walked(t, archive.Options{Stdin: strings.NewReader(c.content), Limits: small}, archive.Stdin)
			if !strings.Contains(strings.Join(problems, "\n"), c.want) || len(problems) == 0 {
				t.Errorf("problems %q; want %q among them", problems, c.want)
			}
			if c.seen != nil && !slices.Equal(got, c.seen) {
				t.Errorf("saw %q; want %q", got, c.seen)
			}
		})
	}
}

// random is bytes that no compression shortens, the same each time.
func random(n int) []byte {
	out, x := make([]byte, n), uint32(1)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}

// AsIs leaves a packed file packed.
func TestAsIs(t *testing.T) {
	in := packTar(t, member{name: "a.gz", text: gz(t, "hello")})
	o := archive.Options{Stdin: strings.NewReader(in), AsIs: func(p string) bool { return p == "stdin/a.gz" }}
	if got, _ := walked(t, o, archive.Stdin); len(got) != 1 || !strings.HasPrefix(got[0], "stdin/a.gz: \x1f\x8b") {
		t.Errorf("saw %q", got)
	}
}

// FuzzWalk holds Walk to its limits on any input: it ends, doesn't panic, and gives no more than they allow.
func FuzzWalk(f *testing.F) {
	good := member{name: "a/good", text: "read"}
	for _, s := range []string{packTar(f, good, member{name: "l", link: "../x"}), packZip(f, good), gz(f, packZip(f, good)),
		zst(f, packTar(f, good)), xzip(f, packTar(f, good)), "text"} {
		f.Add([]byte(s))
	}
	limits := archive.Limits{Depth: 3, Entries: 50, Total: 1 << 20, Ratio: 100, Free: 16 << 10, Spool: 1 << 20}
	f.Fuzz(func(t *testing.T, in []byte) {
		total, files := 0, 0
		_, err := archive.Walk(context.Background(), []string{archive.Stdin}, archive.Options{Stdin: bytes.NewReader(in), Limits: limits},
			func(e archive.Entry) error {
				if !strings.HasPrefix(e.Path, "stdin") || strings.Contains(e.Path, "/../") {
					t.Errorf("the path %q leaves the input", e.Path)
				}
				n, err := io.Copy(io.Discard, e)
				total, files = total+int(n), files+1
				return err
			})
		if err != nil {
			t.Errorf("%v", err)
		}
		if most := len(in) + int(limits.Total) + 1<<20; total > most || files > limits.Entries {
			t.Errorf("%d bytes in %d files of %d bytes", total, files, len(in))
		}
	})
}
