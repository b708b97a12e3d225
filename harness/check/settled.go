package check

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Settled says when the subject is over what the fault left behind. A request made before that may have got lost, and
// may be made again.
type Settled struct {
	Metric string  `json:"metric" jsonschema:"a counter of something that the subject does again and again, whatever work it is given"`
	By     float64 `json:"by" jsonschema:"the subject has settled once the counter has grown by this much since the phase began (above 0)"`
}

func (c *Settled) validate() error {
	if c == nil {
		return nil
	}
	return errors.Join(refuse(c.Metric == "", "settled.metric is empty"),
		refuse(c.By <= 0, "settled.by is %g (want above 0)", c.By))
}

// before says whether the subject had not settled yet at a time, and what shows that. If the time lies between two
// samples that don't decide, the answer is unknown.
func (c *Settled) before(q *question, at time.Time) (Truth, string) {
	phase, ok := q.view.Phase(q.arm, q.phase)
	if !ok {
		return Unknown, "the phase " + q.phase + " never began"
	}
	s := metricSeries(q.over(bundle.Window{Start: phase.Start.Add(-hole), End: at.Add(hole)}), c.Metric, nil)
	q.Evidence = union(q.Evidence, s.paths...)
	if i := s.reset(); i > 0 {
		return Unknown, fmt.Sprintf("%s was reset at %s", c.Metric, clock(s.samples[i].asked))
	}
	var outer, inner []sample // outer encloses the time from the phase's beginning to at; inner lies within that time
	for _, x := range s.samples {
		if !x.answered.After(phase.Start) {
			outer = []sample{x}
			continue
		}
		if outer = append(outer, x); !x.answered.Before(at) {
			break
		}
		if !x.asked.Before(phase.Start) {
			inner = append(inner, x)
		}
	}
	least := 0.0
	if len(inner) > 1 {
		least = inner[len(inner)-1].value - inner[0].value
	}
	if least >= c.By {
		return False, fmt.Sprintf("%s had grown by %g before", c.Metric, least)
	}
	if n := len(outer); n > 1 && !outer[0].answered.After(phase.Start) && !outer[n-1].asked.Before(at) {
		if most := outer[n-1].value - outer[0].value; most < c.By {
			return True, fmt.Sprintf("%s had grown by %g at most before", c.Metric, most)
		}
	}
	return Unknown, fmt.Sprintf("nothing says whether %s had grown by %g before", c.Metric, c.By)
}
