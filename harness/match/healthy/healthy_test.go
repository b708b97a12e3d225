package healthy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/match/healthy"
)

// group is n goroutines in a state below some functions, the innermost first.
type group struct {
	n     int
	state string
	by    string // who made them
	funcs []string
}

// dump writes groups as debug=2 and reads them.
func dump(t *testing.T, all ...group) *goroutine.Dump {
	t.Helper()
	var b strings.Builder
	id := 1
	for _, g := range all {
		for range g.n {
			fmt.Fprintf(&b, "goroutine %d [%s]:\n", id, g.state)
			for _, f := range g.funcs {
				fmt.Fprintf(&b, "%s(0x1)\n\t/a.go:1 +0x1\n", f)
			}
			if g.by != "" {
				fmt.Fprintf(&b, "created by %s in goroutine 1\n\t/a.go:2 +0x1\n", g.by)
			}
			b.WriteString("\n")
			id++
		}
	}
	return read(t, b.String())
}

func read(t *testing.T, text string) *goroutine.Dump {
	t.Helper()
	d, err := goroutine.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var well = []group{
	{1, "chan receive", "", []string{"k8s.io/x/cmd/kube-y/app.Run", "main.main"}},
	{40, "select", "k8s.io/x/cache.New[...]", []string{"k8s.io/x/cache.(*Cacher[...]).dispatch", "k8s.io/x/cache.New[...].func2"}},
	{1, "chan receive", "k8s.io/x/pleg.Start", []string{"k8s.io/x/pleg.(*GenericPLEG).relist", "k8s.io/x/pleg.Start.func1"}},
	{12, "IO wait", "net/http.(*Server).Serve", []string{"internal/poll.runtime_pollWait", "net/http.(*conn).serve"}},
	{3, "select", "k8s.io/x/loops.(*Loops).Run", []string{"k8s.io/apimachinery/pkg/util/wait.Until"}},
	{8, "GC worker (idle)", "runtime.gcBgMarkStartWorkers", []string{"runtime.gopark", "runtime.gcBgMarkWorker"}},
}

func baseline(t *testing.T) *healthy.Baseline {
	t.Helper()
	var b healthy.Builder
	less := slices.Clone(well)
	less[3].n = 9
	b.Add("v1.34.4", []*goroutine.Dump{dump(t, well...), dump(t, less...)})
	b.Add("v1.33.1", []*goroutine.Dump{dump(t, well[:5]...)})
	return b.Baseline("kube-y", "(devel)")
}

// A baseline has the fewest and the most of each place and state, without what the runtime runs.
func TestBaseline(t *testing.T) {
	b := baseline(t)
	if diff := cmp.Diff([]healthy.Of{{"v1.33.1", 1, 1}, {"v1.34.4", 1, 2}}, b.Of); diff != "" {
		t.Errorf("of (-want +got):\n%s", diff)
	}
	want := []healthy.Place{
		{At: "created by k8s.io/x/loops.Loops.Run", All: healthy.Range{3, 3}, States: map[string]healthy.Range{"select": {3, 3}}},
		{At: "created by net/http.Server.Serve", All: healthy.Range{9, 12}, States: map[string]healthy.Range{"IO wait": {9, 12}}},
		{At: "k8s.io/apimachinery/pkg/util/wait.Until", All: healthy.Range{3, 3}, States: map[string]healthy.Range{}},
		{At: "k8s.io/x/cache.Cacher.dispatch", All: healthy.Range{40, 40}, States: map[string]healthy.Range{"select": {40, 40}}},
		{At: "k8s.io/x/cmd/kube-y/app.Run", All: healthy.Range{1, 1}, States: map[string]healthy.Range{"chan receive": {1, 1}}},
		{At: "k8s.io/x/pleg.GenericPLEG.relist", All: healthy.Range{1, 1}, States: map[string]healthy.Range{"chan receive": {1, 1}}},
		{At: "net/http.conn.serve", All: healthy.Range{9, 12}, States: map[string]healthy.Range{}},
	}
	if diff := cmp.Diff(want, b.Places); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

// Baselines of several versions are one: what only one of them has is usual, and its least is 0.
func TestWrite(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, healthy.Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	made := func(version string, groups ...group) *healthy.Baseline {
		var b healthy.Builder
		b.Add(version, []*goroutine.Dump{dump(t, groups...)})
		return b.Baseline("kube-y", "(devel)")
	}
	more := group{50, "select", "", well[1].funcs}
	for i, b := range []*healthy.Baseline{made("v1", well[:2]...), made("v1", well[0], well[1]), made("v2", more, well[2])} {
		at, got, err := b.Write(root)
		if err != nil || at != filepath.Join(root, healthy.Folder, "kube-y.json") {
			t.Fatalf("the %d. time: %s, %v", i+1, at, err)
		}
		if i < 2 { // the same version again takes the place of what was there
			if diff := cmp.Diff([]healthy.Of{{"v1", 1, 1}}, got.Of); diff != "" {
				t.Errorf("the %d. time, of (-want +got):\n%s", i+1, diff)
			}
			continue
		}
		if diff := cmp.Diff([]healthy.Of{{"v1", 1, 1}, {"v2", 1, 1}}, got.Of); diff != "" {
			t.Errorf("of (-want +got):\n%s", diff)
		}
		want := []healthy.Place{
			{At: "k8s.io/x/cache.Cacher.dispatch", All: healthy.Range{40, 50}, States: map[string]healthy.Range{"select": {40, 50}}},
			{At: "k8s.io/x/cmd/kube-y/app.Run", All: healthy.Range{0, 1}, States: map[string]healthy.Range{"chan receive": {0, 1}}},
			{At: "k8s.io/x/pleg.GenericPLEG.relist", All: healthy.Range{0, 1}, States: map[string]healthy.Range{"chan receive": {0, 1}}},
		}
		if diff := cmp.Diff(want, got.Places); diff != "" {
			t.Errorf("places (-want +got):\n%s", diff)
		}
	}
	if _, _, err := made("v2", well[2]).Write(root); err == nil || !strings.Contains(err.Error(), "kube-y.json holds v2 and v1 in one: remove it to make it anew, of dumps of both") {
		t.Errorf("one of its versions again: %v", err)
	}
}

// What isn't in every dump has 0 as its least, whether it comes later or goes.
func TestLeast(t *testing.T) {
	var b healthy.Builder
	b.Add("v1", []*goroutine.Dump{dump(t, well[:2]...), dump(t, well[1:3]...)})
	got := map[string]healthy.Range{}
	for _, p := range b.Baseline("kube-y", "").Places {
		got[p.At] = p.All
	}
	want := map[string]healthy.Range{"k8s.io/x/cmd/kube-y/app.Run": {0, 1}, "k8s.io/x/cache.Cacher.dispatch": {40, 40}, "k8s.io/x/pleg.GenericPLEG.relist": {0, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnusual(t *testing.T) {
	relist := []string{"k8s.io/x/pleg.(*GenericPLEG).relist", "k8s.io/x/pleg.Start.func1"}
	for _, c := range []struct {
		name string
		more []group
		want []string // at, state, count, usual
	}{
		{"as it was", nil, nil},
		{"another vendor folder, receiver and literal", []group{{5, "select", "", []string{"k8s.io/x/vendor/k8s.io/x/cache.Cacher.dispatch.func1"}}}, nil},
		{"a leak, before what there is more of", []group{{200, "IO wait", "net/http.(*Server).Serve", []string{"net/http.(*conn).serve"}},
			{50, "chan send", "k8s.io/x/registry.(*Store).Do", []string{"k8s.io/x/registry.(*Store).DeleteCollection.func1"}}},
			[]string{"k8s.io/x/registry.Store.DeleteCollection chan send 50 0", "created by net/http.Server.Serve IO wait 212 12"}},
		{"a leak, before a burst", []group{{200, "runnable", "", []string{"k8s.io/x/openapi.merge"}},
			{50, "chan receive, 2 minutes", "", []string{"k8s.io/x/leak.Leak"}}},
			[]string{"k8s.io/x/leak.Leak chan receive 50 0", "k8s.io/x/openapi.merge runnable 200 0"}},
		{"a leak in a helper's function, by who made it", []group{{50, "select", "k8s.io/x/leak.(*Leak).Start", []string{"k8s.io/apimachinery/pkg/util/wait.Until"}}},
			[]string{"created by k8s.io/x/leak.Leak.Start select 50 0"}},
		{"more of the same", []group{{300, "select", "", []string{"k8s.io/x/cache.(*Cacher[...]).dispatch"}}},
			[]string{"k8s.io/x/cache.Cacher.dispatch select 340 40"}},
		{"no more than load brings", []group{{80, "select", "", []string{"k8s.io/x/cache.(*Cacher[...]).dispatch"}}}, nil},
		{"a few of something new", []group{{9, "select", "", []string{"k8s.io/x/plugin.Run"}}}, nil},
		{"one that is stuck where it never was", []group{{1, "chan send, 3 minutes", "", relist}}, []string{"k8s.io/x/pleg.GenericPLEG.relist chan send 1 0"}},
		{"one that has just begun to send", []group{{1, "chan send", "", relist}}, nil},
		{"one that waits for long in what nobody knows", []group{{1, "select, 90 minutes", "", []string{"k8s.io/x/plugin.Run"}}}, nil},
		{"one that waits for long for a lock there", []group{{1, "sync.Mutex.Lock, 90 minutes", "", []string{"k8s.io/x/plugin.Run"}}},
			[]string{"k8s.io/x/plugin.Run sync.Mutex.Lock 1 0"}},
		{"what runs is as many as there were", []group{{20, "runnable", "", []string{"k8s.io/x/cache.(*Cacher[...]).dispatch"}}}, nil},
		{"a crash, which shows the runtime's frames", []group{{5, "select", "k8s.io/x/loops.(*Loops).Run",
			[]string{"k8s.io/apimachinery/pkg/util/wait.Until", "k8s.io/x/loops.(*Loops).Run.gowrap2", "runtime.goexit"}}}, nil},
		{"more processors", []group{{96, "GC worker (idle)", "runtime.gcBgMarkStartWorkers", []string{"runtime.gopark", "runtime.gcBgMarkWorker"}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, u := range baseline(t).Unusual(dump(t, append(slices.Clone(well), c.more...)...)) {
				got = append(got, fmt.Sprintf("%s %s %d %d", u.At, u.State, u.Count, u.Usual))
				if len(u.Frames) == 0 {
					t.Errorf("%s has no frames", u.At)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A dump without states is compared by place alone.
func TestUnusualInAProfile(t *testing.T) {
	profile := func(n int) *goroutine.Dump {
		return read(t, fmt.Sprintf("goroutine profile: total %d\n%d @ 0x1\n#\t0x1\tk8s.io/x/registry.(*Store).DeleteCollection+0x1\t/a.go:1\n\n"+
			"40 @ 0x2\n#\t0x2\tk8s.io/x/cache.(*Cacher[...]).dispatch+0x1\t/a.go:1\n\n12 @ 0x3\n#\t0x3\tnet/http.(*conn).serve+0x1\t/a.go:1\n\n", n+52, n))
	}
	b := baseline(t)
	if got := b.Unusual(profile(5)); len(got) > 0 {
		t.Errorf("few: %+v", got)
	}
	got := b.Unusual(profile(50))
	if len(got) != 1 || got[0].At != "k8s.io/x/registry.Store.DeleteCollection" || got[0].State != "" || got[0].Count != 50 {
		t.Errorf("a leak: %+v", got)
	}
}

func TestNormal(t *testing.T) {
	for name, want := range map[string]string{
		"k8s.io/a/b.(*Store).Delete.func1.2":                               "k8s.io/a/b.Store.Delete",
		"k8s.io/a/b.(*Store[...]).Delete.gowrap3":                          "k8s.io/a/b.Store.Delete",
		"k8s.io/a/b.Map[go.shape.string,go.shape.*k8s.io/c.D].Each-range1": "k8s.io/a/b.Map.Each",
		"k8s.io/kubernetes/vendor/k8s.io/a/b.Run-fm":                       "k8s.io/a/b.Run",
		"vendor/golang.org/x/net/http2.f":                                  "golang.org/x/net/http2.f",
		"main.main":                                                        "main.main",
		"gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun":             "gopkg.in/natefinch/lumberjack%2ev2.Logger.millRun",
	} {
		if got := healthy.Normal(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// What ships was made of what it says, and can be compared with.
func TestShipped(t *testing.T) {
	all, err := healthy.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubelet"} {
		at := slices.IndexFunc(all, func(b *healthy.Baseline) bool { return b.Component == want })
		if at < 0 {
			t.Errorf("there is none of %s", want)
			continue
		}
		b := all[at]
		if !slices.ContainsFunc(b.Of, func(o healthy.Of) bool { return o.Version == "v1.36.3" && o.Dumps >= 5 && o.Processes > 0 }) {
			t.Errorf("%s is of %+v", want, b.Of)
		}
		if len(b.Places) < 30 || !slices.ContainsFunc(b.Places, func(p healthy.Place) bool {
			return strings.HasPrefix(p.At, "k8s.io/kubernetes/") && p.All[0] > 0
		}) {
			t.Errorf("%s has %d places, and none of Kubernetes' own", want, len(b.Places))
		}
	}
}
