package bundle_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func create(t *testing.T) *bundle.Writer {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, v bundle.View, a bundle.Artifact) string {
	t.Helper()
	r, err := v.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func phase(w *bundle.Writer, at time.Duration, arm, name string) {
	w.Emit(event.Event{Time: t0.Add(at), Mono: at, Type: event.Phase, Arm: arm, Message: name})
}

// fill writes one of everything and returns the stream.
func fill(t *testing.T, w *bundle.Writer) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.PutPlan([]byte(`{"scenario":"x"}`)))
	must(w.SetWorld(bundle.World{StartedAt: t0, Arms: []bundle.ArmWorld{{Arm: "a", Constants: map[string]int64{"cap": 1000}}}}))
	_, err := w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: "a", Phase: "fault", Time: t0.Add(2 * time.Second)}, "txt",
		strings.NewReader("goroutine 1 [running]:\nmain.main()\n"))
	must(err)
	w.Fail(bundle.Meta{Kind: bundle.Metrics, Arm: "a", Time: t0.Add(time.Second)}, errors.New("connection refused"))
	s, err := w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: "a", Time: t0}, "jsonl")
	must(err)
	must(s.JSON(bundle.NodeStatus{Time: t0, Node: "n", Status: "True"}))
	s.Alive(t0.Add(time.Minute))
	s.Gap(t0.Add(10*time.Second), t0.Add(20*time.Second), "watch closed")
	s.Suppressed(3)
	phase(w, 0, "", "steady")
	phase(w, 10*time.Second, "a", "fault")
	phase(w, 30*time.Second, "", "end")
}

// The output of a command that failed may be anything.
func TestErrorsThatAreNoText(t *testing.T) {
	w := create(t)
	w.Fail(bundle.Meta{Kind: bundle.Heap, Arm: "a"}, errors.New("curl printed \x1f\x8b\xff\xfe"))
	s, err := w.Stream(bundle.Meta{Kind: bundle.Nodes, Arm: "a"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s.Gap(time.Now(), time.Now(), "it said \xc0")
	if err := errors.Join(s.Close(), w.Seal()); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Artifacts(bundle.Query{Kind: bundle.Heap})[0].Error; got != "curl printed \x1f\uFFFD" {
		t.Errorf("the error reads %q", got)
	}
}

func TestSealedBundleReadsAsItWasLive(t *testing.T) {
	w := create(t)
	fill(t, w)
	live := w.View()
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(moved, os.DirFS(w.Dir())); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(moved)
	if err != nil {
		t.Fatal(err)
	}
	dump := func(v bundle.View) string {
		win, ok := v.Phase("a", "fault")
		n, known := v.Constant("a", "cap")
		out, err := json.Marshal([]any{v.Artifacts(bundle.Query{}), v.Timeline(), v.World(), win, ok, n, known})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range v.Artifacts(bundle.Query{}) {
			if a.Path != "" {
				out = append(out, read(t, v, a)...)
			}
		}
		return string(out)
	}
	if a, b := dump(live), dump(sealed); a != b {
		t.Errorf("live:\n%s\nsealed:\n%s", a, b)
	}
	if got := string(sealed.PlanJSON()); got != `{"scenario":"x"}` {
		t.Errorf("plan is %s", got)
	}
	got := sealed.Artifacts(bundle.Query{Kind: bundle.Nodes, Arm: "a"})
	if len(got) != 1 || got[0].Coverage == nil || got[0].Coverage.Suppressed != 3 || !got[0].Coverage.Last.Equal(t0.Add(time.Minute)) {
		t.Fatalf("the stream came back as %+v", got)
	}
	if c := got[0].Coverage; c.Covers(t0, t0.Add(30*time.Second), 0) || !c.Covers(t0.Add(20*time.Second), t0.Add(time.Minute), 0) {
		t.Errorf("coverage %+v does not know its gap", c)
	}
	if got := sealed.Artifacts(bundle.Query{Kind: bundle.Metrics}); len(got) != 1 || got[0].Error != "connection refused" {
		t.Errorf("the failed capture came back as %+v", got)
	}
}

func TestPhases(t *testing.T) {
	w := create(t)
	phase(w, 0, "", "steady")
	phase(w, 1*time.Second, "", "baseline")
	phase(w, 2*time.Second, "a", "fault")
	phase(w, 3*time.Second, "b", "fault")
	phase(w, 5*time.Second, "a", "recovery")
	v := w.View()
	at := func(n int) time.Time { return t0.Add(time.Duration(n) * time.Second) }
	check := func(arm, name string, start, end time.Time) {
		t.Helper()
		got, ok := v.Phase(arm, name)
		if !ok || !got.Start.Equal(start) || !got.End.Equal(end) {
			t.Errorf("%s of %q: %v %v, want %v to %v", name, arm, got, ok, start, end)
		}
	}
	check("a", "steady", at(0), at(1))
	check("a", "fault", at(2), at(5))
	check("b", "fault", at(3), time.Time{})
	check("", "fault", at(2), time.Time{})
	if _, ok := v.Phase("b", "recovery"); ok {
		t.Error("a phase that never began has a window")
	}
	phase(w, 9*time.Second, "", "end")
	check("b", "fault", at(3), at(9))
	check("", "fault", at(2), at(9))
	check("", "recovery", at(5), at(9))
	check("a", "recovery", at(5), at(9))
}

func TestStreamIsReadableWhileItGrows(t *testing.T) {
	w := create(t)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Journal, Arm: "a"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	v := w.View()
	a := v.Artifacts(bundle.Query{Kind: bundle.Journal})[0]
	for i, want := range []string{"one\n", "one\ntwo\n"} {
		if err := s.Line([]byte([]string{"one", "two\n"}[i])); err != nil {
			t.Fatal(err)
		}
		if got := read(t, v, a); got != want {
			t.Errorf("after line %d the stream reads %q, want %q", i+1, got, want)
		}
	}
}

func TestDamage(t *testing.T) {
	cases := []struct {
		name string
		harm func(t *testing.T, dir string)
		want string
	}{
		{"changed byte in an artifact", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "artifacts"), "goroutines") }, "was changed: SHA-256"},
		{"changed byte in the timeline", func(t *testing.T, dir string) { flip(t, dir, "timeline") }, "timeline.jsonl was changed"},
		{"unlisted file", func(t *testing.T, dir string) { put(t, dir, "artifacts/extra.txt", "x") }, "artifacts/extra.txt is not listed in manifest.json"},
		{"link", func(t *testing.T, dir string) {
			if err := os.Symlink("plan.json", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
		}, "link is a link or a special file"},
		{"no manifest", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "manifest.json")) }, "never sealed"},
		{"manifest cut off", func(t *testing.T, dir string) { put(t, dir, "manifest.json", `{"schema":`) }, "manifest.json is broken: unexpected EOF"},
		{"manifest edited", func(t *testing.T, dir string) { edit(t, dir, `"phase": "fault"`, `"phase": "never"`) }, "not as it was written"},
		{"manifest with an unknown field", func(t *testing.T, dir string) { edit(t, dir, `"files"`, `"fails"`) }, "unknown field"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := create(t)
			fill(t, w)
			if err := w.Seal(); err != nil {
				t.Fatal(err)
			}
			c.harm(t, w.Dir())
			_, err := bundle.Open(w.Dir())
			var damage *bundle.DamageError
			if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a DamageError with %q", err, c.want)
			}
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, dir, old, new string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("editing the manifest: %v, %q not found", err, old)
	}
	put(t, dir, "manifest.json", strings.Replace(string(b), old, new, 1))
}

