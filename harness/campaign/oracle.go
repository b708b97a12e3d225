package campaign

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/printing"
)

// OracleOptions say which of a scenario's candidates are run, and how.
type OracleOptions struct {
	Scenario   string
	Relapse    string // the version of the program
	Settings   Settings
	Candidates []scenario.CandidateFile
	Beside     int    // how many candidates share a trial, at least 1
	Dir        string // where oracle.json and oracle.md are written; created if it is missing
	// Build builds the arms of candidates. failed says why a candidate can't be built. An error is a failure of the
	// controls or of this machine.
	Build func(context.Context, []scenario.CandidateFile) (failed map[string]error, err error)
	// Plan plans the trials that these candidates share.
	Plan func([]scenario.CandidateFile) (*plan.Plan, error)
	Run  func(context.Context, *plan.Plan) (dir string, v judge.Verdict, err error)
	Say  func(string)
	Now  func() time.Time // nil is time.Now
}

// Settings are the pair and the settings that candidates were run with.
type Settings struct {
	Pair     string            `json:"pair"`
	Provider string            `json:"provider"`
	Set      map[string]string `json:"set,omitempty"`
	Full     bool              `json:"full,omitempty"` // not the scenario's short constants
}

// Grade says how a candidate's answer compares with the right one.
type Grade string

// The grades. NoAnswer is never as good as Right, because nothing was shown. ByLuck is the right outcome for a reason
// that is not the candidate's own.
const (
	Right    Grade = "right"
	Wrong    Grade = "wrong"
	ByLuck   Grade = "right by luck"
	NoAnswer Grade = "no answer"
	Errored  Grade = "error"
	NotRun   Grade = "not run"
)

// exit returns the exit code that a grade calls for.
func (g Grade) exit() int {
	switch g {
	case Right:
		return verdict.ExitOK
	case Wrong, ByLuck:
		return verdict.ExitFailed
	case NoAnswer, NotRun:
		return verdict.ExitInconclusive
	}
	return verdict.ExitError
}

// Oracle runs candidates whose right answer is known and returns the scenario's score, which is also written after each
// batch. A candidate that doesn't build, or a run that fails, doesn't stop it. When ctx ends, the candidates that were
// not run are listed as not run.
func Oracle(ctx context.Context, o OracleOptions) (OracleSummary, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := OracleSummary{
		Schema:    oracleSchema,
		Scenario:  o.Scenario,
		StartedAt: o.Now().UTC(),
		Relapse:   o.Relapse,
		Settings:  o.Settings,
		Beside:    o.Beside,
	}
	for _, k := range o.Candidates {
		s.Candidates = append(s.Candidates, ungraded(k))
	}
	if len(o.Candidates) == 0 {
		return s, fmt.Errorf("scenario %s has no candidates to run", o.Scenario)
	}
	failed, err := o.Build(ctx, o.Candidates)
	if err != nil {
		return s, err
	}
	var built []scenario.CandidateFile
	for i, k := range o.Candidates {
		if err := failed[k.Metadata.Name]; err != nil {
			s.Candidates[i].Grade, s.Candidates[i].Reason = Errored, "it can't be built: "+err.Error()
			o.Say(fmt.Sprintf("%s: %s", k.Metadata.Name, s.Candidates[i].Reason))
			continue
		}
		built = append(built, k)
	}
	batches := batch(built, o.Beside)
	for i, b := range batches {
		o.Say(
			fmt.Sprintf(
				"%s: run %d of %d: %s",
				o.Scenario,
				i+1,
				len(batches),
				strings.Join(names(b), ", "),
			),
		)
		began := o.Now()
		dir, v, err := o.run(ctx, b)
		for j := range s.Candidates {
			g := &s.Candidates[j]
			if !slices.Contains(names(b), g.Name) {
				continue
			}
			g.Seconds, g.Dir = o.Now().Sub(began).Seconds(), filepath.Base(dir)
			switch {
			case err == nil:
				g.grade(v)
				s.Versions = v.Versions
			case ctx.Err() != nil:
				g.Reason, g.Dir = "it was interrupted", ""
			default:
				g.Grade, g.Reason = Errored, err.Error()
			}
			o.Say(g.describe())
		}
		if err := s.write(o); err != nil {
			return s, err
		}
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		}
	}
	return s, s.write(o)
}

