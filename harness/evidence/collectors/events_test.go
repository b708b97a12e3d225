package collectors_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// What events a broken watch kept from being seen in time is a gap, and they are recorded once when it is mended.
func TestEventsAfterABrokenWatch(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter, *http.Request){
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"silent": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"expired": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status: "Failure", Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &clustertest.Provider{InProcess: true}
				created, err := p.Create(t.Context(), "events",
					cluster.Topology{Nodes: []cluster.NodeSpec{{Name: "worker", Role: cluster.Worker}}})
				if err != nil {
					t.Fatal(err)
				}
				api := created.(*clustertest.Cluster).API()
				w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- (&collectors.Events{}).Stream(ctx, capture.Target{Arm: bundle.Shared, Cluster: created}, w)
				}()
				api.AddEvent(&corev1.Event{Reason: "Before"})
				time.Sleep(time.Minute)
				var broken atomic.Bool
				broken.Store(true)
				api.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
					if !broken.Load() || r.URL.Query().Get("watch") == "" {
						return false
					}
					refuse(w, r)
					return true
				})
				api.BreakWatches()
				began := time.Now()
				time.Sleep(time.Second)
				api.AddEvent(&corev1.Event{Reason: "Meanwhile"})
				if name == "expired" { // it is listed anew, and then one is missing again
					time.Sleep(time.Second)
					api.AddEvent(&corev1.Event{Reason: "Later"})
				}
				time.Sleep(30 * time.Second)
				broken.Store(false)
				time.Sleep(time.Minute)
				stop()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				a := w.View().Artifacts(bundle.Query{Kind: bundle.Events})[0]
				got, want := recordedEvents(t, w, a), []string{"Before", "Meanwhile"}
				if name == "expired" {
					want = append(want, "Later")
				}
				if !slices.Equal(got, want) {
					t.Errorf("it recorded %q, want %q", got, want)
				}
				if a.Coverage.Covers(began, began.Add(30*time.Second), time.Second) ||
					!a.Coverage.Covers(began.Add(-50*time.Second), began.Add(-10*time.Second), time.Second) ||
					!a.Coverage.Covers(began.Add(50*time.Second), began.Add(80*time.Second), time.Second) {
					t.Errorf("the watch broke at %s for 31s, and it covers %+v", began, a.Coverage)
				}
				if err := p.Delete(t.Context(), "events"); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// recordedEvents are the reasons of the events on record.
func recordedEvents(t *testing.T, w *bundle.Writer, a bundle.Artifact) (out []string) {
	t.Helper()
	r, err := w.View().Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for d := json.NewDecoder(r); d.More(); {
		var e bundle.Stamped[*corev1.Event]
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Value.Reason)
	}
	return out
}
