package probes_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// How many calls had an answer, as loadCalls of earlier versions asked.
func TestAnswersCounted(t *testing.T) {
	sum, both := []bundle.Kind{bundle.LoadSummary}, []bundle.Kind{bundle.LoadSummary, bundle.Calls}
	checktest.Run(t, []checktest.Question{
		{Name: "as many as wanted", Fill: checktest.Called("changes", map[string]int{"200": 15, "none": 5}, 100), Met: check.True, Evidence: both,
			Seen: "15 of 20 (15 x 200, 5 x none)", Figures: map[string]float64{"callsLikeIt": 15, "calls": 20}},
		{Name: "too few, over two rounds", Fill: checktest.Called("changes", map[string]int{"200": 14, "409": 26}, 100, 200), Met: check.False, Evidence: both, Seen: "14 of 40"},
		{Name: "none", Fill: checktest.Called("changes", map[string]int{}), Met: check.False, Evidence: sum, Seen: "0 of 0"},
		{Name: "a round of another phase", Fill: checktest.Called("changes", map[string]int{"200": 40}, 25, 100), Met: check.Unknown, Evidence: sum,
			Seen: "round 1 of load changes began at 10:00:25, not in", Code: check.NotConclusive},
		{Name: "asked in the baseline about a load of the fault", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline},
			Fill: checktest.Called("changes", map[string]int{"200": 40}, 100), Met: check.False, Evidence: sum, Seen: "0 of 0"},
		{Name: "began too late for its phase", Fill: checktest.Called("changes", map[string]int{"200": 40}, 300), Met: check.Unknown, Evidence: sum,
			Seen: "round 1 of load changes began at 10:05:00, not in", Code: check.NotConclusive},
		{Name: "another load", Fill: checktest.Called("others", map[string]int{"200": 20}, 100), Met: check.Unknown, Seen: "no load changes summed up what it did", Code: check.NotRecorded},
		{Name: "no record", Fill: (*checktest.Trial).Phases, Met: check.Unknown, Seen: "no load changes summed up what it did", Code: check.NotRecorded},
		{Name: "of the other arm", Scope: check.Scope{Arm: checktest.Other, Phase: check.Fault}, Fill: checktest.Called("changes", map[string]int{"200": 20}, 100), Met: check.Unknown,
			Seen: "no load changes summed up what it did", Code: check.NotRecorded},
		{Name: "another load beside it", Met: check.True, Evidence: both, Seen: "20 of 20", Fill: func(tr *checktest.Trial) {
			checktest.Called("others", map[string]int{"500": 20}, 100)(tr)
			checktest.Called("changes", map[string]int{"200": 20}, 100)(tr)
		}},
		{Name: "calls lost", Fill: checktest.Called("changes", map[string]int{"200": 19}, 100), Met: check.Unknown, Evidence: both,
			Seen: "19 of the 20 calls of load changes are recorded", Code: check.NotRecorded},
		{Name: "the calls' file is gone", Fill: checktest.Called("changes", map[string]int{"200": 20}, 100), Met: check.Unknown, Evidence: sum,
			Damage: checktest.Remove(t, bundle.Calls), Seen: "0 of the 20 calls of load changes are recorded: the file ", Code: check.Unreadable},
		{Name: "a file with calls can't be read", Met: check.Unknown, Evidence: both, Code: check.Unreadable,
			Seen: "19 of the 20 calls of load changes are recorded: reading artifacts/", Fill: func(tr *checktest.Trial) {
				checktest.Called("changes", map[string]int{"200": 19}, 100)(tr)
				tr.Must(tr.Stream(bundle.Calls, checktest.Arm).Line([]byte("spoilt")))
			}},
		{Name: "a file with another load's calls can't be read", Met: check.True, Evidence: both, Seen: "20 of 20", Fill: func(tr *checktest.Trial) {
			checktest.Called("changes", map[string]int{"200": 20}, 100)(tr)
			tr.Fail(bundle.Calls, checktest.Arm, 100, "no space left on device")
		}},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Wanted = "answers", `{"load":"changes","codes":[200],"atLeast":15}`, "at least 15 calls of load changes answered with 200"
		if q.Scope.Arm == "" {
			q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		}
	})
}

