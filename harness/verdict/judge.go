package verdict

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Arm is one arm's outcome in one trial, with its findings. Baseline has the findings of the signature in the baseline,
// Identity those of the checks that every arm of every scenario gets. No list that goes into JSON is nil.
type Arm struct {
	Name      string          `json:"name"`
	Role      string          `json:"role"`
	Pair      string          `json:"pair"`
	Trial     string          `json:"trial"`
	Outcome   Outcome         `json:"outcome"`
	Expected  Outcome         `json:"expected"`
	Reason    string          `json:"reason"`
	Identity  []check.Finding `json:"identity"`
	Steady    []check.Finding `json:"steady"`
	Baseline  []check.Finding `json:"baseline"`
	Exposure  []check.Finding `json:"exposure"`
	Signature []check.Finding `json:"signature"`
	Healed    []check.Finding `json:"healed"`
	Info      []check.Finding `json:"information,omitempty"` // asked and shown; decides nothing
	Restart   *RestartProof   `json:"restart,omitempty"`
	Because   []check.Finding `json:"-"` // the checks that the outcome rests on
	Decisive  string          `json:"-"` // the stack or line that decided, verbatim
	DecidedBy string          `json:"-"` // the check whose detail that is
	Next      string          `json:"-"` // what to do about an Inconclusive outcome; Reason ends with it
	BuiltIn   BuiltIn         `json:"-"` // the answers to the checks that every arm gets
	Program   string          `json:"-"` // SHA-256 of its binary, or of all in order; "" if it isn't known

	mayBeIncident bool
	missed        string // faults and loads that never came in the arm
}

func (a Arm) line() ArmOutcome {
	return ArmOutcome{
		Name:          a.Name,
		Role:          a.Role,
		Outcome:       a.Outcome,
		Expected:      a.Expected,
		Digest:        a.Program,
		MayBeIncident: a.mayBeIncident,
		Next:          a.Next,
	}
}

// RestartProof records the last proof of the diagnosis: after all data for judging was safe, the deadlocked subject was
// restarted, which should heal it. The proof decides nothing. ReadySeconds is -1 if the subject was not ready within
// LimitSeconds.
type RestartProof struct {
	ReadySeconds float64 `json:"readySeconds"`
	LimitSeconds float64 `json:"limitSeconds"`
}

// Trial is the verdict over one trial. Notes are what a reader must know in addition to the outcomes. The sentence of
// an Inconclusive trial ends with what to do next.
type Trial struct {
	ID       string
	Pair     string
	Arms     []Arm
	Verdict  Verdict
	Exit     int
	Sentence string
	Notes    []string
	Tried    []string // those of Notes that say what a judged arm survived, and what was not tried
	Gone     string   // says which files of the bundle are gone, "" if none are
}

// Judge evaluates every arm of a trial over its bundle and returns the verdict. An error is a failure of the harness;
// then there is no verdict.
func Judge(v bundle.View, t plan.Trial) (Trial, error) {
	out := Trial{ID: t.ID, Pair: t.Pair}
	if len(t.Arms) == 0 {
		return out, fmt.Errorf("judging trial %s: its plan has no arm", t.ID)
	}
	for _, c := range t.Arms {
		arm, err := judgeArm(v, t, c)
		if err != nil {
			return out, fmt.Errorf("judging arm %s of trial %s: %w", c.Name, t.ID, err)
		}
		arm.Program = armWorld(v.World(), c.Name).Program()
		out.Arms = append(out.Arms, arm)
	}
	if path, n := missingFiles(v, ""); n > 0 {
		out.Gone = fmt.Sprintf(
			"files of the bundle are gone (%d, such as %s), and what they would say is not known",
			n,
			path,
		)
	}
	next := out.decide()
	nameCauses(v, out.Arms)
	out.Tried = slices.Concat(survived(v.World(), t, out.Arms), ways(t, out.Arms))
	out.Notes = slices.Concat(notes(v, t, out.Arms), hostNotes(v, t, out.Verdict), out.Tried)
	for _, note := range out.Notes {
		out.Sentence += "; " + note
	}
	if next != "" {
		out.Sentence += NextStep + next
	}
	return out, nil
}

