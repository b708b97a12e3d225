package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// view is what a reader is told of a verdict. It is put together once. The writers of the terminal's text, report.md,
// summary.md, junit.xml and report.html only lay it out, and shorten it where they have less room.
//
// The sentences of the view lack the notes that Weakens and Tried list, and Weakens lacks what the sentence says.
type view struct {
	judge.Verdict
	Weakens  []string // what weakens the run
	Trials   []trialView
	Builds   []buildView // one for each arm of each pair, over its trials
	Repeated bool        // whether a pair had more than one trial, so that rates say something
	Again    []string    // the commands that repeat the run, the one to start with first
	Why      string      // where the causes of an Inconclusive verdict are explained; "" for any other
}

// trialView is one trial.
type trialView struct {
	Trial
	Arms     []armView
	Happened []event.Event // the events that readers want to know of the timeline
	SetAside bool          // whether an open-ended run didn't count it
}

// armView is one arm in one trial.
type armView struct {
	verdict.Arm
	Version, Digest string // of its source and its binary; "" if not known
	Built           judge.Built
	Asks            goroutine.Match // the goroutines that the check asks for whose detail is Decisive
	Lists           []listView      // the lists that decide, in the order in which they are asked
	Restarted       string          // what the restart of its subject showed; "" if there was none
}

// baselineList is the name of the list that asks for the signature before any fault.
const baselineList = "baseline"

// Tone returns the class that the style sheet has for the arm's outcome.
func (a armView) Tone() string { return toneOf(a.Arm) }

// listView is one list of an arm's checks. Met is True if all of them are met.
type listView struct {
	Name, Title string
	Met         check.Truth
	Rows        []rowView
}

// word returns the list's answer for a table in which people look for what is wrong. The baseline asks for the
// signature before the fault, so that "not met" is what everybody hopes for there.
func (l listView) word() string { return word(l.Name, l.Met) }

func word(list string, met check.Truth) string {
	if list == baselineList && met == check.False {
		return "clean"
	}
	return met.String()
}

// rowView is a check, or with Part one of the alternatives of the check before it.
type rowView struct {
	check.Finding
	Part bool
	Word string // its answer; see word
}

// buildView is one arm of one pair over its trials. Telling is the arm in the trial that says most about it: the first
// in which it was not as expected, or else the first of all.
type buildView struct {
	judge.Rate
	Trials            int
	Counts            map[verdict.Outcome]int
	Telling           armView
	Versions, Digests []string // each once: trials should agree
}

// viewOf returns the view of a verdict. trials are the verdict's, as Read or bare returns them.
func viewOf(v judge.Verdict, trials []Trial) view {
	out := view{Verdict: v, Again: again(v)}
	if v.Verdict == verdict.VerdictInconclusive {
		out.Why = verdict.WhyInconclusive
	}
	for _, t := range v.Trials {
		out.Sentence = without(out.Sentence, t.Notes)
	}
	out.Weakens = slices.DeleteFunc(slices.Clone(v.Deviates), func(s string) bool {
		return slices.Contains(v.Tried, s) || strings.Contains(out.Sentence, s)
	})
	for _, t := range trials {
		out.Trials = append(out.Trials, trialViewOf(t, v))
	}
	for _, r := range v.Rates {
		b := buildOf(r, out.Trials)
		out.Builds, out.Repeated = append(out.Builds, b), out.Repeated || b.Trials > 1
	}
	return out
}

// without takes notes out of a sentence, which has them after what it says. They decide nothing.
func without(sentence string, notes []string) string {
	for _, n := range notes {
		sentence = strings.Replace(sentence, "; "+n, "", 1)
	}
	return sentence
}

