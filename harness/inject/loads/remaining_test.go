package loads_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
)

// A call that deleted when the round began and that the API server then ended with a failure was cut short, whatever
// the API server logs.
func TestCallsCutShort(t *testing.T) {
	for _, c := range []struct {
		name     string
		deleting int64
		answer   func(http.ResponseWriter, *http.Request)
		want     [3]int // open, deleting, failed
		least    int
		says     string
	}{
		{"all of them", 4, timeout, [3]int{4, 4, 4}, 4, "round 1 left 27 of 40 objects, of 4 calls that deleted when it began 4 or more were ended"},
		{"one may have died in its list", 3, timeout, [3]int{4, 3, 4}, 3, "left 27 of 40 objects, of 3 calls that deleted when it began 3 or more were ended"},
		{"nobody was in a delete", 0, timeout, [3]int{4, 0, 4}, 0, "of 0 calls that deleted when it began 0 or more were ended"},
		{"they claim success", 4, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }, [3]int{4, 4, 0}, 4, "4 calls that deleted when it began 4 or more were ended"},
		{"the API server ended the connection", 4, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, [3]int{4, 4, 4}, 4, "4 or more were ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var n atomic.Int64
			n.Store(c.deleting)
			w.deleting(&n)
			l := w.prepare(t, `{"items":40,"calls":4,"begun":3,"still":"20ms"}`)
			g := w.hold(c.answer)
			done, _ := w.start(t, l)
			for range 4 {
				controltest.Soon(t, "the next call", g.arrived)
			}
			w.remove(t, "relapse-deletions-1", 13)
			w.wants(t, "1 began")
			close(g.open)
			ends(t, done)
			calls, sum, _ := w.recorded(t)
			cut := sum.Rounds[0].Cut
			if cut == nil || [3]int{cut.Open, cut.Deleting, cut.Failed} != c.want || cut.AtLeast() != c.least || cut.Left == nil || *cut.Left != 27 {
				t.Errorf("%+v, want %v and 27 left", cut, c.want)
			}
			if ended := cut.Failed + cut.Succeeded; ended != 4 {
				t.Errorf("%d calls were ended, want 4: %+v", ended, cut)
			}
			code := "504"
			switch {
			case cut.Succeeded > 0:
				code = "200"
			case calls[0].Code == 0:
				code = "none"
			}
			if got := sum.Rounds[0].Codes; len(got) != 1 || got[code] != 4 {
				t.Errorf("the round's answers are %v, want 4 x %s", got, code)
			}
			if !strings.Contains(w.events(), c.says) {
				t.Errorf("no event with %q in:\n%s", c.says, w.events())
			}
		})
	}
}

// A build whose workers go on after the answer cut nothing short.
func TestLeftIsUnknownWhileSomebodyDeletes(t *testing.T) {
	w := newWorld(t)
	var n atomic.Int64
	n.Store(2)
	w.deleting(&n)
	l := w.prepare(t, `{"items":40,"calls":2,"begun":3,"still":"20ms"}`)
	g := w.hold(timeout)
	done, _ := w.start(t, l)
	for range 2 {
		controltest.Soon(t, "the next call", g.arrived)
	}
	w.remove(t, "relapse-deletions-1", 3)
	w.wants(t, "1 began")
	w.API().Intercept(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && r.UserAgent() == "relapse/deletions" && strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("watch") == "" {
			w.remove(t, "relapse-deletions-1", 1)
		}
		return false
	})
	close(g.open)
	ends(t, done)
	_, sum, _ := w.recorded(t)
	if cut := sum.Rounds[0].Cut; cut == nil || cut.AtLeast() != 2 || cut.Left != nil {
		t.Errorf("%+v", cut)
	}
	if want := "warning deletions: round 1 how many objects it left is not known: their number has not stood still for 20ms"; !strings.Contains(w.events(), want) {
		t.Errorf("no event %q in:\n%s", want, w.events())
	}
}

// A call that the load gave up says nothing of the API server.
func TestGivenUp(t *testing.T) {
	w := newWorld(t)
	var n atomic.Int64
	n.Store(2)
	w.deleting(&n)
	l := w.prepare(t, `{"items":40,"calls":2,"begun":3,"timeout":"5s","still":"20ms"}`)
	g := w.hold(timeout)
	done, _ := w.start(t, l)
	for range 2 {
		controltest.Soon(t, "the next call", g.arrived)
	}
	w.remove(t, "relapse-deletions-1", 3)
	w.wants(t, "1 began")
	ends(t, done)
	calls, sum, _ := w.recorded(t)
	if cut := sum.Rounds[0].Cut; cut == nil || cut.Failed != 0 || cut.AtLeast() != 0 || !calls[0].GaveUp || !calls[1].GaveUp {
		t.Errorf("%+v, %+v", cut, calls)
	}
}
