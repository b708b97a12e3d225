package check_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestTri(t *testing.T) {
	const u, n, m = check.Unknown, check.False, check.True
	for _, row := range []struct{ a, b, all, any check.Truth }{
		{u, u, u, u}, {u, n, n, u}, {u, m, u, m},
		{n, u, n, u}, {n, n, n, n}, {n, m, n, m},
		{m, u, u, m}, {m, n, n, m}, {m, m, m, m},
	} {
		if got := check.All(row.a, row.b); got != row.all {
			t.Errorf("all of %s and %s is %s, want %s", row.a, row.b, got, row.all)
		}
		if got := check.Any(row.a, row.b); got != row.any {
			t.Errorf("any of %s and %s is %s, want %s", row.a, row.b, got, row.any)
		}
	}
	for _, one := range []check.Truth{u, n, m} {
		if all, any := check.All(one), check.Any(one); all != one || any != one {
			t.Errorf("all and any of %s alone are %s and %s", one, all, any)
		}
	}
	if all, any := check.All(), check.Any(); all != u || any != u {
		t.Errorf("all and any of nothing are %s and %s, want unknown: an empty list proves nothing", all, any)
	}
	if check.Of(true) != m || check.Of(false) != n {
		t.Error("Of confuses true and false")
	}
}

func TestTriJSON(t *testing.T) {
	for tri, want := range map[check.Truth]string{check.Unknown: "null", check.False: "false", check.True: "true"} {
		b, err := json.Marshal(struct{ Met check.Truth }{tri})
		if err != nil || string(b) != `{"Met":`+want+`}` {
			t.Errorf("%s is %s, %v", tri, b, err)
		}
		back := struct{ Met check.Truth }{check.Truth(-1)}
		if err := json.Unmarshal(b, &back); err != nil || back.Met != tri && tri != check.Unknown {
			t.Errorf("%s is read back as %v, %v", b, back.Met, err)
		}
	}
	var tri check.Truth
	err := json.Unmarshal([]byte(`"met"`), &tri)
	if want := `"\"met\"" is none of true, false, null`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("reading a word: %v, want %s", err, want)
	}
}

func TestNew(t *testing.T) {
	for _, tc := range []struct{ kind, spec, want string }{
		{"dance", "{}", `unknown check kind "dance": want one of [`},
		{"goroutines", `{"count":"many"}`, `decoding the spec of check kind "goroutines": json: cannot unmarshal string`},
	} {
		if _, err := kinds.Decode[check.Check](kinds.Check, tc.kind, json.RawMessage(tc.spec)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s: %v, want %q", tc.kind, tc.spec, err, tc.want)
		}
	}
	a, err := kinds.Decode[check.Check](kinds.Check, "goroutines", nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := a.(*goroutines.Goroutines); g.Count != 1 || g.Dumps != 1 {
		t.Errorf("without a spec it is %+v, want its defaults", g)
	}
}

// An offset that the phase never reached leaves nothing to look at, which no check may take for having found nothing.
func TestWindowThatNeverOpened(t *testing.T) {
	for _, e := range kinds.Of(kinds.Check) {
		t.Run(e.Name, func(t *testing.T) {
			tr := checktest.NewTrial(t, time.Now().Add(-time.Hour))
			tr.Phases()
			for name, tc := range map[string]struct {
				scope check.Scope
				want  string
			}{
				"beyond the end": {check.Scope{Arm: checktest.Arm, Phase: check.Recovery, After: 100 * time.Second}, "the phase recovery did not last longer than 1m40s"},
				"no such phase":  {check.Scope{Arm: checktest.Arm, Phase: "party"}, "the phase party never began"},
			} {
				f := example(t, e).Eval(tr.W.View(), tc.scope)
				if f.Met != check.Unknown || f.Seen != tc.want || f.Wanted == "" {
					t.Errorf("%s: %+v, want unknown and %q", name, f, tc.want)
				}
			}
		})
	}
}

// example makes a check of a kind's own example.
func example(t *testing.T, e kinds.Entry) check.Check {
	t.Helper()
	var item struct{ Spec any }
	if err := yaml.Unmarshal([]byte(e.Example), &item); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(item.Spec)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kinds.Decode[check.Check](kinds.Check, e.Name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A live window ends now: the answer follows the evidence as it comes.
func TestLiveWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := checktest.NewTrial(t, time.Now())
		tr.Enter(0, check.Steady)
		st := tr.Stream(bundle.MetricSamples, checktest.Arm)
		c, err := kinds.Decode[check.Check](kinds.Check, "metricIncrease", json.RawMessage(`{"metric":"m","by":{"number":10}}`))
		tr.Must(err)
		ask := func() check.Truth {
			return c.Eval(tr.W.View(), check.Scope{Arm: checktest.Arm, Phase: check.Steady}).Met
		}
		if got := ask(); got != check.Unknown {
			t.Errorf("at once it is %s, want unknown", got)
		}
		tr.Series(st, "m", 0, 8, func(s float64) float64 { return s })
		time.Sleep(8050 * time.Millisecond) // fake time: moves the synctest bubble's clock, waits for nothing
		if got := ask(); got != check.False {
			t.Errorf("with 6 seen and a sample on its way, it is %s, want not met", got)
		}
		tr.Series(st, "m", 10, 12, func(s float64) float64 { return s })
		time.Sleep(5 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		if got := ask(); got != check.True {
			t.Errorf("with 12 seen it is %s, want met", got)
		}
		time.Sleep(time.Minute) // fake time: moves the synctest bubble's clock, waits for nothing
		if got := ask(); got != check.True {
			t.Errorf("what was seen stays: %s, want met", got)
		}
	})
}

// The last minute without a sample is no minute of standing still.
func TestLiveSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := checktest.NewTrial(t, time.Now())
		tr.Enter(0, check.Recovery)
		tr.Series(tr.Stream(bundle.MetricSamples, checktest.Arm), "m", 0, 70, func(float64) float64 { return 4 })
		c, err := kinds.Decode[check.Check](kinds.Check, "metricStill", json.RawMessage(`{"metrics":["m"],"span":"1m"}`))
		tr.Must(err)
		scope := check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		time.Sleep(72 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
		if f := c.Eval(tr.W.View(), scope); f.Met != check.True {
			t.Errorf("watched to its end: %+v, want met", f)
		}
		time.Sleep(time.Minute) // fake time: moves the synctest bubble's clock, waits for nothing
		if f := c.Eval(tr.W.View(), scope); f.Met != check.Unknown || !strings.Contains(f.Seen, "does not cover") {
			t.Errorf("a minute later: %+v, want unknown", f)
		}
	})
}
