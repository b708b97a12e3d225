package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/judge"
	counts "github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// SummaryFile is the name of the report for a pull request.
const SummaryFile = "summary.md"

// How many arms have a row in a summary, and how many have details. An arm here is one arm of one pair, over all its
// trials.
const (
	summaryRows = 6
	summaryTold = 4
)

// Summary writes summary.md, in at most 30 lines, because people read it who didn't ask for a report. It says the
// verdict, the arms with their binaries, what hit the arms and what was seen of that, how often the incident showed,
// what was only modelled, and how to repeat the run.
func Summary(w io.Writer, of judge.Verdict) error {
	p, v := printer{w: w}, viewOf(of, bare(of))
	p.printf("## relapse, %s: %s\n\n", inTable(v.Scenario), v.Verdict.Verdict)
	p.printf("**%s** (exit %d): %s.\n\n", v.Verdict.Verdict, v.ExitCode, line(v.Sentence, 500))
	p.printf("%s.\n\n", line(v.Bug.String(), 300))
	p.printf("| pair | arm | built from | SHA-256 of its binary | outcome | Reproduced |\n|---|---|---|---|---|---|\n")
	for _, b := range v.Builds[:min(len(v.Builds), summaryRows)] {
		p.printf("| %s | %s | %s | %s | %s | %s |\n", inTable(b.Pair), inTable(b.Arm), inTable(about(v.Verdict, b.Pair, b.Arm).String()),
			inTable(strings.Join(b.Digests, "; ")), inTable(b.Outcomes()), inTable(b.often(v.Until != nil)))
	}
	if more := len(v.Builds) - summaryRows; more > 0 {
		p.printf("| | and %d more, in %s | | | | |\n", more, ReportFile)
	}
	p.printf("\n")
	told := v.Builds[:min(len(v.Builds), summaryTold)]
	for _, b := range told {
		p.printf(
			"- what hit **%s**%s: %s\n- what was seen of it: %s\n",
			inTable(b.Arm),
			b.where(),
			line(b.hit(), 350),
			line(b.seen(), 450),
		)
	}
	if more := len(v.Builds) - len(told); more > 0 {
		p.printf("- and %d more arms, in %s\n", more, ReportFile)
	}
	p.printf("- modelled: %s\n", line(orNothing(v.Modelled), 500))
	if len(v.Weakens) > 0 {
		p.printf("- what weakens it: %s\n", line(strings.Join(v.Weakens, "; "), 500))
	}
	if len(v.Tried) > 0 {
		p.printf(
			"- what was tried, and what was not: %s\n",
			line(strings.Join(v.Tried, "; "), 500),
		)
	}
	p.printf("- again: `%s`\n", strings.Join(v.Again, "`, or with all that was planned: `"))
	p.printf(
		"- run %s of %s, which took %s, plan %.12s, judged by relapse %s\n",
		v.Index.Run,
		clock(v.StartedAt),
		lasted(v.Seconds),
		v.Index.Plan,
		line(v.Judge, 80),
	)
	if p.err != nil {
		return fmt.Errorf("writing %s: %w", SummaryFile, p.err)
	}
	return nil
}

// often returns k of n with its interval. For an open-ended run it returns the bound that allows for the choice of when
// to stop.
func (b buildView) often(openEnded bool) string {
	if openEnded {
		return b.Sentence
	}
	return fmt.Sprintf(
		"%s: %s",
		b.Counted(),
		counts.InWords(b.Counted(), b.CountsAgainst(), b.Confidence),
	)
}

// where names the pair, and which trial is described if there are several.
func (b buildView) where() string {
	if b.Trials < 2 {
		return fmt.Sprintf(" (%s)", inTable(b.Pair))
	}
	return fmt.Sprintf(" (%s, trial %s of %d)", inTable(b.Pair), b.Telling.Trial, b.Trials)
}

// hit says whether the arm was exposed, and what shows it.
func (b buildView) hit() string {
	exposure := b.Telling.Exposure
	return fmt.Sprintf("exposure %s: %s", listOf("", "", exposure).Met, findings(exposure))
}

// seen says what the outcome rests on in addition to the exposure: the signature, the proof that the subject is well,
// or the reason.
func (b buildView) seen() string {
	switch b.Telling.Outcome {
	case verdict.Reproduced:
		return "the signature is met: " + findings(b.Telling.Signature)
	case verdict.NotReproduced:
		return "the signature is not met, and the subject is well: " + findings(b.Telling.Healed)
	}
	return b.Telling.Reason
}

// findings lists what the checks saw. Of alternatives it lists only those that are met, if the check is met.
func findings(list []check.Finding) string {
	var parts []string
	for _, f := range list {
		some := []check.Finding{f}
		if len(f.AnyOf) > 0 {
			some = slices.DeleteFunc(slices.Clone(f.AnyOf), func(part check.Finding) bool {
				return f.Met == check.True && part.Met != check.True
			})
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

// line makes a text fit one line of a list.
func line(s string, n int) string { return inTable(clip(s, n)) }
