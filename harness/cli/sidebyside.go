package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/internal/printing"
)

// side runs scenarios side by side, in one process and with one display.
type side struct {
	cmd      *cobra.Command
	flags    runFlags
	root     string
	trials   int // how many may run at once, 2 for more than one
	progress *lockedWriter
	printing sync.Mutex // keeps together what is printed of one run
}

func newSide(cmd *cobra.Command, f runFlags, root string, room campaign.Room) *side {
	trials := 1
	if room.Trials > 1 || room.Trials == 0 && room.Nodes > 1 {
		trials = 2
	}
	f.parallel = 1 // of the trials of one run
	return &side{
		cmd:      cmd,
		flags:    f,
		root:     root,
		trials:   trials,
		progress: &lockedWriter{w: cmd.ErrOrStderr()},
	}
}

// shown calls do with a sink of its own, whose lines begin with the name of the scenario.
func (s *side) shown(u campaign.Unit, do func(event.Sink) error) error {
	w := s.cmd.ErrOrStderr()
	if s.trials > 1 {
		w = s.progress
	}
	sink, done, err := s.flags.sink(w, s.trials)
	if err != nil {
		return err
	}
	defer done()
	return do(event.SinkFunc(func(e event.Event) {
		e.Message = u.Plan.Scenario + ": " + e.Message
		sink.Emit(e)
	}))
}

// build builds what a unit's run needs.
func (s *side) build(ctx context.Context, u campaign.Unit) error {
	f := s.flags
	if err := f.programs.open(); err != nil { // anew, so that a host that was silent once is asked again
		return err
	}
	return s.shown(u, func(sink event.Sink) error {
		_, err := f.built(ctx, s.cmd, s.root, u.Plan, sink)
		return err
	})
}

// run runs a unit and prints its verdict.
func (s *side) run(
	ctx context.Context,
	u campaign.Unit,
) (dir string, v judge.Verdict, err error) {
	f := s.flags
	if err := f.programs.open(); err != nil {
		return "", v, err
	}
	err = s.shown(u, func(sink event.Sink) error {
		dir, v, err = f.performShown(ctx, s.cmd, s.root, u.Plan, sink)
		return err
	})
	if err != nil {
		return dir, v, err
	}
	s.printing.Lock()
	defer s.printing.Unlock()
	return dir, v, f.tell(s.cmd, dir, v)
}

// lockedWriter is written to by several goroutines, one at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes p as a whole.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// writeCorpus prints what became of all scenarios, by their names, and how that differs from the time before.
func writeCorpus(w io.Writer, out string, s, earlier campaign.Summary) error {
	t := printing.Table{
		Empty:  "-",
		Header: []string{"scenario", "pair", "on", "verdict", "time", "build", "run"},
	}
	byName := func(a, b campaign.Result) int { return strings.Compare(a.Scenario, b.Scenario) }
	for _, r := range slices.SortedStableFunc(slices.Values(s.Units), byName) {
		switch r.Status {
		case campaign.Skipped:
			t.Add(r.Scenario, r.Pair, "", "not run: "+r.Why, "", "", "")
		case campaign.Done:
			t.Add(
				r.Scenario,
				r.Pair,
				r.Provider,
				r.Verdict,
				seconds(r.Seconds),
				seconds(r.Build),
				r.Dir,
			)
		default:
			t.Add(
				r.Scenario,
				r.Pair,
				r.Provider,
				r.Told(),
				seconds(r.Seconds),
				seconds(r.Build),
				"",
			)
		}
	}
	var b strings.Builder
	b.WriteString("\n" + t.Fit(width(w)))
	fmt.Fprintf(
		&b,
		"\nin all: %s, with builds\nsummary: %s\n",
		s.EndedAt.Sub(s.StartedAt).Round(time.Second),
		filepath.Join(short(out), campaign.CorpusFile),
	)
	if both, changed := s.Against(earlier); both > 0 {
		fmt.Fprintf(&b, "before: of %d verdicts that there were on %s, %d are others now\n", both,
			earlier.StartedAt.Format(time.DateTime), len(changed))
		for _, c := range changed {
			b.WriteString("  " + c + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// seconds returns a time in whole seconds, "" for none.
func seconds(s float64) string {
	if s < 0.5 {
		return ""
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}
