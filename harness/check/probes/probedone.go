// Package probes has the checks of what the harness asked the cluster itself: health endpoints, probes and loads.
package probes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "probeDone",
		Doc: "The subject finished a piece of work that a probe asked for.\n\n" +
			"Heartbeats and counters show that a subject ticks; a probe shows that the subject works: a pod ran and " +
			"is gone, or a collection was emptied. The check is true if every step was seen. The check is false if " +
			"the subject was asked and didn't do a step in time.\n\n" +
			"A later try counts only if every earlier try began before the subject had settled, because what the " +
			"fault left behind may have lost the earlier request. If an earlier try began after that, the check is " +
			"false. If nothing says when the subject settled, a probe that needed a later try is unknown. A probe is " +
			"also unknown if the end of the phase cut it off, if it couldn't ask the subject, or if it left no " +
			"record in the phase.",
		Example: "name: pod-runs\nkind: probeDone\nphase: recovery\nspec:\n  probe: pod\n  settled: {metric: " +
			"kubelet_pleg_relist_duration_seconds_count, by: 5}\n",
		Meets:   `{"probe":"works"}`,
		Differs: `{"probe":"idle"}`,
		New:     func() check.Check { return &ProbeDone{} },
	})
}

// ProbeDone checks that a probe did all its steps.
type ProbeDone struct {
	Probe   string   `json:"probe" refers:"probe" jsonschema:"name of a load that is a probe, in the same phase as the check"`
	Settled *Settled `json:"settled,omitempty" jsonschema:"when the subject is over what the fault left behind. A try that began before that moment may fail if a later try succeeds. Default: not known"`
}

// Reads names the probes' records, and the metric that shows that the subject has settled.
func (c *ProbeDone) Reads() []bundle.Kind {
	if c.Settled == nil {
		return []bundle.Kind{bundle.WorkProbe}
	}
	return []bundle.Kind{bundle.WorkProbe, bundle.MetricSamples}
}

// Validate refuses a check that names no probe, and a bad settled.
func (c *ProbeDone) Validate() error {
	return errors.Join(
		question.Refuse(c.Probe == "", "probe is empty (want the name of a load)"),
		c.Settled.validate(),
	)
}

// Describe says in words what is asked.
func (c *ProbeDone) Describe() string { return "every step of the probe " + c.Probe + " is done" }

// Eval reads the records of the probe that began in the window.
func (c *ProbeDone) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	var parts []question.Part
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.WorkProbe, Arm: q.Arm}) {
		p, err := question.Document[bundle.ProbeRecord](v, a, "a probe's record")
		if err != nil {
			parts = append(parts, question.Unsure(err))
			continue
		}
		if p.Name != c.Probe || !question.Contains(q.Window, p.Start) {
			continue
		}
		q.Evidence = append(q.Evidence, a.Path)
		part := judged(p)
		if part.Met == check.True {
			late := c.later(q, p)
			part.Met, part.Code, part.Said = late.Met, late.Code, part.Said+late.Said
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return q.Unknown(
			check.Doubt(
				check.NotRecorded,
				"the probe %s left no record of the phase %s in %s",
				c.Probe,
				q.Phase,
				q.Arm,
			),
		)
	}
	return q.AnswerAll(parts)
}

// later says whether the last try of a completed probe counts, and why. A first try always counts. A later try counts
// only if every earlier one began before the subject had settled.
func (c *ProbeDone) later(q *question.Question, p bundle.ProbeRecord) question.Part {
	last, out := p.Steps[len(p.Steps)-1].Try, question.Part{Met: check.True}
	for i, st := range p.Steps {
		if st.Try == last || i > 0 && p.Steps[i-1].Try == st.Try {
			continue
		}
		one := question.Unsure(check.Doubt(check.NotConclusive, "nothing says when it has settled"))
		if c.Settled != nil {
			one = c.Settled.before(q, st.Asked)
		}
		if out.Met = check.All(out.Met, one.Met); one.Met == check.Unknown {
			out.Code = one.Code
		}
		out.Said += fmt.Sprintf(
			"; try %d began at %s: %s",
			st.Try,
			question.Clock(st.Asked),
			one.Said,
		)
	}
	return out
}

// judged returns the answer that a probe's record gives, and a description of each step of its last try.
func judged(p bundle.ProbeRecord) question.Part {
	var said []string
	all := len(p.Steps) > 0
	for _, st := range p.Steps {
		if st.Try != p.Steps[len(p.Steps)-1].Try {
			continue // only the last try is described
		}
		if st.Seen.IsZero() {
			all = false
			said = append(said, "not "+st.Step)
			continue
		}
		one := fmt.Sprintf(
			"%s after %s",
			st.Step,
			st.Seen.Sub(st.Asked).Round(10*time.Millisecond),
		)
		if st.What != "" {
			one += " (" + st.What + ")"
		}
		said = append(said, one)
	}
	out := p.Work + ": " + strings.Join(said, ", ")
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Try > 1 {
		out += fmt.Sprintf(", in try %d", p.Steps[n-1].Try)
	}
	switch {
	case p.Ended == bundle.ProbeDone && all:
		return question.Part{Met: check.True, Said: out}
	case p.Ended == bundle.ProbeDone:
		return question.Unsure(
			check.Doubt(
				check.Unreadable,
				"%s; it says that it is done, and not every step is there",
				out,
			),
		)
	case p.Ended == bundle.ProbeFailed:
		return question.Part{Met: check.False, Said: out + "; " + p.Why}
	}
	return question.Unsure(check.Doubt(check.NotConclusive, "%s; %s: %s", out, p.Ended, p.Why))
}
