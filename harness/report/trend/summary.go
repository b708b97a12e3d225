// Package trend says what a ledger of runs shows: how often an incident was reproduced, when last and with what, and
// whether a scenario reproduces less often than it used to.
package trend

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Window is how many trials that gave an answer are in one span of an arm's history.
const Window = 10

// Confidence is the confidence of all intervals.
const Confidence = 0.95

// The outcomes that answer whether an arm has the incident.
const (
	reproduced    = "Reproduced"
	notReproduced = "NotReproduced"
)

// Line is the summary of one arm of a pair.
type Line struct {
	Scenario string         `json:"scenario"`
	Pair     string         `json:"pair"`
	Arm      string         `json:"arm"`
	Role     string         `json:"role"`
	Trials   int            `json:"trials"`
	All      Span           `json:"all"`
	Spans    []Span         `json:"spans"` // Window answered trials each, oldest first; the newest may be shorter
	Others   map[string]int `json:"others,omitempty"`
	Last     *history.Entry `json:"lastReproduced"` // nil if it never was
	Newest   history.Entry  `json:"newest"`
	Fading   []string       `json:"fading,omitempty"` // why it reproduces less often than it used to
	Silent   string         `json:"silent,omitempty"` // says that the newest trials gave no answer
}

// Span is the rate over some trials that gave an answer, in the order of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	rate.Count
	Low  float64 `json:"low"`
	High float64 `json:"high"` // an end of Wilson's interval at 95 %, as Low is
}

// Uncounted is a number of trials that were set apart for the same reason.
type Uncounted struct {
	Scenario string `json:"scenario"`
	Pair     string `json:"pair"`
	Why      string `json:"why"`
	Trials   int    `json:"trials"`
}

// Apart returns the trials that Summary doesn't count, by scenario, pair and reason.
func Apart(entries []history.Entry) []Uncounted {
	trials := map[Uncounted]map[[2]string]bool{}
	for _, e := range entries {
		if len(e.Apart) == 0 {
			continue
		}
		u := Uncounted{Scenario: e.Scenario, Pair: e.Pair, Why: strings.Join(e.Apart, "; ")}
		if trials[u] == nil {
			trials[u] = map[[2]string]bool{}
		}
		trials[u][[2]string{e.Run, e.Trial}] = true
	}
	out := []Uncounted{}
	for u, of := range trials {
		u.Trials = len(of)
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b Uncounted) int {
		return cmp.Or(
			cmp.Compare(a.Scenario, b.Scenario),
			cmp.Compare(a.Pair, b.Pair),
			cmp.Compare(a.Why, b.Why),
		)
	})
	return out
}

// Summary sums up a ledger by scenario, pair and arm, without the trials that were set apart.
func Summary(entries []history.Entry) []Line {
	sorted := slices.DeleteFunc(
		slices.Clone(entries),
		func(e history.Entry) bool { return len(e.Apart) > 0 },
	)
	slices.SortStableFunc(sorted, func(a, b history.Entry) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Pair, b.Pair),
			cmp.Compare(order(a.Role), order(b.Role)),
			cmp.Compare(a.Arm, b.Arm), a.Time.Compare(b.Time), cmp.Compare(a.Trial, b.Trial))
	})
	var out []Line
	for len(sorted) > 0 {
		first := sorted[0]
		n := slices.IndexFunc(sorted, func(e history.Entry) bool {
			return e.Scenario != first.Scenario || e.Pair != first.Pair || e.Arm != first.Arm ||
				e.Role != first.Role
		})
		if n < 0 {
			n = len(sorted)
		}
		out = append(out, line(sorted[:n]))
		sorted = sorted[n:]
	}
	return out
}

// order returns the rank of a role in a summary: the control comes first.
func order(role string) int {
	return slices.Index([]string{scenario.Vulnerable, scenario.Fixed, scenario.Candidate}, role)
}

// line sums up the trials of one arm, in the order of time.
func line(of []history.Entry) Line {
	newest := of[len(of)-1]
	l := Line{
		Scenario: newest.Scenario,
		Pair:     newest.Pair,
		Arm:      newest.Arm,
		Role:     newest.Role,
		Trials:   len(of),
		Newest:   newest,
		Spans:    []Span{},
	}
	var answered []history.Entry
	for _, e := range of {
		if !answers(e) {
			if l.Others == nil {
				l.Others = map[string]int{}
			}
			what := e.Outcome
			if what == notReproduced {
				what += " in a trial that proves nothing"
			}
			l.Others[what]++
			continue
		}
		if e.Outcome == reproduced {
			l.Last = &e
		}
		answered = append(answered, e)
	}
	l.All = span(answered)
	for part := range slices.Chunk(answered, Window) {
		l.Spans = append(l.Spans, span(part))
	}
	if l.Role == scenario.Vulnerable {
		l.Fading, l.Silent = fading(of, answered), silent(of)
	}
	return l
}

func span(of []history.Entry) Span {
	s := Span{Count: rate.Count{N: len(of)}}
	for _, e := range of {
		if e.Outcome == reproduced {
			s.K++
		}
	}
	if len(of) > 0 {
		s.From, s.To = of[0].Time, of[len(of)-1].Time
	}
	s.Low, s.High = rate.Wilson(s.Count, Confidence)
	return s
}