func trialViewOf(t Trial, v judge.Verdict) trialView {
	t.Sentence = without(t.Sentence, t.Notes)
	out := trialView{Trial: t, SetAside: v.Until != nil && judge.SetAside(t.Trial.Trial)}
	digests := t.BinaryDigests()
	asked := asks(slices.Concat(t.Plan.Signature, t.Plan.Exposure, t.Plan.Healed, t.Plan.Steady))
	for _, a := range t.Arms {
		out.Arms = append(out.Arms, armView{
			Arm: a, Version: t.Versions[a.Name], Digest: digests[a.Name], Restarted: restarted(a),
			Built: about(v, t.Pair, a.Name), Asks: asked[a.DecidedBy],
			Lists: []listView{
				listOf(
					"identity",
					"Identity: it is the binary that was built, and one process",
					a.Identity,
				),
				listOf("steady", "Steady state, before any fault", a.Steady),
				listOf(baselineList, "Baseline: the signature, asked before the fault; it must not be there", a.Baseline),
				listOf("exposure", "Exposure: the fault took effect, and reached the code in question", a.Exposure),
				listOf("signature", "Signature: the incident's fingerprint", a.Signature),
				listOf("healed", "Healed: it is well", a.Healed),
			},
		})
	}
	for _, e := range t.Events {
		switch e.Type {
		case event.Phase, event.FaultSeen, event.FaultGone, event.FaultMissed, event.LoadMissed, event.Warning, event.Failure,
			event.StageDone:
			out.Happened = append(out.Happened, e)
		}
	}
	return out
}

// All returns the lists that decide, followed by the list that is only shown.
func (a armView) All() []listView {
	return append(
		slices.Clone(a.Lists),
		listOf("information (decides nothing)", "Information: decides nothing",
			a.Info),
	)
}

func listOf(name, title string, findings []check.Finding) listView {
	out := listView{Name: name, Title: title}
	var met []check.Truth
	for _, f := range findings {
		met = append(met, f.Met)
		out.Rows = append(out.Rows, rowView{f, false, word(name, f.Met)})
		for _, part := range f.AnyOf {
			out.Rows = append(out.Rows, rowView{part, true, word(name, part.Met)})
		}
	}
	out.Met = check.All(met...)
	return out
}

// restarted says what the restart of an arm's subject showed, "" if there was none.
func restarted(a verdict.Arm) string {
	switch r := a.Restart; {
	case r == nil:
		return ""
	case r.ReadySeconds < 0:
		return fmt.Sprintf(
			"the restart of %s did not heal its node within %.0f s",
			a.Name,
			r.LimitSeconds,
		)
	default:
		return fmt.Sprintf(
			"the restart of %s healed its node in %.1f s (limit %.0f s): the incident's own proof of "+
				"the diagnosis",
			a.Name,
			r.ReadySeconds,
			r.LimitSeconds,
		)
	}
}

func buildOf(r judge.Rate, trials []trialView) buildView {
	out := buildView{Rate: r, Counts: map[verdict.Outcome]int{}}
	for _, t := range trials {
		for _, a := range t.Arms {
			if t.Pair != r.Pair || a.Name != r.Arm {
				continue
			}
			asBefore := out.Telling.Outcome == out.Telling.Expected
			if out.Trials++; out.Trials == 1 || asBefore && a.Outcome != a.Expected {
				out.Telling = a
			}
			out.Counts[a.Outcome]++
			out.Versions = withOnce(out.Versions, a.Version)
			out.Digests = withOnce(out.Digests, a.Digest)
		}
	}
	return out
}

// withOnce adds a string to a list that lacks it.
func withOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// Tone returns the class that the style sheet has for the arm in the trial that says most.
func (b buildView) Tone() string { return b.Telling.Tone() }

// Outcomes returns "NotReproduced", or "4 NotReproduced, 1 Broken" if trials differ.
func (b buildView) Outcomes() string {
	if len(b.Counts) == 1 {
		return string(b.Telling.Outcome)
	}
	var parts []string
	for _, o := range sortedKeys(b.Counts) {
		parts = append(parts, fmt.Sprintf("%d %s", b.Counts[o], o))
	}
	return strings.Join(parts, ", ")
}

// owner returns the name of the arm that an artifact is from.
func owner(a bundle.Artifact) string {
	if a.Arm == "" {
		return bundle.Shared
	}
	return a.Arm
}
