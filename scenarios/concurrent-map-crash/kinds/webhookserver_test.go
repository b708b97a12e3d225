package kinds

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/webhook"
)

// The webhooks record what they answered, and what they were asked and never answered.
func TestWebhooksRecordWhatTheyWereAsked(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := webhook.NewRecord(w, "fixed", "control-plane")
	if err != nil {
		t.Fatal(err)
	}
	s, err := serveWebhooks("127.0.0.1", 3, record)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(s.Client("").CABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	ask := func(path, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if path == hangs {
			go func() { // it is never answered
				for s.held.Load() == 0 && ctx.Err() == nil {
					time.Sleep(5 * time.Millisecond) // polls: that the request is held is announced by nothing else
				}
				cancel()
			}()
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, *s.Client(path).URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	const about = `{"request":{"uid":"u1","namespace":"relapse-creations","name":"item-00007"}}`
	ask(annotatesFirst, "no review")
	for _, path := range []string{annotatesFirst, annotatesLast, hangs} {
		ask(path, about)
	}
	if s.held.Load() != 1 {
		t.Errorf("%d requests were held, want 1", s.held.Load())
	}
	record.End()
	record.End()
	record.Add(bundle.Review{Object: "too late"})
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	arts := sealed.Artifacts(bundle.Query{Kind: bundle.Reviews, Arm: "fixed", Node: "control-plane"})
	if len(arts) != 1 {
		t.Fatalf("%d records, want 1", len(arts))
	}
	rc, err := sealed.Open(arts[0])
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	var got []bundle.Review
	for sc := bufio.NewScanner(rc); sc.Scan(); {
		var r bundle.Review
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Time.IsZero() || r.Object != "relapse-creations/item-00007" {
			t.Errorf("a review without its time or its object: %+v", r)
		}
		r.Time, r.Object = time.Time{}, ""
		got = append(got, r)
	}
	if len(got) != 3 || got[0] != (bundle.Review{Mutating: true, Annotations: 3}) || got[1] != (bundle.Review{Annotations: 3}) || got[2] != (bundle.Review{}) {
		t.Errorf("the record is %+v", got)
	}
}
