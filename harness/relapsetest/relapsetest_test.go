package relapsetest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/relapsetest"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// recorder is a test whose failure is looked at.
type recorder struct {
	testing.TB
	ctx    context.Context
	end    time.Time
	output strings.Builder
	failed string
}

func (r *recorder) Helper()                     {}
func (r *recorder) Context() context.Context    { return r.ctx }
func (r *recorder) Deadline() (time.Time, bool) { return r.end, !r.end.IsZero() }
func (r *recorder) Output() io.Writer           { return &r.output }
func (r *recorder) Logf(f string, args ...any)  { fmt.Fprintf(&r.output, f+"\n", args...) }
func (r *recorder) Fatalf(f string, args ...any) {
	r.failed = fmt.Sprintf(f, args...)
	runtime.Goexit()
}

// run runs a scenario as a test of its own, and returns the result and the test.
func run(t *testing.T, change func(*recorder), scenario string, opts ...relapsetest.Option) (relapsetest.Result, *recorder) {
	t.Helper()
	r := &recorder{TB: t, ctx: t.Context()}
	if change != nil {
		change(r)
	}
	var got relapsetest.Result
	done := make(chan struct{})
	go func() {
		defer close(done)
		got = relapsetest.Run(r, scenario, append(opts, relapsetest.Runs(t.TempDir()))...)
	}()
	<-done
	return got, r
}

// A test that can't be run as asked fails with what relapse says of it, and the next step.
func TestWhatFails(t *testing.T) {
	t.Setenv("RELAPSE_CACHE", "/dev/null/cache")
	soon := func(r *recorder) { r.end = time.Now().Add(time.Minute) }
	short := func(r *recorder) { r.end = time.Now().Add(2*time.Minute + 5*time.Second) }
	for _, c := range []struct {
		name, scenario string
		change         func(*recorder)
		opts           []relapsetest.Option
		want           []string
	}{
		{"no such scenario", "nonesuch", nil, nil, []string{"nonesuch: no verdict (exit 64), want Validated\nerror: there is no scenario \"nonesuch\"", "\nhint: relapse list"}},
		{"no such candidate", "apiserver-goroutine-leak", nil, []relapsetest.Option{relapsetest.Candidate("bin:/nowhere")},
			[]string{"no verdict (exit 64), want Validated\nerror: candidate bin:/nowhere: ", "\nhint: give the path of an executable"}},
		{"an error of relapse's own", "apiserver-goroutine-leak", nil, []relapsetest.Option{relapsetest.Provider("processes"), relapsetest.Want(verdict.StillVulnerable)},
			[]string{"apiserver-goroutine-leak: Error (exit 4), want StillVulnerable\nerror: opening cache /dev/null/cache: "}},
		{"all options are passed on", "apiserver-goroutine-leak", nil, []relapsetest.Option{relapsetest.Pair("nonesuch"), relapsetest.Repeat(2), relapsetest.Set("items", "2000")},
			[]string{"no verdict (exit 64)", `"nonesuch"`}},
		{"no time left", "apiserver-goroutine-leak", soon, nil, []string{"apiserver-goroutine-leak: there is no time left for a run: go test -timeout 90m"}},
		{"too little time", "apiserver-goroutine-leak", short, nil, []string{"no verdict (exit 64)", "error: --time-limit ", "is shorter than the phases"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r := run(t, c.change, c.scenario, c.opts...)
			if got.Dir != "" || r.failed == "" {
				t.Errorf("it has a folder %q and failed with %q", got.Dir, r.failed)
			}
			for _, want := range c.want {
				if !strings.Contains(r.failed, want) {
					t.Errorf("it failed with %q, want %q in it", r.failed, want)
				}
			}
		})
	}
}

// The program of a test is started once more to supervise clusters, and must not run its tests then.
func TestTheProgramSupervises(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, "supervise", t.TempDir()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "error: ") || !strings.Contains(string(out), "processes.json") || strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

// A provider that there isn't is refused before anything is built.
func TestClustersOfNoProvider(t *testing.T) {
	_, err := relapsetest.Clusters(t.Context(), "envtest", cluster.Topology{Version: cluster.DefaultVersion})
	want := `getting what clusters of the provider envtest are made of: there is no provider "envtest": want one of kind, processes`
	if err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
}