// ungraded returns the entry of a candidate that was not run yet.
func ungraded(k scenario.CandidateFile) Graded {
	return Graded{
		Name:    k.Metadata.Name,
		Doc:     printing.OneLine(k.Spec.Doc),
		Right:   k.Spec.Right,
		Why:     printing.OneLine(k.Spec.Why),
		Because: k.Spec.Because,
		Set:     k.Spec.Set,
		Grade:   NotRun,
		Reason:  "its turn hasn't come",
	}
}

func (o OracleOptions) run(
	ctx context.Context,
	b []scenario.CandidateFile,
) (dir string, v judge.Verdict, err error) {
	p, err := o.Plan(b)
	if err != nil {
		return "", v, err
	}
	return o.Run(ctx, p)
}

// batch splits candidates into groups that share a trial. A candidate that must be alone gets a group to itself.
// Candidates that should be Broken come last, next to each other: each of them takes all the time that a recovery has,
// whichever candidates share its trial.
func batch(list []scenario.CandidateFile, beside int) [][]scenario.CandidateFile {
	var out [][]scenario.CandidateFile
	var open []scenario.CandidateFile
	broken := func(k scenario.CandidateFile) int {
		if k.Spec.Right == string(verdict.Broken) {
			return 1
		}
		return 0
	}
	list = slices.SortedStableFunc(
		slices.Values(list),
		func(a, b scenario.CandidateFile) int { return broken(a) - broken(b) },
	)
	for _, k := range list {
		if k.IsAlone() {
			out = append(out, []scenario.CandidateFile{k})
			continue
		}
		if open = append(open, k); len(open) >= max(beside, 1) {
			out, open = append(out, open), nil
		}
	}
	if len(open) > 0 {
		out = append(out, open)
	}
	return out
}

func names(list []scenario.CandidateFile) []string {
	var out []string
	for _, k := range list {
		out = append(out, k.Metadata.Name)
	}
	return out
}

// grade compares the candidate's outcome in each trial of a run with the right one, and keeps the worst grade. A trial
// whose controls are not as expected says nothing about the candidate, and one that left no evidence gives no answer.
func (g *Graded) grade(v judge.Verdict) {
	g.Grade = NoAnswer
	g.Reason = "the run has no trial of it"
	rank := []Grade{Right, NoAnswer, Errored, ByLuck, Wrong} // the worst that a trial gives, the last one here, counts
	worst := -1
	for _, a := range v.Arms {
		if a.Name != g.Name || a.Role != scenario.Candidate {
			continue
		}
		g.Given = append(g.Given, string(a.Outcome))
		one, reason := g.judge(v, a)
		if at := slices.Index(rank, one); at > worst {
			worst, g.Grade, g.Reason = at, one, reason
		}
	}
	if lost := v.Index.Lost; len(lost) > 0 && worst < slices.Index(rank, NoAnswer) {
		g.Grade, g.Reason = NoAnswer, lost[0].String()
	}
}

// judge grades the trial of arm a.
func (g *Graded) judge(v judge.Verdict, a verdict.Arm) (Grade, string) {
	if a.Outcome == verdict.Error {
		return Errored, a.Reason
	}
	bites := false
	for _, o := range v.Arms {
		twin := v.SameProgram(o.Name, a.Name)
		switch known := o.Outcome != verdict.Inconclusive && a.Outcome != verdict.Inconclusive; {
		case o.Trial != a.Trial || o.Name == a.Name:
		case o.Role != scenario.Candidate && o.Outcome == verdict.Error:
			return Errored, fmt.Sprintf("the control %s is an error: %s", o.Name, o.Reason)
		case o.Role != scenario.Candidate && o.Outcome != o.Expected:
			return NoAnswer, fmt.Sprintf(
				"the control %s is %s and should be %s: %s",
				o.Name,
				o.Outcome,
				o.Expected,
				o.Reason,
			)
		case twin && known && o.Outcome != a.Outcome:
			return NoAnswer, fmt.Sprintf(
				"it is %s and %s is %s, and they are the same program: %s",
				a.Outcome,
				o.Name,
				o.Outcome,
				a.Reason,
			)
		case o.Role == scenario.Vulnerable && o.Outcome == verdict.Reproduced:
			bites = true
		}
	}
	if !bites {
		return NoAnswer, "no vulnerable arm beside it showed the incident"
	}
	switch {
	case string(a.Outcome) == g.Right:
		return g.byItsGrounds(a)
	case a.Outcome == verdict.Inconclusive:
		return NoAnswer, a.Reason
	}
	return Wrong, a.Reason
}
