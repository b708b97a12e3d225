package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What Dir has: the sealed bundle, and what the checks found.
const (
	bundleDir    = "bundle"
	findingsFile = "findings.json"
)

// Failed is the error of Stop if not every check is met.
type Failed struct {
	Findings []check.Finding // of all checks
	Dir      string          // the absolute path of the evidence
}

// Error tells what each check that isn't met saw, and what it wanted.
func (f *Failed) Error() string {
	var b strings.Builder
	open := 0
	for _, one := range f.Findings {
		if one.Met == check.True {
			continue
		}
		open++
		said := one.Met.String()
		if one.Code != "" {
			said += " (" + string(one.Code) + ")"
		}
		fmt.Fprintf(&b, "\n%s is %s: %s\n  wanted: %s", one.Name, said, one.Seen, one.Wanted)
		if one.Detail != "" {
			fmt.Fprintf(
				&b,
				"\n  %s",
				strings.ReplaceAll(strings.TrimSpace(one.Detail), "\n", "\n  "),
			)
		}
	}
	return fmt.Sprintf(
		"the watch found %d of %d checks not met or unknown%s\nevidence: %s",
		open,
		len(f.Findings),
		&b,
		f.Dir,
	)
}

// Stop ends the watch: it has the controller do the work of checks that have some, waits until all checks are met or
// Settle is over (twice that while an answer is unknown), seals the evidence and asks the checks of it. It returns nil if all are met, *Failed if not, or
// another error if the evidence can't be kept. Call it while the controller still runs. Stopping twice returns the same.
func (w *Watch) Stop(ctx context.Context) error {
	w.stop.Do(func() { w.result = w.finish(ctx) })
	return w.result
}

// Dir returns the absolute path of the evidence.
func (w *Watch) Dir() string { return w.dir }

func (w *Watch) finish(ctx context.Context) error {
	w.enter(check.Recovery)
	for _, c := range w.o.Checks {
		if c.Work != nil {
			w.work(ctx, c)
		}
	}
	w.settle(ctx)
	w.enter(bundle.EndPhase)
	if err := w.end(); err != nil {
		return fmt.Errorf("ending a watch: %w", err)
	}
	v, err := bundle.Open(filepath.Join(w.dir, bundleDir))
	if err != nil {
		return fmt.Errorf("ending a watch: %w", err)
	}
	return w.judge(v)
}

// work has the subject do a check's work, and records whether it did.
func (w *Watch) work(ctx context.Context, c Check) {
	p := bundle.ProbeRecord{
		Name:  c.What,
		Work:  c.What,
		Start: time.Now().UTC(),
		Ended: bundle.ProbeDone,
	}
	m := w.target.Meta(bundle.WorkProbe)
	one, cancel := context.WithTimeout(ctx, w.o.Settle)
	defer cancel()
	err := c.Work(one)
	p.End = time.Now().UTC()
	step := bundle.ProbeStep{Try: 1, Step: "done", Asked: p.Start, Seen: p.End}
	switch {
	case ctx.Err() != nil: // nobody waited for the subject
		p.Ended, p.Why, step.Seen = bundle.ProbeCut, context.Cause(ctx).Error(), time.Time{}
	case err != nil:
		p.Ended, p.Why, step.Seen = bundle.ProbeFailed, err.Error(), time.Time{}
	}
	p.Steps = []bundle.ProbeStep{step}
	if _, err := w.writer.WriteJSON(m, p); err != nil {
		w.lose(err)
	}
}

// settle takes snapshots until every check is met, or the time is up. A goroutine that is left, or a loop, has to
// outlast it: what goes away in time is no leak. While an answer is unknown it goes on for as long again: a busy host may
// only be late to show it.
func (w *Watch) settle(ctx context.Context) {
	began := time.Now()
	for n := 1; ; n++ {
		_ = w.snapshot(ctx, "phase") // a failure is in the bundle
		now := met(w.ask(w.writer.View()))
		late := time.Since(began)
		over := late > w.o.Settle && now != check.Unknown || late > 2*w.o.Settle
		if n >= compared && (now == check.True || over) || pause(ctx, w.o.Pace) != nil {
			return
		}
	}
}

// met returns True if all findings are, Unknown if one is, and else False.
func met(all []check.Finding) check.Truth {
	out := check.True
	for _, f := range all {
		switch f.Met {
		case check.Unknown:
			return check.Unknown
		case check.False:
			out = check.False
		}
	}
	return out
}

// ask asks all checks, and first whether the subject was one process.
func (w *Watch) ask(v bundle.View) []check.Finding {
	at := check.Scope{Arm: arm, Phase: check.Recovery}
	one := oneProcess{}.Eval(v, at)
	one.Name = "oneProcess"
	out := []check.Finding{one}
	for _, c := range w.o.Checks {
		f := c.Ask.Eval(v, at)
		f.Name = c.Name
		out = append(out, f)
	}
	return out
}

// judge asks the checks of the sealed bundle and writes what they found.
func (w *Watch) judge(v bundle.View) error {
	f := &Failed{Findings: w.ask(v), Dir: w.dir}
	b, err := json.MarshalIndent(struct {
		Findings []check.Finding `json:"findings"`
	}{f.Findings}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, findingsFile), append(b, '\n'), 0o644)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", findingsFile, err), f)
	}
	if met(f.Findings) == check.True {
		return nil
	}
	return f
}
