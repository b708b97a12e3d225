package probes

import (
	"errors"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Settled says when the subject is over what the fault left behind. A request made before that may have got lost, and
// may be made again.
type Settled struct {
	Metric string  `json:"metric" refers:"metric" jsonschema:"a counter of something that the subject does again and again, whatever work it is given"`
	By     float64 `json:"by" jsonschema:"the subject has settled once the counter has grown by this much since the phase began (above 0)"`
}

func (c *Settled) validate() error {
	if c == nil {
		return nil
	}
	return errors.Join(question.Refuse(c.Metric == "", "settled.metric is empty"),
		question.Refuse(c.By <= 0, "settled.by is %g (want above 0)", c.By))
}

// before says whether the subject had not settled yet at a time, and what shows that. If the time lies between two
// samples that don't decide, the answer is unknown.
func (c *Settled) before(q *question.Question, at time.Time) question.Part {
	phase, ok := q.View.Phase(q.Arm, q.Phase)
	if !ok {
		return question.Unsure(check.Doubt(check.NoPhase, "the phase %s never began", q.Phase))
	}
	s := metrics.ReadSeries(q.Over(bundle.Window{Start: phase.Start.Add(-metrics.MaxGap), End: at.Add(metrics.MaxGap)}), c.Metric, nil)
	q.Evidence = question.Union(q.Evidence, s.Paths...)
	if i := s.FirstReset(); i > 0 {
		return question.Unsure(
			check.Doubt(
				check.OtherProcess,
				"%s was reset at %s",
				c.Metric,
				question.Clock(s.Samples[i].Asked),
			),
		)
	}
	var outer, inner []metrics.Sample // outer encloses the time from the phase's beginning to at; inner lies within that time
	for _, x := range s.Samples {
		if !x.Answered.After(phase.Start) {
			outer = []metrics.Sample{x}
			continue
		}
		if outer = append(outer, x); !x.Answered.Before(at) {
			break
		}
		if !x.Asked.Before(phase.Start) {
			inner = append(inner, x)
		}
	}
	least := 0.0
	if len(inner) > 1 {
		least = inner[len(inner)-1].Value - inner[0].Value
	}
	if least >= c.By {
		return question.Answered(check.False, "%s had grown by %g before", c.Metric, least)
	}
	if n := len(outer); n > 1 && !outer[0].Answered.After(phase.Start) && !outer[n-1].Asked.Before(at) {
		if most := outer[n-1].Value - outer[0].Value; most < c.By {
			return question.Answered(
				check.True,
				"%s had grown by %g at most before",
				c.Metric,
				most,
			)
		}
	}
	return question.Unsure(check.Doubt(check.Gap, "nothing says whether %s had grown by %g before", c.Metric, c.By))
}
