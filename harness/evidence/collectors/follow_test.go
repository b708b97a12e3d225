package collectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
	"github.com/kube-relapse/relapse/harness/kinds"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// component is a process whose every answer a test gives. All of it lives in a test's bubble of time.
type component struct {
	get  func(ctx context.Context) (string, error)
	logs func(ctx context.Context) (io.ReadCloser, error)
	id   func(digest bool) (cluster.Identity, error)
}

func (c *component) Name() string       { return "kubelet" }
func (c *component) Node() cluster.Node { return node{} }

func (c *component) Get(ctx context.Context, _ string) (io.ReadCloser, error) {
	text, err := c.get(ctx)
	return io.NopCloser(strings.NewReader(text)), err
}

func (c *component) Logs(ctx context.Context) (io.ReadCloser, error) { return c.logs(ctx) }

func (c *component) Signal(context.Context, os.Signal, cluster.Identity) error {
	return errors.ErrUnsupported
}

func (c *component) Identity(_ context.Context, digest bool) (cluster.Identity, error) {
	return c.id(digest)
}

func (c *component) Abilities() cluster.ComponentAbilities { return cluster.ComponentAbilities{} }

type node struct{ cluster.Node }

func (node) Name() string                     { return "worker" }
func (node) Role() string                     { return cluster.Worker }
func (node) Arm() string                      { return "fixed" }
func (node) Abilities() cluster.NodeAbilities { return cluster.NodeAbilities{} }

// stream runs a collector for a time of the bubble and returns its only artifact with its lines.
func stream(t *testing.T, kind, spec string, c *component, long time.Duration) (bundle.Artifact, []string) {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := kinds.Decode[capture.Collector](kinds.Collector, kind, json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	target := capture.Target{Arm: "fixed", Node: node{}, Component: c}
	if err := k.(capture.Streamer).Stream(ctx, target, w); err != nil {
		t.Fatal(err)
	}
	all := w.View().Artifacts(bundle.Query{})
	if len(all) != 1 {
		t.Fatalf("it left %d artifacts: %+v", len(all), all)
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
	return all[0], strings.Split(strings.TrimSpace(string(b)), "\n")
}

// A source that is silent for longer than is tolerated is a gap, with the reason; a lost sample or two is none.
func TestGaps(t *testing.T) {
	const text = "# TYPE m gauge\nm 1\n"
	for _, tc := range []struct {
		name string
		get  func(since time.Duration, ctx context.Context) error
		want []string // from to reason, in seconds
		last time.Duration
	}{
		{"none", func(time.Duration, context.Context) error { return nil }, nil, 58 * time.Second},
		{"short", func(s time.Duration, _ context.Context) error {
			if s > 19*time.Second && s < 27*time.Second {
				return errors.New("refused")
			}
			return nil
		}, nil, 58 * time.Second},
		{"long", func(s time.Duration, _ context.Context) error {
			if s > 19*time.Second && s < 31*time.Second {
				return errors.New("refused")
			}
			return nil
		}, []string{"18s-32s refused"}, 58 * time.Second},
		{"to the end", func(s time.Duration, _ context.Context) error {
			if s > 19*time.Second {
				return errors.New("refused")
			}
			return nil
		}, []string{"18s-59s refused"}, 18 * time.Second},
		{"hangs", func(s time.Duration, ctx context.Context) error {
			if s > 19*time.Second && s < 21*time.Second {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, []string{"18s-40s context deadline exceeded"}, 58 * time.Second},
		{"from the start", func(s time.Duration, _ context.Context) error { return errors.New("refused") },
			[]string{"0s-59s refused"}, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a, _ := stream(t, "metrics", `{"families":["m"]}`, &component{get: func(ctx context.Context) (string, error) {
					return text, tc.get(time.Since(began), ctx)
				}}, 59*time.Second)
				var got []string
				for _, g := range a.Coverage.Gaps {
					got = append(got, fmt.Sprintf("%s-%s %s", g.From.Sub(began), g.To.Sub(began), g.Reason))
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("the gaps are %q, want %q", got, tc.want)
				}
				switch {
				case tc.last < 0:
					if !a.Coverage.First.IsZero() {
						t.Errorf("it covers %+v, though nothing was ever answered", a.Coverage)
					}
				case !a.Coverage.First.Equal(began) || !a.Coverage.Last.Equal(began.Add(tc.last)):
					t.Errorf("it covers %s to %s, want 0s to %s", a.Coverage.First.Sub(began), a.Coverage.Last.Sub(began), tc.last)
				}
			})
		})
	}
}

func TestMetricsKeepsWhatSaysSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_sum 4\nh_count 3\n" +
			"# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns_sum 0\ns_count 0\n# TYPE other gauge\nother 1\n"
		_, lines := stream(t, "metrics", `{"families":["h","s"]}`,
			&component{get: func(context.Context) (string, error) { return text, nil }}, time.Second)
		var got []string
		for _, l := range lines {
			var s bundle.MetricSample
			if err := json.Unmarshal([]byte(l), &s); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %g", s.Name, s.Value))
		}
		slices.Sort(got)
		if want := []string{"h_count 3", "h_sum 4", "s_count 0", "s_sum 0"}; !slices.Equal(got, want) {
			t.Errorf("the samples are %q, want %q", got, want)
		}
	})
}

