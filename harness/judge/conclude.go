package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// cutShort records why there are fewer trials than were planned; why is "" if there are not. Whoever ends a run chooses
// when, so a run that was cut short is at best Inconclusive. What its trials show against the build stands.
func (v *Verdict) cutShort(why string) {
	if why == "" {
		return
	}
	v.Deviates = union(v.Deviates, []string{why})
	v.Sentence = why + "; " + v.Sentence
	if v.ExitCode == verdict.ExitOK {
		v.Verdict, v.ExitCode = verdict.VerdictInconclusive, verdict.ExitInconclusive
		v.Sentence += verdict.NextStep + "run it again to its end"
	}
}

// without records the trials that left no bundle. Those that may have destroyed their own evidence count against each
// judged arm, and no run with a lost trial is better than Inconclusive.
func (v *Verdict) without(lost []bundle.LostTrial) {
	if len(lost) == 0 {
		return
	}
	v.lost = lost
	said := lostInWords(lost, len(v.Trials)+len(lost))
	v.Deviates, v.Sentence = union(v.Deviates, []string{said}), said+"; "+v.Sentence
	for _, t := range lost {
		if t.Seen != "" {
			says := fmt.Sprintf("trial %s: %s, and counts for nothing", t.ID, t.Seen)
			v.Deviates = union(v.Deviates, []string{says})
		}
	}
	if v.ExitCode == verdict.ExitOK {
		v.Verdict, v.ExitCode = verdict.VerdictInconclusive, verdict.ExitInconclusive
		v.Sentence += nextForLost
	}
}

// nextForLost is what to do about a trial without evidence.
const nextForLost = verdict.NextStep + "look into why it was lost, and run it again"

// lostInWords says how many of all trials left no evidence, and why. Trials that were lost alike are named together.
func lostInWords(lost []bundle.LostTrial, all int) string {
	if len(lost) == 1 && all > 1 {
		return lost[0].String()
	}
	var reasons []string
	of := map[string][]string{}
	for _, t := range lost {
		why := t.Reason()
		if of[why] == nil {
			reasons = append(reasons, why)
		}
		of[why] = append(of[why], t.ID)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(of[why], ", ") + ": " + why
	}
	return fmt.Sprintf(
		"%d of %d trials left no evidence; %s",
		len(lost),
		all,
		strings.Join(reasons, "; "),
	)
}

// union joins lists in order and keeps only the first of equal strings.
func union(lists ...[]string) []string {
	out := []string{}
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// conclude sets the verdict over all trials: that of the first trial whose exit code outranks the others. Where
// there is no trial, all were lost.
func (v *Verdict) conclude() {
	if len(v.Trials) == 0 {
		v.Verdict, v.ExitCode = verdict.VerdictInconclusive, verdict.ExitInconclusive
		v.Sentence = "nothing is known of any arm" + nextForLost
		return
	}
	var exits []int
	for _, t := range v.Trials {
		exits = append(exits, t.Exit)
	}
	v.ExitCode = verdict.Combine(exits)
	for _, t := range v.Trials {
		if t.Exit == v.ExitCode {
			v.Verdict, v.Sentence = t.Verdict, t.Sentence
			break
		}
	}
	if n := len(v.Trials); n > 1 {
		alike := 0
		for _, t := range v.Trials {
			if t.Verdict == v.Verdict {
				alike++
			}
		}
		v.Sentence = fmt.Sprintf("%d of %d trials are %s; %s", alike, n, v.Verdict, v.Sentence)
	}
}

// Only returns the verdict of one pair of a run, from the trials of that pair. The pairs stay as they are.
func (v Verdict) Only(pair string) Verdict {
	if len(v.Pairs) == 1 {
		return v
	}
	v.Trials = slices.DeleteFunc(
		slices.Clone(v.Trials),
		func(t Trial) bool { return t.Pair != pair },
	)
	v.Rates = slices.DeleteFunc(
		slices.Clone(v.Rates),
		func(r Rate) bool { return r.Pair != pair },
	)
	v.Deviates, v.Tried = []string{}, []string{}
	for _, t := range v.Trials {
		v.Deviates, v.Tried = union(v.Deviates, t.weakens()), union(v.Tried, t.Tried)
	}
	v.conclude()
	if v.Until != nil {
		for _, e := range v.Until.Pairs {
			if e.Pair == pair {
				v.Verdict, v.ExitCode, v.Sentence = e.Verdict, e.ExitCode, e.String()
			}
		}
	}
	v.weaken(
		slices.DeleteFunc(
			slices.Clone(v.lost),
			func(t bundle.LostTrial) bool { return t.Pair != pair },
		),
	)
	return v
}

// Alone returns what a run's trials say of one of their candidates, as if the others weren't there. The run must not be
// open-ended.
func (v Verdict) Alone(candidate string) Verdict {
	v.Trials, v.Arms = slices.Clone(v.Trials), []verdict.Arm{}
	for i := range v.Trials {
		v.Trials[i].Trial = v.Trials[i].Trial.Alone(candidate)
		v.Arms = append(v.Arms, v.Trials[i].Arms...)
	}
	v.conclude()
	v.weaken(v.lost)
	return v
}

// weaken has a new conclusion say that the run was cut short, which trials are lost, and what else weakens it.
func (v *Verdict) weaken(lost []bundle.LostTrial) {
	v.cutShort(v.cut)
	v.lost = nil
	v.without(lost)
	v.Deviates = union(v.Deviates, v.aside)
}

// took returns how many seconds there are between the first and the last event of all trials.
func took(trials []Trial) float64 {
	var from, to time.Time
	for _, t := range trials {
		for _, e := range t.Events {
			if from.IsZero() || e.Time.Before(from) {
				from = e.Time
			}
			if e.Time.After(to) {
				to = e.Time
			}
		}
	}
	return to.Sub(from).Round(time.Millisecond).Seconds()
}