// decide sets the verdict over the trial's arms, and returns what to do about it if it is Inconclusive.
func (t *Trial) decide() (next string) {
	var lines []ArmOutcome
	for _, a := range t.Arms {
		lines = append(lines, a.line())
	}
	t.Verdict, t.Exit, t.Sentence, next = Decide(lines)
	if t.Gone != "" && t.Exit == ExitOK && t.Verdict != VerdictReproduced {
		t.Sentence = t.Gone + "; without them " + t.Sentence
		t.Verdict, t.Exit, next = VerdictInconclusive, ExitInconclusive, nextForGoneFiles
	}
	return next
}

// Alone returns what the trial says of one of its candidates, as if the others weren't there. Those with an answer that run
// the same program stay: where theirs is another, the build doesn't make the difference. The notes are left out.
func (t Trial) Alone(candidate string) Trial {
	i := slices.IndexFunc(t.Arms, func(a Arm) bool { return a.Name == candidate })
	t.Arms = slices.DeleteFunc(slices.Clone(t.Arms), func(a Arm) bool {
		same := i >= 0 && a.Program != "" && a.Program == t.Arms[i].Program &&
			a.Outcome != Inconclusive
		return a.Role == scenario.Candidate && a.Name != candidate && !same
	})
	t.Notes, t.Tried = nil, nil
	if next := t.decide(); next != "" {
		t.Sentence += NextStep + next
	}
	return t
}

// judgeArm evaluates all checks of one arm and finds its outcome in the outcome table.
func judgeArm(v bundle.View, t plan.Trial, c plan.Arm) (Arm, error) {
	a := Arm{Name: c.Name, Role: c.Role, Pair: t.Pair, Trial: t.ID, Expected: Outcome(c.Expected)}
	a.missed = neverCame(v, c.Name)
	in := Inputs{
		HarnessError: failure(v, c.Name),
		NeverReady:   neverReady(v, t, c),
		Missed:       a.missed,
	}
	var err error
	if a.Steady, in.Steady, err = Evaluate(v, c.Name, check.Steady, t.Steady); err != nil {
		return a, err
	}
	if a.Baseline, in.Baseline, err = evaluateBaseline(v, c.Name, t.Signature); err != nil {
		return a, err
	}
	if a.Exposure, in.Exposure, err = Evaluate(v, c.Name, check.Fault, t.Exposure); err != nil {
		return a, err
	}
	if a.Signature, in.Signature, err = EvaluateSignature(v, c.Name, t.Signature); err != nil {
		return a, err
	}
	if a.Healed, in.Healed, err = Evaluate(v, c.Name, check.Recovery, t.Healed); err != nil {
		return a, err
	}
	if a.Info, _, err = Evaluate(v, c.Name, check.Recovery, t.Info); err != nil {
		return a, err
	}
	a.Restart = restartProof(v, c.Name)
	var end time.Time
	if in.Signature != check.False { // without the incident, a subject that ended has failed, however well it is later
		end = endOfSubject(a.Signature)
	}
	a.Identity, in.Binary, in.Process = identity(v, t, c, end)
	if in.Process == check.False && endedSomehow(a.Signature) {
		in.Process = check.Unknown // the process ended, and nobody knows whether the incident ended it
	}
	a.BuiltIn = builtIn(in)
	a.Outcome, a.Reason = OutcomeOf(in)
	a.mayBeIncident = rowOf(in).mayBeIncident
	explain(step{view: v, trial: t, arm: &a, in: in})
	return a, nil
}

// restartProof reads the record of the restart; nil if no restart was made, or its record can't be read.
func restartProof(v bundle.View, arm string) *RestartProof {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Restart, Arm: arm}) {
		r, err := v.Open(a)
		if err != nil {
			continue
		}
		var p bundle.RestartProof
		err = json.NewDecoder(r).Decode(&p)
		r.Close()
		if err == nil {
			return &RestartProof{ReadySeconds: p.ReadySeconds, LimitSeconds: p.LimitSeconds}
		}
	}
	return nil
}

