package loads_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/inject/loads"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// requests decodes and validates a load of the kind.
func requests(t *testing.T, spec string) (*loads.Requests, error) {
	t.Helper()
	l, err := kinds.Decode[load.Load](kinds.Load, "requests", json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	return l.(*loads.Requests), l.(*loads.Requests).Validate()
}

// asked starts a load and returns its end.
func (w *world) asked(t *testing.T, spec string) (done <-chan error, cancel func()) {
	t.Helper()
	l, err := requests(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(t.Context(), w.target()); err != nil {
		t.Fatal(err)
	}
	return w.start(t, l)
}

func TestRequestsSpec(t *testing.T) {
	for _, tc := range []struct{ spec, says string }{
		{`{"path":"/healthz"}`, "1 rounds of 1 calls at once: GET /healthz"},
		{`{"path":"/x","calls":6,"rounds":30,"method":"DELETE","timeout":"2s"}`, "30 rounds of 6 calls at once: DELETE /x, each within 2s"},
		{`{"path":"/x?watch=1","calls":6,"rate":2.5,"parallel":3,"cutAfter":"1m"}`,
			"1 rounds of 6 calls at 2.5 a second, at most 3 under way: GET /x?watch=1, cut off by the client after 1m0s"},
		{`{"path":"/x","method":"FETCH"}`, `method is "FETCH" (want one of GET, HEAD, POST, PUT, PATCH, DELETE)`},
		{`{"path":"/x","body":{}}`, "body stands beside method GET, which sends none"},
		{`{"path":"/x","method":"POST","body":null}`, "body is null (want a value, a text, or no body at all)"},
		{`{"path":"/x","method":"PATCH","body":{}}`, "headers has no Content-Type, which says what kind of patch it is"},
		{`{"path":"/x","method":"PATCH","body":{},"headers":{"content-type":"a/b"}}`, "1 rounds of 1 calls at once: PATCH /x"},
		{`{"path":"/x","calls":0}`, "calls is 0 and rounds 1 (want at least 1)"},
		{`{"path":"/x","rate":-1}`, "rate is -1 and parallel 0 (want 0 or more)"},
		{`{"path":"/x","timeout":"1500ms"}`, "timeout is 1.5s (want whole seconds, from 1s to 30s)"},
		{`{"path":"/x","timeout":"31s"}`, "timeout is 31s (want whole seconds, from 1s to 30s)"},
		{`{"path":"/x","cutAfter":"-1s"}`, "cutAfter is -1s (want above 0)"},
		{`{"path":"x"}`, `path is "x" (want one of the API, with its query: /api/v1/pods?watch=1)`},
		{`{"path":"//host/x"}`, `path is "//host/x" (want one of the API`},
		{`{"path":"/%zz"}`, `path is "/%zz": parse "/%zz": invalid URL escape "%zz"`},
		{`{"path":"/x?timeout=3s","timeout":"2s"}`, `path is "/x?timeout=3s", which has a timeout beside the field timeout`},
	} {
		l, err := requests(t, tc.spec)
		says := l.Describe()
		if err != nil {
			says = err.Error()
		}
		if !strings.HasPrefix(says, tc.says) {
			t.Errorf("%s\ngot  %s\nwant %s", tc.spec, says, tc.says)
		}
	}
}

// What is sent is what the scenario says, with the number of the call and the arm.
func TestRequestsAreSentAsTheScenarioSays(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var got []string
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, fmt.Sprintf("%s %s %s %s", r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("X-Of"), body))
		mu.Unlock()
		status(http.StatusConflict, metav1.StatusReasonAlreadyExists, "it is there")(rw, r)
		return true
	})
	done, _ := w.asked(t, `{"method":"PUT","path":"/apis/g/v1/a%2Fb/$(arm)-$(n)?force=1","headers":{"X-Of":"$(arm)"},`+
		`"body":{"metadata":{"name":"t-$(n)"},"n":"$(n)"},"calls":2,"rounds":2,"timeout":"3s","parallel":1}`)
	ends(t, done)
	var want []string
	for n := range 4 {
		want = append(want, fmt.Sprintf(`/apis/g/v1/a%%2Fb/vulnerable-%d?force=1&timeout=3s application/json vulnerable {"metadata":{"name":"t-%d"},"n":"%d"}`, n, n, n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %q\nwant %q", got, want)
	}
	calls, sum, _ := w.recorded(t)
	for i, c := range calls {
		if c.Verb != "PUT" || c.Path != fmt.Sprintf("/apis/g/v1/a%%2Fb/vulnerable-%d?force=1", i) || c.Code != 409 || c.Reason != "AlreadyExists" ||
			c.Error != "it is there" || c.GaveUp || c.Done.Before(c.Time) {
			t.Errorf("recorded %+v", c)
		}
	}
	if len(calls) != 4 || sum.Planned != 4 || sum.Codes["409"] != 4 || sum.Way != "PUT /apis/g/v1/a%2Fb/$(arm)-$(n)?force=1" || sum.Bytes != 35 {
		t.Errorf("%d calls, %+v", len(calls), sum)
	}
	w.wants(t, "1 over") // a refusal is no effect
}

func TestATextIsSentAsItIs(t *testing.T) {
	w := newWorld(t)
	got := make(chan string, 1)
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("Content-Type") + " " + string(body)
		return true
	})
	done, _ := w.asked(t, `{"method":"PATCH","path":"/x","headers":{"Content-Type":"application/json"},"body":"{\"n\": $(n)}"}`)
	if sent := controltest.Soon(t, "the request", got); sent != `application/json {"n": 0}` {
		t.Errorf("sent %q", sent)
	}
	ends(t, done)
}