// took is a call that was answered with a code after so many milliseconds.
func took(code, ms int) bundle.Call {
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	return bundle.Call{Verb: "GET", Path: "/api/v1/pods?watch=1", Code: code, Done: start.Add(time.Duration(ms) * time.Millisecond)}
}

func gaveUp(one bundle.Call) bundle.Call {
	one.GaveUp = true
	return one
}

func loadEnded(one bundle.Call) bundle.Call {
	one.GaveUp, one.LoadEnded = true, true
	return one
}

func refused(code int, reason string) bundle.Call {
	one := took(code, 10)
	one.Verb, one.Path, one.Reason = "POST", "/api/v1/namespaces/a/configmaps", reason
	return one
}

// planned records calls of a load that was to make so many.
func planned(n int, calls ...bundle.Call) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		sum := bundle.Load{Name: "changes", Planned: n, Rounds: []bundle.LoadRound{{Round: 1, Start: tr.At(100), Calls: len(calls)}}}
		tr.Calls(sum, calls...)
	}
}

func TestAnswersChosen(t *testing.T) {
	mixed := planned(6, took(200, 100), gaveUp(took(200, 5000)), took(0, 10), gaveUp(took(0, 5000)), refused(409, "AlreadyExists"), refused(409, "Conflict"))
	ended := planned(6, took(200, 10), took(200, 10), took(200, 10), loadEnded(took(0, 10)))
	old := planned(0, took(200, 10), gaveUp(took(0, 10)))
	const notKnown = "what isn't known of some calls could change the answer"
	checktest.Run(t, []checktest.Question{
		{Name: "a class", Spec: `"codes":["2xx"],"atLeast":2,"atMost":2`, Fill: mixed, Met: check.True, Seen: "2 of 6 (2 x 200, 2 x 409, 2 x none)",
			Wanted: "at least 2 and at most 2 calls of load changes answered with 2xx"},
		{Name: "no answer", Spec: `"codes":["none",404],"atMost":1`, Fill: mixed, Met: check.False, Seen: "2 of 6", Wanted: "answered with none or 404"},
		{Name: "a share", Spec: `"codes":["4xx"],"atMost":"34%"`, Fill: mixed, Met: check.True, Seen: "2 of 6", Wanted: "at most 34% calls"},
		{Name: "too large a share", Spec: `"codes":["4xx"],"atMost":"33%"`, Fill: mixed, Met: check.False, Seen: "2 of 6"},
		{Name: "too small a share", Spec: `"codes":["4xx"],"atLeast":"34%"`, Fill: mixed, Met: check.False, Seen: "2 of 6"},
		{Name: "a reason", Spec: `"reason":"AlreadyExists","atLeast":1,"atMost":1`, Fill: mixed, Met: check.True, Seen: "1 of 6", Wanted: "for the reason AlreadyExists"},
		{Name: "those that the client ended", Spec: `"gaveUp":true,"codes":[200],"atLeast":1,"atMost":1`, Fill: mixed, Met: check.True, Seen: "1 of 6", Wanted: "that the client ended"},
		{Name: "the others", Spec: `"gaveUp":false,"codes":["none"],"atLeast":2`, Fill: mixed, Met: check.False, Seen: "1 of 6", Wanted: "that the client didn't end"},
		{Name: "a verb", Spec: `"verb":"POST","codes":["4xx"],"atLeast":"100%"`, Fill: mixed, Met: check.True, Seen: "2 of 2 (2 x 409)", Wanted: "load changes by POST"},
		{Name: "a path", Spec: `"path":"/pods[?]watch","codes":["4xx"],"atMost":0`, Fill: mixed, Met: check.True, Seen: "0 of 4", Wanted: "to /pods[?]watch"},
		{Name: "no call is like it, and none may be", Spec: `"path":"/secrets","codes":["4xx"],"atMost":0`, Fill: mixed, Met: check.Unknown,
			Seen: "0 of 0; there was no call to ask about", Code: check.TooFew},
		{Name: "no call is like it, and some must be", Spec: `"path":"/secrets","codes":["4xx"],"atLeast":1`, Fill: mixed, Met: check.False, Seen: "0 of 0"},
		{Name: "a share of nothing", Spec: `"path":"/secrets","codes":["4xx"],"atLeast":"1%"`, Fill: mixed, Met: check.Unknown, Seen: "there was no call to ask about", Code: check.TooFew},

		{Name: "enough before the load's end", Spec: `"codes":[200],"atLeast":3`, Fill: ended, Met: check.True,
			Seen: "3 of 3 (3 x 200); of 3 more it isn't known, because the load's time was up", Figures: map[string]float64{"callsNotKnown": 3}},
		{Name: "perhaps enough", Spec: `"codes":[200],"atLeast":6`, Fill: ended, Met: check.Unknown, Seen: notKnown, Code: check.NotConclusive},
		{Name: "too few, whatever the others", Spec: `"codes":[200],"atLeast":7`, Fill: ended, Met: check.False, Seen: "3 of 3"},
		{Name: "perhaps none", Spec: `"codes":["5xx"],"atMost":0`, Fill: ended, Met: check.Unknown, Seen: notKnown, Code: check.NotConclusive},
		{Name: "too many already", Spec: `"codes":[200],"atMost":2`, Fill: ended, Met: check.False, Seen: "3 of 3"},
		{Name: "a share that the others can't change", Spec: `"codes":[200],"atLeast":"50%"`, Fill: ended, Met: check.True, Seen: "3 of 3"},
		{Name: "a share that they can", Spec: `"codes":[200],"atLeast":"51%"`, Fill: ended, Met: check.Unknown, Seen: notKnown, Code: check.NotConclusive},
		{Name: "the load's end is no call that it gave up", Spec: `"gaveUp":true,"atLeast":1`, Fill: ended, Met: check.Unknown, Seen: "0 of 3", Code: check.NotConclusive},

		{Name: "reasons that an earlier version left out", Spec: `"reason":"Conflict","atMost":0`, Fill: old, Met: check.Unknown,
			Seen: "load changes was recorded by an earlier version", Code: check.NotRecorded},
		{Name: "ends that it didn't tell apart", Spec: `"gaveUp":true,"atLeast":1`, Fill: old, Met: check.Unknown, Seen: "load changes was recorded by an earlier version", Code: check.NotRecorded},
	}, answersOf)
}

