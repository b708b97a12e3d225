package probes

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// noAnswer is the code of a call without an answer.
const noAnswer = "none"

var codePattern = regexp.MustCompile(`^([1-5][0-9][0-9]|[1-5]xx|` + noAnswer + `)$`)

// recordOf returns the summary of a load and all of its calls. In the baseline, a load that began only after it has neither
// made nor planned any call. In its own phase, a load that began too late leaves nothing to answer by. The error says why
// there is no whole record of the calls, or that a round began outside the window.
func recordOf(
	q *question.Question,
	name string,
) (sum bundle.Load, made []bundle.Call, err error) {
	sum, path, err := question.LoadOf(q, name)
	if err != nil {
		return sum, nil, err
	}
	q.Evidence = []string{path}
	if end := q.Window.End; q.Phase == check.Baseline && len(sum.Rounds) > 0 && !end.IsZero() && sum.Rounds[0].Start.After(end) {
		sum.Planned = 0
		return sum, nil, nil
	}
	want := 0
	for _, r := range sum.Rounds {
		if !question.Contains(q.Window, r.Start) {
			return sum, nil, check.Doubt(
				check.NotConclusive,
				"round %d of load %s began at %s, not in %s",
				r.Round,
				name,
				question.Clock(r.Start),
				question.Span(q.Window),
			)
		}
		want += r.Calls
	}
	var damaged error
	for _, a := range q.View.Artifacts(bundle.Query{Kind: bundle.Calls, Arm: q.Arm}) {
		if a.Missing || a.Error != "" {
			damaged = errors.Join(damaged, question.CaptureError(a))
			continue
		}
		all, err := question.Records[bundle.Call](q.View, a)
		if damaged = errors.Join(damaged, err); err != nil {
			continue
		}
		own := slices.DeleteFunc(
			slices.Clone(all),
			func(one bundle.Call) bool { return one.Load != name },
		)
		if len(own) > 0 {
			made, q.Evidence = append(made, own...), append(q.Evidence, a.Path)
		}
	}
	if len(made) != want {
		lost := fmt.Sprintf("%d of the %d calls of load %s are recorded", len(made), want, name)
		if damaged != nil {
			return sum, nil, fmt.Errorf("%s: %w", lost, damaged)
		}
		return sum, nil, check.Doubt(check.NotRecorded, "%s", lost)
	}
	return sum, made, nil
}

// counted is what was counted of a load's calls.
type counted struct {
	asked int            // calls that are asked about
	like  int            // of these, those that fit
	open  int            // further calls, of which nobody knows whether they would have fitted
	by    map[string]int // the code of an answer -> calls that are asked about
	took  []shortest     // of the calls that fit
}

// shortest is how long a call took; at least so long if its answer didn't come to its end.
type shortest struct {
	time.Duration
	cut bool
}

// count counts calls; never of them were not made.
func (c *Answers) count(made []bundle.Call, never int) counted {
	t := counted{open: never, by: map[string]int{}}
	path := regexp.MustCompile(c.Path) // Validate has compiled it before
	cutAsked := c.GaveUp != nil && *c.GaveUp || slices.Contains(c.Codes, noAnswer)
	for _, one := range made {
		switch {
		case one.Path == "" && c.Path != "": // it failed before it was known where it would go
			t.open++
			continue
		case c.Verb != "" && one.Verb != c.Verb || !path.MatchString(one.Path):
			continue
		case one.LoadEnded:
			t.open++
			continue
		}
		t.asked++
		t.by[codeOf(one)]++
		if c.fits(one) {
			t.like++
			t.took = append(
				t.took,
				shortest{
					one.Done.Sub(one.Time),
					!cutAsked &&
						(one.GaveUp || one.Code == 0 || one.Error != "" && bundle.Success(one.Code)),
				},
			)
		}
	}
	return t
}

func codeOf(one bundle.Call) string {
	if one.Code == 0 {
		return noAnswer
	}
	return strconv.Itoa(one.Code)
}