// A process is hashed when it is first seen, at once when it is another one, and now and then; nothing waits for a
// digest.
func TestIdentityHashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, lines := stream(t, "identity", "", &component{id: func(digest bool) (cluster.Identity, error) {
			id := cluster.Identity{PID: 7, StartTicks: 70}
			if time.Since(began) > 9*time.Second {
				id = cluster.Identity{PID: 8, StartTicks: 80, Restarts: 1}
			}
			if digest {
				time.Sleep(3 * time.Second) // as a busy host takes, in the bubble's time
				id.SHA256 = fmt.Sprintf("sum-%d", id.PID)
			}
			return id, nil
		}}, 59*time.Second)
		var got []string
		for _, l := range lines {
			var s bundle.IdentitySample
			if err := json.Unmarshal([]byte(l), &s); err != nil {
				t.Fatal(err)
			}
			if len(got) == 0 || s.SHA256 != "" {
				got = append(got, fmt.Sprintf("%s %d %s", s.Time.Sub(began), s.PID, s.SHA256))
			}
		}
		if want := []string{"0s 7 ", "3s 7 sum-7", "13s 8 sum-8", "47s 8 sum-8"}; !slices.Equal(got, want) || len(lines) != 33 {
			t.Errorf("of %d samples, the first and those with a digest are %q, want %q of 33", len(lines), got, want)
		}
	})
}

// log is a journal that can break its connections and forget its beginning.
type log struct {
	mu    sync.Mutex
	lines []string
	conn  *io.PipeWriter
}

func (l *log) open(ctx context.Context) (io.ReadCloser, error) {
	r, w := io.Pipe()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = w
	lines := slices.Clone(l.lines)
	context.AfterFunc(ctx, func() { w.Close() })
	go func() {
		for _, line := range lines {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return
			}
		}
	}()
	return r, nil
}

// say adds a line, which comes with the next connection.
func (l *log) say(message, ident string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMicro()
	l.lines = append(l.lines, fmt.Sprintf(`{"__CURSOR":"c-%s","__REALTIME_TIMESTAMP":"%d","SYSLOG_IDENTIFIER":%q,"MESSAGE":%q}`, message, now, ident, message))
}

func (l *log) cut(forget int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = l.lines[forget:]
	l.conn.CloseWithError(io.ErrUnexpectedEOF)
}

func messages(t *testing.T, lines []string) []string {
	t.Helper()
	var out []string
	for e, err := range klog.ReadJournal(strings.NewReader(strings.Join(lines, "\n"))) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Message)
	}
	return out
}

// A connection that breaks is taken up again where it was: nothing is lost, nothing doubled, and there is no gap.
func TestJournalGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		l.say("a", "kubelet")
		l.say("b", "kubelet")
		go func() {
			time.Sleep(5 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
			l.say("Suppressed 12 messages from kubelet.service", "systemd-journald")
			l.say("c", "kubelet")
			l.cut(0)
			time.Sleep(5 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
			l.cut(0)
		}()
		a, lines := stream(t, "journal", "", &component{logs: l.open}, 30*time.Second)
		want := []string{"a", "b", "Suppressed 12 messages from kubelet.service", "c"}
		if got := messages(t, lines); !slices.Equal(got, want) {
			t.Errorf("it recorded %q, want %q", got, want)
		}
		if len(a.Coverage.Gaps) > 0 || a.Coverage.Suppressed != 12 {
			t.Errorf("it covers %+v, want no gap and 12 lines suppressed", a.Coverage)
		}
	})
}

// A journal that was rotated past the place goes on at the next line, and the time in between is a gap.
func TestJournalThatLostItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var l log
		l.say("a", "kubelet")
		go func() {
			time.Sleep(5 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
			l.say("lost", "kubelet")
			time.Sleep(2 * time.Second) // fake time: moves the synctest bubble's clock, waits for nothing
			l.say("c", "kubelet")
			l.cut(2)
		}()
		a, lines := stream(t, "journal", "", &component{logs: l.open}, 30*time.Second)
		if got := messages(t, lines); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("it recorded %q, want a and c", got)
		}
		want := bundle.Gap{From: began.UTC(), To: began.Add(7 * time.Second).UTC(),
			Reason: "the journal no longer has the last line that was seen"}
		if len(a.Coverage.Gaps) != 1 || !a.Coverage.Gaps[0].From.Equal(want.From) || !a.Coverage.Gaps[0].To.Equal(want.To) ||
			a.Coverage.Gaps[0].Reason != want.Reason {
			t.Errorf("the gaps are %+v, want %+v", a.Coverage.Gaps, want)
		}
	})
}
