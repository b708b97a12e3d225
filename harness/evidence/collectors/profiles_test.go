package collectors_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// asked is a component that remembers what it was asked for.
type asked struct {
	component
	path string
}

func (a *asked) Get(ctx context.Context, path string) (io.ReadCloser, error) {
	a.path = path
	return a.component.Get(ctx, path)
}

// snapshot takes one and returns its only artifact with its content.
func snapshot(t *testing.T, kind, spec string, c cluster.Component) (bundle.Artifact, []byte, error) {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := kinds.Decode[capture.Collector](kinds.Collector, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	failed := k.(capture.Snapshotter).Snapshot(t.Context(), capture.Target{Arm: "fixed", Node: node{}, Component: c}, w)
	all := w.View().Artifacts(bundle.Query{})
	if len(all) != 1 {
		t.Fatalf("it left %d artifacts: %+v", len(all), all)
	}
	if failed != nil {
		return all[0], nil, failed
	}
	r, err := w.View().Open(all[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all[0], b, nil
}

// What is asked for, and that a profile comes into the bundle byte by byte, redaction or not.
func TestProfiles(t *testing.T) {
	var heap bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&heap, 0); err != nil {
		t.Fatal(err)
	}
	for kind, wantPath := range map[bundle.Kind]string{bundle.Heap: "/debug/pprof/heap?gc=1",
		bundle.CPU: "/debug/pprof/profile?seconds=7"} {
		c := &asked{component: component{get: func(context.Context) (string, error) { return heap.String(), nil }}}
		spec := map[bundle.Kind]string{bundle.CPU: `{"seconds":7}`}[kind]
		a, b, err := snapshot(t, string(kind), spec, c)
		if err != nil || c.path != wantPath || a.Kind != kind || filepath.Ext(a.Path) != ".gz" {
			t.Errorf("%s: asked for %q, got %+v, %v", kind, c.path, a, err)
		}
		if !bytes.Equal(b, heap.Bytes()) {
			t.Errorf("%s: the bundle has %d other bytes than the %d of the profile", kind, len(b), heap.Len())
		}
	}
}

// A CPU profile has its own time on top of what any question has, and no more.
func TestCPUProfileTakesItsTime(t *testing.T) {
	for _, tc := range []struct {
		seconds int
		took    time.Duration
		want    string
	}{
		{30, 45 * time.Second, "<nil>"},
		{30, time.Minute, "/debug/pprof/profile?seconds=30 of kubelet on worker: context deadline exceeded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, _, err := snapshot(t, "cpu", fmt.Sprintf(`{"seconds":%d}`, tc.seconds),
				&component{get: func(ctx context.Context) (string, error) {
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(tc.took):
						return "profile", nil
					}
				}})
			if got := fmt.Sprint(err); got != tc.want {
				t.Errorf("after %s: got %s, want %s", tc.took, got, tc.want)
			}
		})
	}
	for seconds, want := range map[int]string{0: "seconds is 0 (want 1 to 60)", 61: "seconds is 61 (want 1 to 60)",
		60: "<nil>"} {
		if got := fmt.Sprint((&collectors.CPU{Seconds: seconds}).Validate()); got != want {
			t.Errorf("%d seconds: got %s, want %s", seconds, got, want)
		}
	}
}
