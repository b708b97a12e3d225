package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// CorpusFile is the name of the corpus's summary in the folder of run directories.
const CorpusFile = "corpus.json"

// CorpusSchema is the value of the schema field of CorpusFile.
const CorpusSchema = "relapse.dev/corpus/v1alpha1"

// Corpus says which units run side by side, and how.
type Corpus struct {
	Out       string        // the folder of run directories, and of the summary
	Units     []Unit        // in the order in which they begin, as far as there is room
	Skipped   []Result      // what is only listed, because it can't be run as was asked; their Why says why
	Relapse   string        // the version of the program
	TimeLimit time.Duration // 0 is none
	Room      Room
	// Build makes what a unit needs. It is called of one unit after the other, before any of them runs, so that no build is
	// beside a trial. A unit that it fails for isn't run.
	Build func(context.Context, Unit) error
	Run   func(context.Context, Unit) (dir string, v judge.Verdict, err error) // called of several units at once
	Say   func(string)
	Now   func() time.Time // nil is time.Now
}

// Room says how many units may run at once. A unit whose plan rests on CPU time runs alone, whatever the room.
type Room struct {
	Trials int // the most trials at once; 0 is as many as Nodes are enough for
	Nodes  int // the most nodes of clusters at once, unless Trials is set; a single trial may have more
}

// admits reports whether a unit may begin beside those that run.
func (r Room) admits(running []Unit, next Unit) bool {
	if len(running) == 0 {
		return true
	}
	if next.Plan.RestsOnCPU() || slices.ContainsFunc(running, func(u Unit) bool { return u.Plan.RestsOnCPU() }) {
		return false
	}
	if r.Trials > 0 {
		return len(running) < r.Trials
	}
	nodes := next.Plan.Nodes()
	for _, u := range running {
		nodes += u.Plan.Nodes()
	}
	return nodes <= r.Nodes
}

// RunAll builds what all units need and then runs them, as many at once as there is room for. It returns the summary, which
// it also writes after each step. A unit that fails, or is not as expected, doesn't stop the others. A unit for which its
// scenario's budget or the time limit is too short is ended cleanly and listed as not done. When ctx ends, those that run
// are ended cleanly, and RunAll returns ctx's cause beside the summary.
func (c Corpus) RunAll(ctx context.Context) (Summary, error) {
	if len(c.Units) == 0 {
		return Summary{}, errors.New("the corpus has nothing to run")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := Summary{Schema: CorpusSchema, StartedAt: c.Now().UTC(), Relapse: c.Relapse}
	for _, u := range c.Units {
		s.Units = append(s.Units, newResult(u))
	}
	for _, r := range c.Skipped {
		r.Status = Skipped
		s.Units = append(s.Units, r)
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.TimeLimit > 0 {
		limited, cancel = context.WithTimeoutCause(
			ctx,
			c.TimeLimit,
			fmt.Errorf("the time limit of %s is over", c.TimeLimit),
		)
	}
	defer cancel()
	err := c.build(limited, &s)
	if err == nil {
		err = c.runs(limited, &s)
	}
	if ctx.Err() != nil {
		for i := range s.Units {
			if r := &s.Units[i]; r.Status == NotDone {
				r.Why = "interrupted"
			}
		}
		err = errors.Join(err, c.note(&s), context.Cause(ctx))
	}
	return s, err
}

// note writes the summary as it is now.
func (c Corpus) note(s *Summary) error {
	s.conclude(c.Now())
	return s.write(c.Out, CorpusFile)
}

// build builds for one unit after the other.
func (c Corpus) build(ctx context.Context, s *Summary) error {
	for i, u := range c.Units {
		if ctx.Err() != nil {
			break
		}
		r, began := &s.Units[i], c.Now()
		err := c.Build(ctx, u)
		r.Build = c.Now().Sub(began).Seconds()
		if err != nil && ctx.Err() == nil {
			r.Status, r.Why, r.Verdict, r.Exit = Failed, err.Error(), string(verdict.VerdictError), verdict.ExitError
			c.Say(fmt.Sprintf("%s: %s", u.name(), r.describe()))
		}
	}
	return c.note(s)
}

// runs runs the units that were built.
func (c Corpus) runs(ctx context.Context, s *Summary) error {
	var waiting, running []int // indices of units
	for i := range c.Units {
		if s.Units[i].Status == NotDone {
			waiting = append(waiting, i)
		}
	}
	type ended struct {
		unit int
		Result
	}
	over := make(chan ended)
	for {
		for next := c.next(ctx, waiting, running); next >= 0; next = c.next(ctx, waiting, running) {
			running = append(running, next)
			waiting = slices.DeleteFunc(waiting, func(i int) bool { return i == next })
			one := Options{Run: c.Run, Now: c.Now}
			go func(r Result) { over <- ended{next, one.unit(ctx, c.Units[next], r, 0)} }(s.Units[next])
		}
		if len(running) == 0 {
			break
		}
		e := <-over
		running = slices.DeleteFunc(running, func(i int) bool { return i == e.unit })
		s.Units[e.unit] = e.Result
		if err := c.note(s); err != nil {
			c.Say("the summary can't be written: " + err.Error()) // what runs is not left behind for that
		}
		c.Say(fmt.Sprintf("%s: %s", c.Units[e.unit].name(), e.describe()))
	}
	for _, i := range waiting {
		s.Units[i].Why = context.Cause(ctx).Error()
	}
	return c.note(s)
}

// next returns the first waiting unit that may begin beside those that run, -1 for none.
func (c Corpus) next(ctx context.Context, waiting, running []int) int {
	if ctx.Err() != nil {
		return -1
	}
	var beside []Unit
	for _, i := range running {
		beside = append(beside, c.Units[i])
	}
	for _, i := range waiting {
		if c.Room.admits(beside, c.Units[i]) {
			return i
		}
	}
	return -1
}

// Told says what became of a unit without a verdict.
func (r Result) Told() string {
	if r.Status == NotDone {
		return "not done: " + r.Why
	}
	return r.Status + ": " + r.Why
}

// ReadCorpus reads the corpus's summary in a folder of run directories. Without one the summary has no units.
func ReadCorpus(out string) (Summary, error) {
	s, err := readSummary(filepath.Join(out, CorpusFile), CorpusSchema)
	if errors.Is(err, fs.ErrNotExist) {
		return Summary{}, nil
	}
	return s, err
}

// Against compares the verdicts with those of an earlier summary. It returns how many units have a verdict in both, and
// those that have another one now.
func (s Summary) Against(earlier Summary) (both int, changed []string) {
	for _, r := range s.Units {
		for _, was := range earlier.Units {
			if was.Scenario != r.Scenario || was.Pair != r.Pair || was.Provider != r.Provider || was.Status != Done || r.Status != Done {
				continue
			}
			both++
			if was.Verdict != r.Verdict {
				changed = append(changed, fmt.Sprintf("%s, pair %s: %s, and %s then", r.Scenario, r.Pair, r.Verdict, was.Verdict))
			}
		}
	}
	return both, changed
}