// flip changes one byte of the file whose name contains part.
func flip(t *testing.T, dir, part string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+part+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v %v", part, files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(files[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestMissingArtifactIsMarked(t *testing.T) {
	w := create(t)
	fill(t, w)
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	a := w.View().Artifacts(bundle.Query{Kind: bundle.Goroutines2})[0]
	if err := os.Remove(filepath.Join(w.Dir(), a.Path)); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	got := v.Artifacts(bundle.Query{Kind: bundle.Goroutines2})
	if len(got) != 1 || !got[0].Missing {
		t.Fatalf("got %+v, want it marked missing", got)
	}
	if _, err := v.Open(got[0]); err == nil || !strings.Contains(err.Error(), "listed in the manifest and not on disk") {
		t.Errorf("opening a missing artifact: %v", err)
	}
}

func TestPathThatLeavesTheBundleIsRefused(t *testing.T) {
	w := create(t)
	fill(t, w)
	v := w.View()
	put(t, filepath.Dir(w.Dir()), "outside.txt", "secret")
	if _, err := v.Open(bundle.Artifact{Path: "../outside.txt", Size: 6}); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("reading outside the bundle: %v", err)
	}
}

func TestSealedWriterRefuses(t *testing.T) {
	w := create(t)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Journal}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(bundle.Meta{Kind: bundle.Metrics}, "txt", strings.NewReader("x"))
	for what, err := range map[string]error{"Write": err, "Line": s.Line([]byte("x")), "Seal": w.Seal(),
		"SetWorld": w.SetWorld(bundle.World{}), "PutPlan": w.PutPlan([]byte("{}"))} {
		if !errors.Is(err, bundle.ErrSealed) {
			t.Errorf("%s after Seal: %v", what, err)
		}
	}
	if _, err := bundle.Create(w.Dir()); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("creating a bundle over another: %v", err)
	}
}

func TestFailedReadLeavesNoFile(t *testing.T) {
	w := create(t)
	r := io.MultiReader(strings.NewReader("half a dump\n"), failing{})
	if _, err := w.Write(bundle.Meta{Kind: bundle.Metrics}, "txt", r); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Open(w.Dir()); err != nil {
		t.Errorf("the half of a failed capture was left: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("cut off") }

func TestConcurrentUse(t *testing.T) {
	w := create(t)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Journal, Arm: "a"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				s.Line([]byte("line"))
				s.Alive(time.Now())
				w.Emit(event.Event{Type: event.Note, Message: "x"})
				w.Write(bundle.Meta{Kind: bundle.Metrics, Arm: "a"}, "txt", strings.NewReader("m 1\n"))
				w.View().Artifacts(bundle.Query{})
				w.View().Phase("a", "fault")
			}
			if i == 0 {
				w.Fail(bundle.Meta{Kind: bundle.Metrics}, errors.New("x"))
			}
		})
	}
	wg.Wait()
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	v, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.Artifacts(bundle.Query{Kind: bundle.Metrics})); n != 161 {
		t.Errorf("%d metrics artifacts, want 161", n)
	}
}
