package build_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/build"
)

// releases publishes releases of a repository on proxies of the test's own. Each requires the version of the repository's
// other module that goes with it; of v1.2.4's nobody has the module.
func releases(t *testing.T) {
	t.Helper()
	publishedModules(t)
	proxies := []string{os.Getenv("GOPROXY")}
	for release, staged := range map[string]string{"v1.2.2": "v0.2.2", "v1.2.4": "v0.2.4", "v1.2.5": "v0.2.5"} {
		files := maps.Clone(repositoryWithModules)
		files["go.mod"] = strings.ReplaceAll(files["go.mod"], "v0.2.3", staged)
		proxied(t, "example.org/tree", release, files)
		proxies = append(proxies, os.Getenv("GOPROXY"))
	}
	t.Setenv("GOPROXY", strings.Join(proxies, ","))
}

// A module of a release that can't be had comes from the first neighbour that has it, and the program says so.
func TestAModuleOfANeighbourStandsIn(t *testing.T) {
	releases(t)
	b := newBuilder(t, t.TempDir())
	src := build.Source{Module: "example.org/tree", Version: "v1.2.4", Packages: []string{"example.org/tree/cmd/subject"}}
	if _, err := b.Build(t.Context(), src); err == nil || !strings.Contains(err.Error(), "example.org/staged@v0.2.4") {
		t.Fatalf("a release without one of its modules is built: %v", err)
	}
	with, err := b.FromNeighbours(t.Context(), src.Module, src.Version, []string{"v1.2.5", "v1.2.3", "v1.2.2"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"example.org/staged": "v0.2.3"}, with); d != "" {
		t.Fatal(d)
	}
	src.Replace = with
	r := mustBuild(t, b, src)
	if got := says(t, r); got != "first one" {
		t.Errorf("it says %q", got)
	}
	if want := "example.org/staged v0.2.3 in place of v0.2.4"; !slices.Contains(r.Changes, want) {
		t.Errorf("changes %q, want %q", r.Changes, want)
	}
	for _, said := range r.Changes {
		if strings.Contains(said, "published version v0.2.4") {
			t.Errorf("it says of a module that can't be had that it was built: %q", said)
		}
	}
}

func TestNothingStandsInUnlessAModuleIsRefused(t *testing.T) {
	releases(t)
	b := newBuilder(t, t.TempDir())
	if with, err := b.FromNeighbours(t.Context(), "example.org/tree", "v1.2.3", []string{"v1.2.2"}); err != nil || len(with) > 0 {
		t.Errorf("a release that is there whole: %v, %v", with, err)
	}
	for _, c := range []struct {
		neighbours []string
		want       string
	}{
		{[]string{"v1.2.5"}, "example.org/staged v0.2.4 can't be had, nor that of another release of the branch: v1.2.5"},
		{nil, "example.org/staged v0.2.4 can't be had, nor that of another release of the branch: there is none"},
	} {
		if with, err := b.FromNeighbours(t.Context(), "example.org/tree", "v1.2.4", c.neighbours); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, %v, want %q", c.neighbours, with, err, c.want)
		}
	}
	// That nobody answers is no refusal: with a network it may be there.
	t.Setenv("GOPROXY", "off")
	if with, err := b.FromNeighbours(t.Context(), "example.org/tree", "v1.2.4", []string{"v1.2.3"}); !errors.As(err, new(*build.FetchError)) {
		t.Errorf("without a network: %v, %v", with, err)
	}
}

// A module that only isn't there at the moment, or isn't what was published, has no stand-in: the same release would be
// built from other sources an hour later, and nothing would say why.
func TestNothingStandsInForTroubleOfTheMoment(t *testing.T) {
	for _, c := range []struct {
		status int
		want   string // of the error; "" wants the stand-in
	}{
		{http.StatusForbidden, ""},
		{http.StatusNotFound, ""},
		{http.StatusServiceUnavailable, "503 Service Unavailable"},
		{http.StatusInternalServerError, "500 Internal Server Error"},
		{http.StatusTooManyRequests, "429 Too Many Requests"},
	} {
		t.Run(http.StatusText(c.status), func(t *testing.T) {
			releases(t)
			answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/example.org/staged/@v/v0.2.4.") {
					w.WriteHeader(c.status)
					return
				}
				w.WriteHeader(http.StatusNotFound) // the go command asks the next proxy
			}))
			t.Cleanup(answers.Close)
			t.Setenv("GOPROXY", answers.URL+","+os.Getenv("GOPROXY"))
			with, err := newBuilder(t, t.TempDir()).FromNeighbours(t.Context(), "example.org/tree", "v1.2.4", []string{"v1.2.3"})
			if c.want == "" && (err != nil || with["example.org/staged"] != "v0.2.3") {
				t.Errorf("refused: %v, %v", with, err)
			}
			if c.want != "" && (err == nil || len(with) > 0 || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, %v, want %s", with, err, c.want)
			}
		})
	}
}