// fits reports whether a call that is asked about counts.
func (c *Answers) fits(one bundle.Call) bool {
	code := codeOf(one)
	is := func(want kinds.Scalar) bool { return string(want) == code || string(want) == code[:1]+"xx" }
	return (len(c.Codes) == 0 || slices.ContainsFunc(c.Codes, is)) &&
		(c.Reason == "" || c.Reason == one.Reason) &&
		(c.GaveUp == nil || *c.GaveUp == one.GaveUp)
}

// codes lists what the calls that are asked about were answered with.
func (t counted) codes() string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(t.by)) {
		out = append(out, fmt.Sprintf("%d x %s", t.by[code], code))
	}
	if out == nil {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// amount is a number of calls, or a share of the calls that are asked about.
type amount struct {
	value float64
	share bool
}

// readAmount reads a limit; nil is none.
func readAmount(field string, text kinds.Scalar) (*amount, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasSuffix(string(text), "%") {
		n, err := strconv.Atoi(string(text))
		return &amount{value: float64(n)}, question.Refuse(err != nil || n < 0,
			"%s is %q (want a number of calls, or a share: 5%%)", field, text)
	}
	share, err := question.Percent(field, string(text))
	return &amount{share, true}, errors.Join(
		err,
		question.Refuse(
			err == nil && !(share >= 0 && share <= 1),
			"%s is %s (want 0%% to 100%%)",
			field,
			text,
		),
	)
}

// compare says whether the number or the share of the calls that fit is within a limit. Of the open calls none may have
// fitted, or all.
func (t counted) compare(limit amount, within func(float64) bool) question.Part {
	least, most := float64(t.like), float64(t.like+t.open)
	if limit.share {
		all := float64(t.asked + t.open)
		if all == 0 {
			return question.Unsure(check.Doubt(check.TooFew, "there was no call to ask about"))
		}
		least, most = least/all, most/all
	}
	return decided(within(least), within(most))
}

// decided answers if the answer is the same at both ends of what is possible.
func decided(atLeast, atMost bool) question.Part {
	if atLeast != atMost {
		return question.Unsure(
			check.Doubt(
				check.NotConclusive,
				"what isn't known of some calls could change the answer",
			),
		)
	}
	return question.Part{Met: check.Of(atLeast)}
}

// judge compares the durations of the calls that fit with each limit, and adds them to what was seen.
func (d *Quantile) judge(q *question.Question, t counted) []question.Part {
	if t.like == 0 {
		return []question.Part{question.Unsure(check.Doubt(check.TooFew, "no call fits, so that none has a duration"))}
	}
	share, _ := question.Percent("", d.Quantile)
	least := make([]time.Duration, t.open) // the open calls may have taken no time, or no end of it
	most := slices.Repeat([]time.Duration{math.MaxInt64}, t.open)
	for _, one := range t.took {
		least = append(least, one.Duration)
		if one.cut {
			one.Duration = math.MaxInt64
		}
		most = append(most, one.Duration)
	}
	lo, hi := quantile(least, share), quantile(most, share)
	said := fmt.Sprintf("%s of them within %s", d.Quantile, lo.Round(time.Millisecond))
	switch {
	case hi == lo:
		q.Keep("duration", lo.Seconds())
	case hi == math.MaxInt64:
		said += " or any longer time"
	default:
		said += " to " + hi.Round(time.Millisecond).String()
	}
	q.Add("; %s", said)
	var limits []question.Part
	if d.AtLeast != "" {
		limit := question.Duration(d.AtLeast)
		limits = append(limits, decided(lo >= limit, hi >= limit))
	}
	if d.AtMost != "" {
		limit := question.Duration(d.AtMost)
		limits = append(limits, decided(lo <= limit, hi <= limit))
	}
	return limits
}

// quantile returns the shortest duration that a share of the durations doesn't exceed.
func quantile(all []time.Duration, share float64) time.Duration {
	slices.Sort(all)
	const rounding = 1e-9 // 7% of 100 is a little more than 7 to a float64
	return all[max(1, int(math.Ceil(share*float64(len(all))-rounding)))-1]
}
