package loads_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// gate holds the collection deletes that reach the API server until it is opened; then it answers for them.
type gate struct {
	arrived chan *http.Request
	open    chan struct{}
	answer  func(http.ResponseWriter, *http.Request)
}

// hold puts a gate before the API server.
func (w *world) hold(answer func(http.ResponseWriter, *http.Request)) *gate {
	g := &gate{make(chan *http.Request, 100), make(chan struct{}), answer}
	w.API().Intercept(g.holds)
	return g
}

// holds stops the DELETE requests of the world's load; those of the test itself pass.
func (g *gate) holds(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodDelete || r.UserAgent() != "relapse/deletions" {
		return false
	}
	g.arrived <- r
	select {
	case <-g.open:
		g.answer(w, r)
	case <-r.Context().Done():
	}
	return true
}

// status answers with a code as an API server does.
func status(code int, reason metav1.StatusReason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
	}
}

var timeout = status(504, metav1.StatusReasonTimeout, "request did not complete within requested timeout")

func TestCalls(t *testing.T) {
	for _, proto := range []int{1, 2} {
		t.Run(fmt.Sprintf("HTTP%d", proto), func(t *testing.T) {
			w := newWorld(t)
			if proto == 2 {
				w.overHTTP2(t)
			}
			l := w.prepare(t, `{"items":40,"calls":8,"begun":5}`)
			g := w.hold(timeout)
			before := time.Now()
			done, _ := w.start(t, l)
			for range 8 { // with none of them answered, all have to be on their way at once
				if r := controltest.Soon(t, "the next call", g.arrived); r.URL.Path != "/api/v1/namespaces/relapse-deletions-1/configmaps" {
					t.Errorf("DELETE %s", r.URL)
				}
			}
			w.remove(t, "relapse-deletions-1", 4)
			w.silent(t, "after 4 deletions")
			w.remove(t, "relapse-deletions-1", 1)
			w.wants(t, "1 began")
			w.silent(t, "before any answer")
			close(g.open)
			ends(t, done)
			w.wants(t, "1 over")
			w.silent(t, "after the end")

			calls, sum, stream := w.recorded(t)
			if len(calls) != 8 {
				t.Fatalf("%d calls are recorded", len(calls))
			}
			for _, c := range calls {
				if c.Load != "deletions" || c.Round != 1 || c.Verb != "DELETECOLLECTION" || c.Path != "/api/v1/namespaces/relapse-deletions-1/configmaps" ||
					c.Code != 504 || c.Error != "request did not complete within requested timeout" || c.Time.Before(before.Round(0)) || !c.Done.After(c.Time) {
					t.Errorf("%+v", c)
				}
			}
			r := sum.Rounds[0]
			if sum.Name != "deletions" || sum.Way != "calls" || sum.Objects != 40 || sum.Bytes != 2048 || sum.Codes["504"] != 8 || len(sum.Codes) != 1 {
				t.Errorf("%+v", sum)
			}
			if r.Round != 1 || r.Calls != 8 || r.Wanted != 0 || r.Rate <= 1 || !inOrder(r.Start, r.Sent, r.Began, r.End) {
				t.Errorf("%+v", r)
			}
			if !stream.Coverage.Covers(r.Start, r.End, 0) {
				t.Errorf("the calls cover %+v, the round is %+v", stream.Coverage, r)
			}
			for _, want := range []string{
				"progress deletions: 40 of 40 ConfigMaps are there", "note deletions: round 1 began: 8 requests were written within ", "and 5 deletions seen ",
				"note deletions: round 1 is over after ", "its answers: 8 x 504",
			} {
				if !strings.Contains(w.events(), want) {
					t.Errorf("no event %q in:\n%s", want, w.events())
				}
			}
		})
	}
}

func inOrder(times ...time.Time) bool {
	return !times[0].IsZero() && slices.IsSortedFunc(times, time.Time.Compare)
}

// A call is one request, whatever the answer asks for.
func TestAnswersAreEvidence(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":10,"calls":6,"begun":1}`)
	var n atomic.Int64
	g := w.hold(func(rw http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			rw.Header().Set("Retry-After", "1")
			status(429, metav1.StatusReasonTooManyRequests, "please wait")(rw, r)
		case 2:
			rw.WriteHeader(503)
			fmt.Fprintln(rw, "no API server at all")
		case 3: // a server that is killed
			c, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		default:
			fmt.Fprint(rw, `{}`)
		}
	})
	close(g.open)
	done, _ := w.start(t, l)
	ends(t, done)
	if len(g.arrived) != 6 {
		t.Errorf("%d requests came for 6 calls", len(g.arrived))
	}
	w.wants(t, "1 over")
	calls, sum, _ := w.recorded(t)
	said := map[int]string{}
	for _, c := range calls {
		said[c.Code] = c.Error
	}
	if said[429] != "please wait" || said[503] != "no API server at all" || said[200] != "" || !strings.Contains(said[0], "EOF") || len(said) != 4 {
		t.Errorf("the calls say %v", said)
	}
	if got := fmt.Sprint(sum.Codes); got != "map[200:3 429:1 503:1 none:1]" {
		t.Errorf("the codes are %s", got)
	}
	if r := sum.Rounds[0]; !r.Began.IsZero() || !inOrder(r.Start, r.Sent, r.End) {
		t.Errorf("%+v", r)
	}
	if want := "warning deletions: round 1 never began: all 6 calls were over after 0 deletions (want 1)"; !strings.Contains(w.events(), want) {
		t.Errorf("no event %q in:\n%s", want, w.events())
	}
}

func TestRate(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":10,"calls":4,"rate":10,"begun":1}`)
	g := w.hold(timeout)
	close(g.open)
	done, _ := w.start(t, l)
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	r := sum.Rounds[0]
	if len(calls) != 4 || r.Wanted != 10 || r.Rate <= 0 || r.Rate > 30 || r.Sent.Sub(r.Start) < 300*time.Millisecond {
		t.Errorf("%d calls, %+v", len(calls), r)
	}
}
