package loads_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// A round makes what the one before deleted, whatever became of that.
func TestRounds(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":30,"calls":2,"begun":3,"rounds":3,"pause":"10ms"}`)
	g := w.hold(timeout)
	done, _ := w.start(t, l)
	for round := 1; round <= 3; round++ {
		for range 2 {
			controltest.Soon(t, "the next call", g.arrived)
		}
		if have := w.left(t, "relapse-deletions-1"); len(have) != 31 {
			t.Errorf("round %d has the ConfigMaps %q", round, have)
		}
		w.remove(t, "relapse-deletions-1", 3)
		w.wants(t, fmt.Sprint(round, " began"))
		next := *g
		if round < 3 {
			g = w.hold(timeout)
		}
		close(next.open)
		w.wants(t, fmt.Sprint(round, " over"))
	}
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	if len(calls) != 6 || len(sum.Rounds) != 3 || sum.Rounds[2].Round != 3 || sum.Codes["504"] != 6 || !inOrder(sum.Rounds[0].End, sum.Rounds[1].Start) {
		t.Errorf("%d calls, %+v", len(calls), sum)
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":30,"calls":4,"begun":3,"rounds":2}`)
	g := w.hold(timeout)
	done, cancel := w.start(t, l)
	for range 4 {
		controltest.Soon(t, "the next call", g.arrived)
	}
	cancel()
	began := time.Now()
	ends(t, done)
	if took := time.Since(began); took > controltest.Patience/2 {
		t.Errorf("it ended %s after its context", took)
	}
	w.wants(t, "1 over")
	w.silent(t, "after the end")
	calls, sum, _ := w.recorded(t)
	if len(calls) != 4 || sum.Codes["none"] != 4 || len(sum.Rounds) != 1 || sum.Rounds[0].Calls != 4 || sum.Rounds[0].Sent.IsZero() {
		t.Errorf("%+v, %+v", calls, sum)
	}
	for _, c := range calls {
		if c.Code != 0 || !strings.Contains(c.Error, "context canceled") {
			t.Errorf("%+v", c)
		}
	}
	if want := "round 1 never began: it was cut off"; !strings.Contains(w.events(), want) {
		t.Errorf("no event %q in:\n%s", want, w.events())
	}
}

// With the API server gone no round can begin, and the load still ends with its context.
func TestNoServer(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":30,"calls":4,"begun":3,"rounds":2}`)
	g := w.hold(timeout)
	done, cancel := w.start(t, l)
	for range 4 {
		controltest.Soon(t, "the next call", g.arrived)
	}
	w.Close()
	w.wants(t, "1 over")
	cancel()
	ends(t, done) // in round 2, which waits for the API server, or just before it
	calls, sum, _ := w.recorded(t)
	if len(calls) != 4 || sum.Codes["none"] != 4 || len(sum.Rounds) != 1 {
		t.Errorf("%+v, %+v", calls, sum)
	}
	if want := "round 1 never began: "; !strings.Contains(w.events(), want) {
		t.Errorf("no event %q in:\n%s", want, w.events())
	}
}

// Without a watch nobody can say that a round has begun.
func TestWatchLost(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":30,"calls":4,"begun":3}`)
	g := &gate{make(chan *http.Request, 100), make(chan struct{}), timeout}
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(rw, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`)
			return true
		}
		return g.holds(rw, r)
	})
	done, _ := w.start(t, l)
	for range 4 {
		controltest.Soon(t, "the next call", g.arrived)
	}
	w.says(t, "warning deletions: round 1 can't be seen to begin any more, the watch was lost: too old")
	w.remove(t, "relapse-deletions-1", 10)
	close(g.open)
	ends(t, done)
	w.wants(t, "1 over")
	if want := "round 1 never began: the watch was lost after 0 deletions (want 3): too old"; !strings.Contains(w.events(), want) {
		t.Errorf("no event %q in:\n%s", want, w.events())
	}
	if _, sum, _ := w.recorded(t); !sum.Rounds[0].Began.IsZero() || sum.Codes["504"] != 4 {
		t.Errorf("%+v", sum)
	}
}

// What is deleted while requests are still being sent says nothing of the last one's list.
func TestDeletionsBeforeTheLastRequest(t *testing.T) {
	w := newWorld(t)
	l := w.prepare(t, `{"items":30,"calls":2,"rate":1,"begun":3}`)
	g := w.hold(timeout)
	done, _ := w.start(t, l)
	controltest.Soon(t, "the first call", g.arrived)
	w.remove(t, "relapse-deletions-1", 5)
	controltest.Soon(t, "the second call", g.arrived)
	w.silent(t, "with no deletion since the last request")
	w.remove(t, "relapse-deletions-1", 3)
	w.wants(t, "1 began")
	close(g.open)
	ends(t, done)
	if _, sum, _ := w.recorded(t); !inOrder(sum.Rounds[0].Sent, sum.Rounds[0].Began) {
		t.Errorf("%+v", sum)
	}
}
