package probes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/metrics"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Tolerance says how many looks may be bad while the subject is still judged well. One slow answer may be the fault of
// the machine; two in a row are the fault of the subject.
type Tolerance struct {
	Tolerate string `json:"tolerate,omitempty" jsonschema:"share of the probes that may be bad or get no answer, as long as no two in a row do: 0% to 50% (default 0%)"`
}

// Validate refuses a share above a half, and a text that is no share.
func (t Tolerance) Validate() error {
	share, err := t.share()
	return cmp.Or(err, question.Refuse(share < 0 || share > 0.5, "tolerate is %s (want 0%% to 50%%)", t.Tolerate))
}

// share returns the tolerated share as a fraction.
func (t Tolerance) share() (float64, error) {
	if t.Tolerate == "" {
		return 0, nil
	}
	return question.Percent("tolerate", t.Tolerate)
}

// Describe returns the tolerance as text to add to what is wanted.
func (t Tolerance) Describe(noun string) string {
	if t.Tolerate == "" {
		return ""
	}
	return fmt.Sprintf(", but for %s of the %s and no two in a row", t.Tolerate, noun)
}

// Reading is the result of one look: good, bad, or without an answer.
type Reading struct {
	Asked, Done time.Time
	Bad         string // what was wrong; "" if nothing was
	mute        string // why there is no answer; "" if there is one
}

// tally counts readings: good ones, bad ones, and mute ones, which got no answer.
type tally struct {
	good, bad, mute int
	// lastAmiss says that the last reading was bad or mute; lastBad says that the last one that wasn't mute was bad.
	lastBad, lastAmiss bool
	// badTwice says that two in a row were bad, with only mute ones between; twice says that two in a row were bad or
	// mute.
	badTwice, twice bool
}

func (t *tally) add(r Reading) {
	switch {
	case r.Bad != "":
		t.bad++
		t.badTwice, t.twice = t.badTwice || t.lastBad, t.twice || t.lastAmiss
		t.lastBad, t.lastAmiss = true, true
	case r.mute != "":
		t.mute++
		t.twice, t.lastAmiss = t.twice || t.lastAmiss, true
	default:
		t.good++
		t.lastBad, t.lastAmiss = false, false
	}
}

// judge returns the answer that a tally amounts to, and why. Bad readings make it False; readings without an answer
// make it unknown.
func (t tally) judge(share float64) (check.Truth, string) {
	may := int(share * float64(t.good+t.bad+t.mute))
	switch amiss := t.bad + t.mute; {
	case t.badTwice && may > 0:
		return check.False, "; two in a row are not"
	case t.bad > may && may > 0:
		return check.False, fmt.Sprintf("; %d may be otherwise", may)
	case t.bad > may:
		return check.False, ""
	case t.twice || amiss > may:
		return check.Unknown, "; the others say nothing"
	case amiss > 0:
		return check.True, fmt.Sprintf(", and %d of the others tolerated", amiss)
	}
	return check.True, ""
}

// Judge returns the finding over the last stretch of the question's window, which ends with the last reading. A
// reading under way when the stretch began belongs to the stretch. doubt is why the readings can't be relied on, nil if
// they can.
func (t Tolerance) Judge(
	q *question.Question,
	all []Reading,
	doubt error,
	hold time.Duration,
	noun string,
) check.Finding {
	in := slices.DeleteFunc(
		all,
		func(r Reading) bool { return r.Asked.Before(q.Window.Start) || r.Done.After(q.Window.End) },
	)
	if len(in) == 0 {
		return q.Unknown(cmp.Or(doubt, check.Doubt(check.NotRecorded, "there are no %s in %s", noun, question.Span(q.Window))))
	}
	last := question.LastOf(bundle.Window{Start: q.Window.Start, End: in[len(in)-1].Done}, hold)
	asked := question.LastOf(q.Window, hold).Start
	looked := last.Start
	var count, late tally // of all readings, and of those of the stretch that is asked for
	for _, r := range in {
		if !r.Done.After(last.Start) {
			looked = question.LaterOf(looked, r.Done)
			continue
		}
		if r.Asked.Sub(looked) > metrics.MaxGap {
			doubt = cmp.Or(
				doubt,
				check.Doubt(
					check.Gap,
					"there are no %s in %s",
					noun,
					question.Between(looked, r.Asked),
				),
			)
		}
		looked = r.Done
		count.add(r)
		if r.Done.After(asked) {
			late.add(r)
		}
		switch {
		case r.Bad != "":
			q.Detail = question.Clock(r.Asked) + ": " + r.Bad
			q.Differs = append(q.Differs, q.Detail)
		case r.mute != "":
			q.Differs = append(q.Differs, question.Clock(r.Asked)+": no answer: "+r.mute)
		}
	}
	share, _ := t.share() // Validate has read it
	met, why := count.judge(share)
	q.Say(
		"%d of %d %s are well in %s%s",
		question.N("readingsWell", count.good),
		question.N("readings", count.good+len(q.Differs)),
		noun,
		question.Span(last),
		why,
	)
	q.Differs = question.FirstAndLast(q.Differs)
	missed := q.Window.End.Sub(last.End)
	ended := missed > question.Slack(q.Window) // what was bad before may be well by the end
	if met == check.False && (!ended || late.badTwice || share == 0 && late.bad > 0) {
		q.Met = check.False
		return q.Finding
	}
	q.Detail = "" // a tolerated reading decides nothing
	if so := question.Length(last); so < hold {
		doubt = cmp.Or(
			doubt,
			check.Doubt(check.TooShort, "that is %s only", so.Round(100*time.Millisecond)),
		)
	}
	if ended {
		doubt = cmp.Or(
			doubt,
			check.Doubt(
				check.Gap,
				"nobody looked in the last %s",
				missed.Round(100*time.Millisecond),
			),
		)
	}
	switch q.Met = met; {
	case doubt != nil:
		q.Doubt(doubt)
	case met == check.Unknown:
		q.Code = check.NotConclusive
	}
	return q.Finding
}