func answersOf(q *checktest.Question) {
	q.Kind, q.Spec, q.Scope = "answers", `{"load":"changes",`+q.Spec+`}`, check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	q.Evidence = []bundle.Kind{bundle.LoadSummary, bundle.Calls}
	if q.Wanted == "" {
		q.Wanted = "calls of load changes"
	}
}

func TestAnswersTook(t *testing.T) {
	four := planned(4, took(200, 100), took(200, 400), took(200, 300), took(200, 200))
	cut := planned(3, took(200, 100), took(200, 200), gaveUp(took(0, 500)))
	ended := planned(3, took(200, 100), took(200, 200), loadEnded(took(0, 500)))
	checktest.Run(t, []checktest.Question{
		{Name: "the longest", Spec: `"duration":{"quantile":"100%","atMost":"400ms"}`, Fill: four, Met: check.True, Seen: "4 of 4 (4 x 200); 100% of them within 400ms",
			Wanted: "calls of load changes, 100% of them within a time of at most 400ms", Figures: map[string]float64{"duration": 0.4}},
		{Name: "too long", Spec: `"duration":{"quantile":"75.1%","atMost":"399ms"}`, Fill: four, Met: check.False, Seen: "75.1% of them within 400ms"},
		{Name: "a quantile", Spec: `"duration":{"quantile":"75%","atMost":"300ms","atLeast":"300ms"}`, Fill: four, Met: check.True, Seen: "75% of them within 300ms",
			Wanted: "within a time of at least 300ms of at most 300ms"},
		{Name: "too short", Spec: `"duration":{"quantile":"25%","atLeast":"101ms"}`, Fill: four, Met: check.False, Seen: "25% of them within 100ms"},
		{Name: "enough of them, and soon", Spec: `"codes":["2xx"],"atLeast":"100%","duration":{"quantile":"50%","atMost":"1s"}`, Fill: four, Met: check.True, Seen: "50% of them within 200ms",
			Wanted: "at least 100% calls"},
		{Name: "no call fits", Spec: `"codes":["5xx"],"duration":{"quantile":"50%","atMost":"1s"}`, Fill: four, Met: check.Unknown, Seen: "no call fits, so that none has a duration", Code: check.TooFew},
		{Name: "a call that was given up is no quick one", Spec: `"duration":{"quantile":"100%","atMost":"1s"}`, Fill: cut, Met: check.Unknown,
			Seen: "100% of them within 500ms or any longer time; what isn't known of some calls could change the answer", Code: check.NotConclusive},
		{Name: "it was slow already", Spec: `"duration":{"quantile":"100%","atMost":"499ms"}`, Fill: cut, Met: check.False, Seen: "100% of them within 500ms or any longer time"},
		{Name: "the others were quick", Spec: `"duration":{"quantile":"66%","atMost":"200ms"}`, Fill: cut, Met: check.True, Seen: "66% of them within 200ms"},
		{Name: "how long it was held", Spec: `"gaveUp":true,"duration":{"quantile":"100%","atLeast":"500ms","atMost":"500ms"}`, Fill: cut, Met: check.True, Seen: "100% of them within 500ms"},
		{Name: "the load's end", Spec: `"duration":{"quantile":"50%","atMost":"150ms"}`, Fill: ended, Met: check.Unknown,
			Seen: "50% of them within 100ms to 200ms; what isn't known of some calls", Code: check.NotConclusive},
		{Name: "the load's end changes nothing", Spec: `"duration":{"quantile":"50%","atMost":"200ms"}`, Fill: ended, Met: check.True, Seen: "50% of them within 100ms to 200ms"},
	}, answersOf)
}

