package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A bundle may be refused, or be too large to get through, because of what the incident did. Were its trial made again, it
// would be repeated until it comes out well.
func TestABundleThatDoesNotGetThroughIsLost(t *testing.T) {
	r, _, _ := farRun(t)
	dir := sealedBundle(t, r, "001", runName)
	refuses := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet && q.URL.Path == "/v2/" {
				return
			}
			w.WriteHeader(code)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(proxy.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	nobody := strings.TrimPrefix(away.URL, "http://")
	away.Close()
	for _, c := range []struct {
		name, host string
		lost       bool
	}{
		{"too large", refuses(http.StatusRequestEntityTooLarge), true},
		{"a registry whose disk is full", refuses(http.StatusInsufficientStorage), true},
		{"a proxy that lets the question for a registry through, and no bundle", refuses(http.StatusServiceUnavailable), true},
		{"a proxy whose registry is away", strings.TrimPrefix(proxy.URL, "http://"), false},
		{"nobody listens", nobody, false},
	} {
		to := Registry{Repository: c.host + "/x", Insecure: true}
		_, err := to.pushBundle(t.Context(), "one", dir, false)
		if err == nil {
			t.Fatalf("%s: it was pushed", c.name)
		}
		lost := (*LostError)(nil)
		if got := lostUnlessOutside(t.Context(), err); errors.As(got, &lost) != c.lost {
			t.Errorf("%s: lost is %v, want %v: %v", c.name, !c.lost, c.lost, got)
		}
	}

	recorder := Recorder{Folder: t.TempDir(), Hold: time.Millisecond, Events: r.Events}
	lost := (*LostError)(nil)
	if err := recorder.deliver(t.Context(), dir, &Report{Trial: "001"}); !errors.As(err, &lost) || !strings.Contains(err.Error(), "nobody fetched the bundle within 1ms") {
		t.Errorf("that nobody fetched: %v", err)
	}
	told, end := context.WithCancel(t.Context())
	end()
	recorder.Hold = time.Hour
	if err := recorder.deliver(told, dir, &Report{Trial: "001"}); err == nil || errors.As(err, &lost) {
		t.Errorf("a pod that was told to end: %v, want it to begin again", err)
	}
}

// A registry that breaks under a bundle is away at the next try, which must not pass for an outage.
func TestARegistryThatBreaksUnderABundle(t *testing.T) {
	r, _, _ := farRun(t)
	dir := sealedBundle(t, r, "001", runName)
	broken := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case broken:
			w.WriteHeader(http.StatusServiceUnavailable)
		case q.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		case q.Method != http.MethodGet:
			broken = true
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	to := Registry{Repository: strings.TrimPrefix(s.URL, "http://") + "/x", Insecure: true}
	push := func(ctx context.Context) (string, error) { return to.pushBundle(ctx, "one", dir, false) }
	var last error
	_, err := tryFor(t.Context(), 5*time.Second, time.Millisecond, func(ctx context.Context) (string, error) {
		digest, err := push(ctx)
		last = err
		return digest, err
	})
	lost := (*LostError)(nil)
	if got := lostUnlessOutside(t.Context(), err); !errors.As(got, &lost) {
		t.Errorf("it begins again: %v", got)
	}
	if !nothingSent(last) {
		t.Errorf("the last try got through, and this test is about nothing: %v", last)
	}
	if _, err := tryFor(t.Context(), time.Second, time.Millisecond, push); err == nil || errors.As(lostUnlessOutside(t.Context(), err), &lost) {
		t.Errorf("that was away for all of the time, and the trial is lost: %v", err)
	}
}
