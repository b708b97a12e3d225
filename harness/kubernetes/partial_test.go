package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/ledger"
)

// underWay is a trial that goes on in a pod.
type underWay struct {
	at     string // the folder of its bundle
	writer *bundle.Writer
	stream *bundle.Stream
	events *event.Stream
	end    func()
	said   *strings.Builder // aside
}

// begin begins trial 001 in a pod, whose recorder delivers by a way. It ends with the test.
func begin(t *testing.T, r *Run, n nodes, pod string) *underWay {
	t.Helper()
	u := &underWay{at: filepath.Join(t.TempDir(), "001"), events: event.NewStream(), said: &strings.Builder{}}
	recorder := Recorder{Run: runName, Pod: pod, Events: u.events, Aside: event.NewStream(&event.Lines{W: u.said}), Registry: registryOf(r.Job)}
	if r.Job.Storage != "" {
		recorder.Folder = filepath.Join(n.volume(), runName)
	}
	u.end = recorder.whileItGoesOn(t.Context(), "001", u.at)
	t.Cleanup(u.end)
	var err error
	if u.writer, err = bundle.Create(u.at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.events.Attach(u.writer))
	if err := u.writer.SetWorld(bundle.World{Run: runName}); err != nil {
		t.Fatal(err)
	}
	if u.stream, err = u.writer.Stream(bundle.Meta{Kind: bundle.Configz}, "jsonl"); err != nil {
		t.Fatal(err)
	}
	return u
}

// enter has the trial see a line and enter a phase, and waits until that was delivered.
func (u *underWay) enter(t *testing.T, r *Run, phase string) {
	t.Helper()
	if err := u.stream.Line([]byte("before " + phase)); err != nil {
		t.Fatal(err)
	}
	u.events.Emit(event.Event{Type: event.Phase, Message: phase})
	for {
		p, err := r.fetchPartial(t.Context(), "001", "")
		if err == nil && p.Phase == phase {
			return
		}
		if err != nil && !errors.Is(err, errAbsent) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // another goroutine delivers
	}
}

// What a trial had seen can be looked at when its pod is gone, and its trial is lost all the same.
func TestWhatALostTrialHadSeen(t *testing.T) {
	for _, w := range ways[:2] {
		t.Run(w.name, func(t *testing.T) {
			r, client, n := runBy(t, w)
			u := begin(t, r, n, "a")
			u.enter(t, r, "steady")
			u.enter(t, r, "baseline")
			u.enter(t, r, "fault")
			if err := u.stream.Line([]byte("never delivered")); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(r.Dir.Path(), PartialDir)); err != nil { // of the waiting above
				t.Fatal(err)
			}
			killed := pod("a", corev1.PodFailed, 137, "")
			killed.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
			add(t, client, "0", killed)
			for i, name := range []string{"b", "c"} { // they had delivered nothing
				add(t, client, []string{"1", "2"}[i], pod(name, corev1.PodFailed, 1, `{"why":"the disk is full"}`))
			}
			if err := r.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			x, err := bundle.ReadIndex(r.Dir.Path())
			if err != nil {
				t.Fatal(err)
			}
			want := bundle.LostTrial{ID: "001", Pair: "p", Why: "its recorder ended with exit code 137 (OOMKilled)",
				Seen: "what it had seen when its phase fault began is in partial/001"}
			if len(x.Trials) != 0 || len(x.Lost) != 3 || x.Lost[0] != want || x.Lost[1].Seen != "" {
				t.Errorf("lost are %+v, want first %+v; %d trials", x.Lost, want, len(x.Trials))
			}
			files := contents(t, filepath.Join(r.Dir.Path(), PartialDir, "001"))
			name := slices.Collect(func(yield func(string) bool) {
				for name, text := range files {
					if strings.HasPrefix(name, "artifacts/") && text == "before steady\nbefore baseline\nbefore fault\n" && !yield(name) {
						return
					}
				}
			})
			if len(name) != 1 || !strings.Contains(files[bundle.TimelineFile], `"message":"baseline"`) || !strings.Contains(files[bundle.WorldFile], runName) {
				t.Errorf("here is of what it had seen:\n%v", files)
			}
			if u.said.Len() > 0 || strings.Contains(files[bundle.TimelineFile], "deliver") {
				t.Errorf("said %q; deliveries are no evidence:\n%s", u.said, files[bundle.TimelineFile])
			}
			v, err := harness.Conclude(harness.Options{}, r.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(v.Sentence, PartialDir) {
				t.Errorf("its verdict says: %s", v.Sentence)
			}
			if says := "trial 001: " + want.Seen + ", and counts for nothing"; v.ExitCode != 3 || !slices.Contains(v.Deviates, says) {
				t.Errorf("%s, weakened by %q; want %q", v.LastLine(), v.Deviates, says)
			}
		})
	}
}

// Another pod of a trial may have seen something else than the one that lost it.
func TestWhatAnotherPodSawIsLeft(t *testing.T) {
	r, _, n := runBy(t, ways[0])
	u := begin(t, r, n, "b")
	u.enter(t, r, "steady")
	if seen := r.seenOf(t.Context(), "001", "a"); seen != "" {
		t.Errorf("of the pod a it says %q", seen)
	}
	if seen := r.seenOf(t.Context(), "001", "b"); seen != "what it had seen when its phase steady began is in partial/001" {
		t.Errorf("of the pod b it says %q", seen)
	}
}