// A watch takes effect when it is open, not when it ends, and the client's end of it is recorded as such.
func TestAWatchIsHeldOpen(t *testing.T) {
	w := newWorld(t)
	w.overHTTP2(t)
	done, _ := w.asked(t, `{"path":"/api/v1/namespaces?watch=1","cutAfter":"2s","calls":3}`)
	w.wants(t, "1 began")
	select {
	case <-done:
		t.Error("it began when it was over")
	default:
	}
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	for _, c := range calls {
		if took := c.Done.Sub(c.Time); c.Code != 200 || !c.GaveUp || c.LoadEnded || took < 1900*time.Millisecond { // its own limit runs from a moment before its time is taken
			t.Errorf("a watch that was held for %s is recorded as %+v", took, c)
		}
	}
	if len(calls) != 3 || sum.Codes["200"] != 3 {
		t.Errorf("%d calls, %+v", len(calls), sum)
	}
}

func TestCallsThatTheClientCutsOff(t *testing.T) {
	w := newWorld(t)
	w.API().Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		return true
	})
	done, _ := w.asked(t, `{"path":"/x","cutAfter":"500ms","calls":2,"rounds":2}`)
	for _, want := range []string{"1 began", "1 over", "2 began", "2 over"} {
		w.wants(t, want)
	}
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	for _, c := range calls {
		if c.Code != 0 || !c.GaveUp || c.LoadEnded || c.Error == "" {
			t.Errorf("recorded %+v", c)
		}
	}
	if len(calls) != 4 || sum.Codes["none"] != 4 {
		t.Errorf("%d calls, %+v", len(calls), sum)
	}
}

// A server that nobody can reach gets no request, so that there is nothing to cut off.
func TestRequestsToNoServer(t *testing.T) {
	w := newWorld(t)
	w.Close()
	done, _ := w.asked(t, `{"path":"/x","cutAfter":"10s"}`)
	ends(t, done)
	w.wants(t, "1 over")
	if calls, _, _ := w.recorded(t); len(calls) != 1 || calls[0].Code != 0 || calls[0].GaveUp || calls[0].Error == "" {
		t.Errorf("recorded %+v", calls)
	}
}

// The end of the load's time tells nothing about the server, and the record says so.
func TestTheEndOfALoadIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	g := w.hold(timeout)
	done, cancel := w.asked(t, `{"method":"DELETE","path":"/api/v1/namespaces/relapse-deletions/configmaps","rounds":3,"cutAfter":"1h"}`)
	controltest.Soon(t, "the call", g.arrived)
	cancel()
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	if len(calls) != 1 || !calls[0].GaveUp || !calls[0].LoadEnded || calls[0].Code != 0 || sum.Planned != 3 {
		t.Errorf("%+v, %+v", calls, sum)
	}
}

func TestAtMostSoManyCallsAreUnderWay(t *testing.T) {
	w := newWorld(t)
	var under, most atomic.Int64
	two := make(chan struct{})
	w.API().Intercept(func(http.ResponseWriter, *http.Request) bool {
		n := under.Add(1)
		defer under.Add(-1)
		if n == 2 && most.Swap(2) == 0 {
			close(two)
		}
		if n > 2 {
			most.Store(n)
		}
		<-two
		return true
	})
	done, _ := w.asked(t, `{"path":"/x","calls":12,"parallel":2}`)
	ends(t, done)
	if most.Load() != 2 {
		t.Errorf("%d calls were under way at once, want 2", most.Load())
	}
}

func TestRequestsAtARate(t *testing.T) {
	w := newWorld(t)
	w.API().Intercept(func(http.ResponseWriter, *http.Request) bool { return true })
	done, _ := w.asked(t, `{"path":"/x","calls":5,"rate":50}`)
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	r := sum.Rounds[0]
	for i, c := range slices.SortedFunc(slices.Values(calls), func(a, b bundle.Call) int { return a.Time.Compare(b.Time) }) {
		if due := r.Start.Add(time.Duration(i) * 20 * time.Millisecond); c.Time.Before(due) {
			t.Errorf("call %d was sent at %s, before it was due at %s", i, c.Time, due)
		}
	}
	if len(calls) != 5 || r.Wanted != 50 || r.Rate <= 0 {
		t.Errorf("%d calls, %+v", len(calls), r)
	}
}