func TestAnswersRefuse(t *testing.T) {
	for spec, want := range map[string]string{
		`{"codes":[200],"atLeast":1}`:                                             `load is empty`,
		`{"load":"x"}`:                                                            `nothing is asked (want atLeast, atMost or duration)`,
		`{"load":"x","codes":[9000],"atLeast":1}`:                                 `codes has "9000" (want a code such as 504, a class such as 5xx, or none)`,
		`{"load":"x","codes":["6xx"],"atLeast":1}`:                                `codes has "6xx"`,
		`{"load":"x","path":"(","atLeast":1}`:                                     `path: error parsing regexp`,
		`{"load":"x","atLeast":-1}`:                                               `atLeast is "-1" (want a number of calls, or a share: 5%)`,
		`{"load":"x","atMost":"many"}`:                                            `atMost is "many" (want a number of calls, or a share: 5%)`,
		`{"load":"x","codes":[200],"atMost":"101%"}`:                              `atMost is 101% (want 0% to 100%)`,
		`{"load":"x","codes":[200],"atMost":"NaN%"}`:                              `atMost is NaN% (want 0% to 100%)`,
		`{"load":"x","codes":[200],"atMost":"some%"}`:                             `atMost is "some%" (want a share: 5%)`,
		`{"load":"x","atLeast":0}`:                                                `atLeast is 0, which any load satisfies`,
		`{"load":"x","codes":[200],"atLeast":"0%"}`:                               `atLeast is 0%, which any load satisfies`,
		`{"load":"x","codes":[200],"atMost":"100%"}`:                              `atMost is 100%, which any load satisfies`,
		`{"load":"x","codes":[200],"atLeast":3,"atMost":2}`:                       `atLeast is 3, more than atMost, which is 2`,
		`{"load":"x","atLeast":"5%"}`:                                             `a share is of all calls without codes, reason or gaveUp (want one of them)`,
		`{"load":"x","duration":{"quantile":"50%"}}`:                              `duration has no limit (want atLeast or atMost)`,
		`{"load":"x","duration":{"atMost":"1s"}}`:                                 `duration.quantile is "" (want a share: 5%)`,
		`{"load":"x","duration":{"quantile":"0%","atMost":"1s"}}`:                 `duration.quantile is 0% (want above 0% up to 100%)`,
		`{"load":"x","duration":{"quantile":"50%","atMost":"1"}}`:                 `duration.atMost is "1" (want a duration with its unit: 3m)`,
		`{"load":"x","duration":{"quantile":"50%","atLeast":"2s","atMost":"1s"}}`: `duration.atLeast is 2s, more than atMost, which is 1s`,
	} {
		checktest.Refused(t, "answers", spec, want)
	}
}