// A layer has what is new since the one before it, and a bundle is the same archive whatever was delivered before.
func TestEachPhaseIsALayer(t *testing.T) {
	r, client, n := runBy(t, ways[0])
	u := begin(t, r, n, "a")
	u.enter(t, r, "steady")
	if _, err := u.writer.Write(bundle.Meta{Kind: bundle.Goroutines1}, "txt", strings.NewReader("goroutine 1")); err != nil {
		t.Fatal(err)
	}
	u.enter(t, r, "baseline")
	ref, err := registryOf(r.Job).tagged(partialTag(runName, "001"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers after two phases, %v", len(layers), err)
	}
	in, err := layers[1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second")
	if err := errors.Join(unpack(in, second, os.O_EXCL), in.Close()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range contents(t, second) {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"artifacts/00001-configz.jsonl", "artifacts/00002-goroutines.debug1.txt", partialFile, bundle.TimelineFile}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("the second layer differs (-want +got):\n%s", diff)
	}
	u.end()
	if err := u.writer.Seal(); err != nil {
		t.Fatal(err)
	}
	layer, err := bundleLayer(u.at)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag := bundleTag(runName, "001")
	if _, err := registryOf(r.Job).pushBundle(t.Context(), tag, u.at, false); err != nil {
		t.Fatal(err)
	}
	at, err := registryOf(r.Job).tagged(tag)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := remote.Image(at)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := whole.Layers(); err != nil || len(all) != 1 {
		t.Errorf("the bundle has %d layers, %v", len(all), err)
	} else if got, err := all[0].Digest(); err != nil || got != alone {
		t.Errorf("its archive is %s, %v; want %s", got, err, alone)
	}
	if err := Remove(t.Context(), client, nil, ledgerOf(r)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.fetchPartial(t.Context(), "001", ""); !errors.Is(err, errAbsent) {
		t.Errorf("after clean there is something of trial 001: %v", err)
	}
}

// Neither a registry that never answers nor one that refuses keeps a trial from going on.
func TestADeliveryThatFailsIsNoFailureOfTheTrial(t *testing.T) {
	asked := make(chan struct{}, 100)
	for _, answer := range []http.HandlerFunc{
		func(_ http.ResponseWriter, q *http.Request) { asked <- struct{}{}; <-q.Context().Done() },
		func(w http.ResponseWriter, _ *http.Request) { asked <- struct{}{}; w.WriteHeader(http.StatusForbidden) },
	} {
		s := httptest.NewServer(answer)
		r, _, n := runBy(t, ways[0])
		r.Job.Registry = strings.TrimPrefix(s.URL, "http://") + "/x"
		u := begin(t, r, n, "a")
		u.events.Emit(event.Event{Type: event.Phase, Message: "steady"})
		<-asked
		u.end()
		if err := u.writer.Seal(); err != nil {
			t.Error(err)
		}
		if strings.Contains(contents(t, u.at)[bundle.TimelineFile], "deliver") {
			t.Error("what the registry answers is in the evidence")
		}
		s.Close()
	}
}

// A volume has the bundle or what came before it, and not both.
func TestABundleReplacesWhatCameBeforeIt(t *testing.T) {
	r, _, n := runBy(t, ways[1])
	u := begin(t, r, n, "a")
	u.enter(t, r, "steady")
	u.end()
	ways[1].deliver(t, r, n, "a", "001", sealedBundle(t, r, "001", runName), false)
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 2 || !r.Dir.Has("001") {
		t.Errorf("%d are missing, %v; want 2, and trial 001 here", missing, err)
	}
	if _, err := os.Stat(filepath.Join(n.volume(), runName, partialName("001"))); !os.IsNotExist(err) {
		t.Errorf("what came before the bundle: %v", err)
	}
}

// What goes on can be looked at, too; no trial is taken for that.
func TestFetchOfWhatGoesOn(t *testing.T) {
	r, _, n := runBy(t, ways[0])
	u := begin(t, r, n, "a")
	u.enter(t, r, "steady")
	fetched, err := r.FetchPartial(t.Context())
	if err != nil || fetched != 1 || r.Dir.Has("001") || r.Dir.Lost("001") {
		t.Errorf("fetched %d, %v; here is 001: %v, lost: %v", fetched, err, r.Dir.Has("001"), r.Dir.Lost("001"))
	}
	if _, err := bundle.Open(filepath.Join(r.Dir.Path(), PartialDir, "001")); !errors.As(err, new(*bundle.DamageError)) {
		t.Errorf("what a trial has seen so far passes for a bundle: %v", err)
	}
	if err := ledger.RemoveIfEmpty(r.Dir.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir.Path(), PartialDir, "001", bundle.TimelineFile)); err != nil {
		t.Errorf("clean removes what was fetched to be looked at: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.FetchPartial(ctx); err == nil {
		t.Error("that the registry can't be asked is no error")
	}
}
