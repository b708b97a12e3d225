package nodeimage_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/internal/host/nodeimage"
)

func TestAptSources(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing there", nil, nil},
		{
			"one line, options, comments, source packages, other schemes",
			map[string]string{"sources.list": `# deb http://commented.test/debian x main
deb http://a.test/debian/ bookworm main # why
deb-src http://src.test/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] https://b.test/debian bookworm main
deb cdrom:[Debian]/ bookworm main
deb file:/srv/debian bookworm main
debian http://typo.test/ x main
deb http://a.test/debian bookworm-updates main
`},
			[]string{"http://a.test/debian", "https://b.test/debian"},
		},
		{
			"deb822 with comments, continuation lines and disabled stanzas",
			map[string]string{"sources.list.d/debian.sources": `Types: deb deb-src
# a comment within
URIs: http://a.test/debian
 http://b.test/debian
Suites: bookworm
Components: main

Enabled: no
Types: deb
URIs: http://off.test/debian

Types: deb-src
URIs: http://src.test/debian

uris: http://c.test/debian
types: deb
`},
			[]string{"http://a.test/debian", "http://b.test/debian", "http://c.test/debian"},
		},
		{
			"the main file first, then by name, ignoring other endings",
			map[string]string{
				"sources.list":                 "deb http://main.test/debian x main\n",
				"sources.list.d/b.list":        "deb http://b.test/debian x main\n",
				"sources.list.d/a.sources":     "Types: deb\nURIs: http://a.test/debian\n",
				"sources.list.d/z.list.backup": "deb http://backup.test/debian x main\n",
			},
			[]string{"http://main.test/debian", "http://a.test/debian", "http://b.test/debian"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := nodeimage.AptSources([]string{aptDir(t, tt.files)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
		})
	}
}

func aptDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMirrorHasTheSuite(t *testing.T) {
	archive := func(body string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/debian/dists/trixie/InRelease" || body == "" {
				http.NotFound(w, r)
				return
			}
			w.Write([]byte(body))
		}))
		t.Cleanup(srv.Close)
		return srv.URL + "/debian"
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	none, page := archive(""), archive("<html>welcome</html>")
	good := archive("Origin: Debian\nSuite: stable\nCodename: trixie\n")
	s, _ := newStore(t, newFake())
	list := func(uris ...string) map[string]string {
		return map[string]string{"sources.list": "deb " + strings.Join(uris, " x main\ndeb ") + " x main\n"}
	}
	for _, tt := range []struct {
		name    string
		files   map[string]string
		want    string
		wantErr []string
	}{
		{"the first that has it", list(gone.URL, none, page, good), good, nil},
		{"none configured", nil, "", []string{"no http(s) source", "add a Debian one"}},
		{"none has it", list(none, page), "", []string{"no source in", "404 Not Found", "isn't a release file of trixie",
			"add a Debian one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Mirror(t.Context(), "trixie", aptDir(t, tt.files))
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if (err != nil) != (tt.wantErr != nil) {
				t.Fatalf("got error %v", err)
			}
			for _, want := range tt.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %v, want %q in it", err, want)
				}
			}
		})
	}
}