// endOfSubject returns when the incident ended the subject's process, by a part of the signature that is True; zero if
// no such part says so.
func endOfSubject(signature []check.Finding) time.Time {
	for _, f := range signature {
		if f.Met != check.True {
			continue
		}
		if !f.Ended.IsZero() {
			return f.Ended
		}
		if t := endOfSubject(f.AnyOf); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// endedSomehow reports whether a part of the signature saw the process end and can't say why.
func endedSomehow(signature []check.Finding) bool {
	return slices.ContainsFunc(signature, func(f check.Finding) bool {
		return f.Met == check.Unknown && !f.Ended.IsZero() || endedSomehow(f.AnyOf)
	})
}

// neverJudged is the answer to a check of the whole run, for an arm whose run never began.
func neverJudged(name string) check.Finding {
	return nonNil(check.Finding{Name: name, Code: check.NoPhase, Seen: "the steady state never began"})
}

// identity makes the checks that every arm gets: is it the binary that was built, was it built like its counterpart,
// and was it one process, at least until the incident ended it?
func identity(v bundle.View, t plan.Trial, c plan.Arm,
	ended time.Time) (findings []check.Finding, binary, process check.Truth) {
	judged, ends, begun := judgedWindow(v, c.Name, ended)
	b, p := check.Finding{Name: CheckBinary}, check.Finding{Name: CheckProcess}
	if begun {
		b, p = checkBinary(v, c.Name, armWorld(v.World(), c.Name).Digests(), judged, ends), checkProcess(v, c.Name,
			judged, ends)
	} else {
		b, p = neverJudged(CheckBinary), neverJudged(CheckProcess)
	}
	findings = []check.Finding{b, p}
	binary = b.Met
	for _, other := range t.Arms {
		if other.Name != c.Name && sameSource(c.Source, other.Source) {
			f := checkAlike(v.World(), c.Name, other.Name)
			findings = append(findings, f)
			binary = check.All(binary, f.Met)
		}
	}
	return findings, binary, p.Met
}

// sameSource reports whether two arms have one source, so that they may differ only in their mutations.
func sameSource(a, b scenario.Source) bool {
	return !a.Given() && !b.Given() && a.Module == b.Module && a.Version == b.Version && a.Package == b.Package &&
		a.Dir == b.Dir && a.Fork == b.Fork &&
		maps.Equal(a.Replace, b.Replace)
}

// checkAlike compares the module graph, flags and Go version with which two arms of one source were built.
func checkAlike(w bundle.World, arm, other string) check.Finding {
	a, b := armWorld(w, arm), armWorld(w, other)
	f := check.Finding{
		Name:   CheckAlike,
		Met:    check.True,
		Wanted: "the module graph, flags and Go version of " + other,
	}
	for _, part := range []struct{ what, a, b string }{
		{"module graph", a.Graph, b.Graph},
		{"flags", strings.Join(a.Flags, " "), strings.Join(b.Flags, " ")},
		{"Go version", a.GoVersion, b.GoVersion},
	} {
		switch {
		case part.a != part.b:
			f.Met = check.False
			f.Differs = append(
				f.Differs,
				fmt.Sprintf("%s: %q, and %q in %s", part.what, part.a, part.b, other),
			)
		case part.a == "" && part.what != "flags":
			f.Met = check.All(f.Met, check.Unknown)
			f.Differs = append(f.Differs, part.what+" was not recorded")
		}
	}
	if f.Met == check.Unknown {
		f.Code = check.NotRecorded
	}
	f.Seen = strings.Join(f.Differs, "; ")
	if f.Met == check.True {
		f.Seen = fmt.Sprintf("the same: %s, module graph %s", a.GoVersion, short(a.Graph))
	}
	return nonNil(f)
}

func armWorld(w bundle.World, arm string) bundle.ArmWorld {
	for _, c := range w.Arms {
		if c.Arm == arm {
			return c
		}
	}
	return bundle.ArmWorld{}
}

// failure returns the message of the harness's first failure for an arm, from the timeline.
func failure(v bundle.View, arm string) string {
	for _, e := range v.Timeline() {
		if e.Type == event.Failure && (e.Arm == "" || e.Arm == arm) {
			return e.Message
		}
	}
	return ""
}

// neverCame names the faults and loads that never came in an arm, for a reason that lies in the arm or because their phase
// ended at its deadline; "" if there is none.
func neverCame(v bundle.View, arm string) string {
	var out []string
	for _, e := range v.Timeline() {
		field := map[string]string{event.FaultMissed: "fault", event.LoadMissed: "load"}[e.Type]
		if name, ok := e.Fields[field].(string); ok && (e.Arm == arm || e.Arm == bundle.Shared) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}
