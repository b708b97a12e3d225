package collectors_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// What an endpoint says other than 200 is evidence; that it says nothing is evidence too, and a gap.
func TestHealthTellsAnswersApart(t *testing.T) {
	c := clustertest.New("capture", cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "control-plane",
		Role: cluster.ControlPlane}}})
	t.Cleanup(c.Close)
	k := c.Component("control-plane", "kube-apiserver")
	k.Say("/livez", "ok")
	k.Answer("/readyz", func(string) ([]byte, error) {
		return nil, &cluster.StatusError{Path: "/readyz", Code: 500, Status: "500 Internal Server Error",
			Text: "[-]etcd failed"}
	})
	k.Answer("/gone", func(string) ([]byte, error) { return nil, errors.New("connection refused") })
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := kinds.Decode[capture.Collector](kinds.Collector, "health",
		json.RawMessage(`{"paths":["/livez","/readyz","/gone"],"interval":"50ms"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- h.(capture.Streamer).Stream(ctx, capture.Target{Arm: "fixed", Cluster: c, Node: k.Node(), Component: k}, w)
	}()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(samples(t, w)) < 6 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("there are no six samples within 20s")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	want := map[string]string{"/livez": "200 ", "/readyz": "500 [-]etcd failed",
		"/gone": "0 asking the kube-apiserver of capture-control-plane: GET /gone: connection refused"}
	for _, s := range samples(t, w) {
		if got := fmt.Sprint(s.Code, " ", s.Text); got != want[s.Path] || s.Done.Before(s.Time) {
			t.Errorf("%s: %s at %s to %s, want %s", s.Path, got, s.Time, s.Done, want[s.Path])
		}
	}
	if gaps := w.View().Artifacts(bundle.Query{Kind: bundle.Health})[0].Coverage.Gaps; len(gaps) > 0 {
		t.Errorf("there are the gaps %+v: a question without an answer is recorded as that", gaps)
	}
}

func samples(t *testing.T, w *bundle.Writer) (out []bundle.HealthSample) {
	t.Helper()
	found := w.View().Artifacts(bundle.Query{Kind: bundle.Health})
	if len(found) == 0 {
		return nil
	}
	r, err := w.View().Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var s bundle.HealthSample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestHealthValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`:                  "",
		`{"paths":[]}`:        "paths is empty (want at least one)",
		`{"paths":["livez"]}`: `paths has "livez" (want it to begin with a slash: /readyz)`,
		`{"interval":"0s"}`:   "interval is 0s (want above 0)",
	} {
		c, err := kinds.Decode[capture.Collector](kinds.Collector, "health", json.RawMessage(spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.(interface{ Validate() error }).Validate(); want == "" && err != nil || want != "" &&
			(err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}
