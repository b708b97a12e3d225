package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// SummaryFile is what goes into a pull request.
const SummaryFile = "summary.md"

// SummaryLines is the most that a summary has, whatever the run: it is read where nobody asked for a report.
const SummaryLines = 30

// How many arms a summary has a row for, and how many it tells more of. Each is one arm of one pair, over all its trials.
const (
	summaryRows = 6
	summaryTold = 4
)

// Summary writes summary.md: the verdict, the arms with their binaries, what hit them and what was seen then, how often, what was only modelled and how
// to repeat it, in SummaryLines lines at most.
func Summary(w io.Writer, v Verdict) error {
	p := printer{w: w}
	p.say("## relapse, %s: %s\n\n", cell(v.Scenario), v.Verdict)
	p.say("**%s** (exit %d): %s.\n\n", v.Verdict, v.ExitCode, line(v.Sentence, 500))
	arms := v.armsOfPairs()
	p.say("| pair | arm | version | SHA-256 of its binary | outcome | Reproduced |\n|---|---|---|---|---|---|\n")
	for _, a := range arms[:min(len(arms), summaryRows)] {
		p.say("| %s | %s | %s | %s | %s | %s |\n", cell(a.rate.Pair), cell(a.rate.Arm), cell(strings.Join(a.versions, "; ")), cell(strings.Join(a.digests, "; ")), cell(a.outcomes()), cell(a.often(v)))
	}
	if more := len(arms) - summaryRows; more > 0 {
		p.say("| | and %d more, in %s | | | | |\n", more, ReportFile)
	}
	p.say("\n")
	told := arms[:min(len(arms), summaryTold)]
	for _, a := range told {
		p.say("- what hit **%s**%s: %s\n- what was seen of it: %s\n", cell(a.rate.Arm), a.where(), line(a.hit(), 350), line(a.seen(), 450))
	}
	if more := len(arms) - len(told); more > 0 {
		p.say("- and %d more arms, in %s\n", more, ReportFile)
	}
	p.say("\n- modelled: %s\n", line(orNothing(v.Modelled), 500))
	if len(v.Deviates) > 0 {
		p.say("- what weakens it: %s\n", line(strings.Join(v.Deviates, "; "), 500))
	}
	p.say("- again: `%s`\n", strings.Join(again(v), "`, or with all that was planned: `"))
	p.say("- run %s of %s, plan %.12s, judged by relapse %s\n", v.Index.Run, v.StartedAt.UTC().Format(time.RFC3339), v.Index.Plan, line(v.Judge, 80))
	if p.err != nil {
		return fmt.Errorf("writing %s: %w", SummaryFile, p.err)
	}
	return nil
}

// armOfPair is one arm of one pair over its trials. telling is what it was in the trial that says most: the first in which it wasn't as expected, else
// the first.
type armOfPair struct {
	rate              Rate
	trials            int
	counts            map[verdict.Outcome]int
	telling           verdict.Arm
	versions, digests []string // each once: trials should agree
}

func (v Verdict) armsOfPairs() []armOfPair {
	var out []armOfPair
	for _, r := range v.Rates {
		one := armOfPair{rate: r, counts: map[verdict.Outcome]int{}}
		for _, t := range v.Trials {
			i := slices.IndexFunc(t.Arms, func(a verdict.Arm) bool { return a.Name == r.Arm })
			if t.Pair != r.Pair || i < 0 {
				continue
			}
			a := t.Arms[i]
			if one.trials++; one.trials == 1 || one.telling.Outcome == one.telling.Expected && a.Outcome != a.Expected {
				one.telling = a
			}
			one.counts[a.Outcome]++
			one.versions = union(one.versions, []string{t.Versions[a.Name]})
			one.digests = union(one.digests, []string{indexed(t).Arms[a.Name]})
		}
		out = append(out, one)
	}
	return out
}

// outcomes are "NotReproduced", or "4 NotReproduced, 1 Broken".
func (a armOfPair) outcomes() string {
	var parts []string
	for _, o := range sortedKeys(a.counts) {
		parts = append(parts, fmt.Sprintf("%d %s", a.counts[o], o))
	}
	if len(parts) == 1 {
		return string(a.telling.Outcome)
	}
	return strings.Join(parts, ", ")
}

// often is k of n with its interval; of an open-ended run the bound that allows for when it stopped.
func (a armOfPair) often(v Verdict) string {
	if v.Until != nil {
		return a.rate.Sentence
	}
	return fmt.Sprintf("%s (%.0f to %.0f %%, at %g %%)", a.rate.counted(), a.rate.Low*100, a.rate.High*100, a.rate.Confidence*100)
}

// where names the pair and the trial that is told of, where there are several.
func (a armOfPair) where() string {
	if a.trials < 2 {
		return fmt.Sprintf(" (%s)", cell(a.rate.Pair))
	}
	return fmt.Sprintf(" (%s, trial %s of %d)", cell(a.rate.Pair), a.telling.Trial, a.trials)
}

// hit says whether the arm was exposed, and what shows it.
func (a armOfPair) hit() string {
	return fmt.Sprintf("exposure %s: %s", sum(a.telling.Exposure), findings(a.telling.Exposure))
}

// seen is what the outcome rests on beside the exposure: the signature, or what shows that the arm is well, else its reason.
func (a armOfPair) seen() string {
	switch a.telling.Outcome {
	case verdict.Reproduced:
		return "the signature is met: " + findings(a.telling.Signature)
	case verdict.NotReproduced:
		return "the signature is not met, and the subject is well: " + findings(a.telling.Healed)
	}
	return a.telling.Reason
}

// findings names what was seen, of alternatives that held only those that did.
func findings(list []check.Finding) string {
	var parts []string
	for _, f := range list {
		some := []check.Finding{f}
		if len(f.AnyOf) > 0 {
			some = slices.DeleteFunc(slices.Clone(f.AnyOf), func(part check.Finding) bool { return f.Met == check.Met && part.Met != check.Met })
		}
		for _, part := range some {
			parts = append(parts, part.Name+": "+part.Seen)
		}
	}
	return orNothing(parts)
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, "; ")
}

// line makes a text one line of a list.
func line(s string, n int) string { return cell(clip(s, n)) }
