package expr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/expr"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// everything is evidence of each sort: dumps, a counter that grows and one that was reset, a log, writes to objects.
func everything(tr *checktest.Trial) {
	checktest.Dumps(checktest.Arm, 300, "blocked", 340, "two")(tr)
	st := tr.Stream(bundle.MetricSamples, checktest.Arm)
	for s := checktest.RecoveryAt; s <= checktest.EndAt; s += 2 {
		tr.Sample(st, "requests_total", float64(s), float64(s), map[string]string{"code": "200"})
		tr.Sample(st, "requests_total", float64(s), 7, map[string]string{"code": "500"})
		tr.Sample(st, "restarts_total", float64(s), float64((s-checktest.RecoveryAt)%30), nil)
	}
	audited := tr.Stream(bundle.Audit, checktest.Arm)
	for _, e := range []bundle.AuditEvent{
		{Time: tr.At(305), ID: "answered", Stage: "RequestReceived"}, {Time: tr.At(306), ID: "lost", Stage: "RequestReceived"},
		{Time: tr.At(307), ID: "answered", Stage: "ResponseComplete", Code: 200, Annotations: 2},
		{Time: tr.At(checktest.EndAt - 5), ID: "under way", Stage: "RequestReceived"},
		{Time: tr.At(200), Code: 201, Annotations: 3}, {Time: tr.At(310), Code: 504, Annotations: 8004}, {Time: tr.At(320), Code: 504, Annotations: 16005},
		{Time: tr.At(321), Code: 201, Annotations: 2}, {Time: tr.At(322), Error: "it is no audit event"}} {
		tr.Must(audited.JSON(e))
	}
	audited.Alive(tr.At(checktest.EndAt))
	const skipped = `I0301 10:05:00.000000    1234 generic.go:331] "Skipping pod synchronization" err=`
	tr.Log(checktest.Arm, "kubelet", 0, checktest.EndAt, checktest.Said{Second: 300, Message: skipped + `"x"`}, checktest.Said{Second: 310, Message: skipped + `"y"`},
		checktest.Said{Second: 320, Message: "panic: y"})
	o := tr.Objects(checktest.Arm, checktest.Bundles)
	o.Say(0, churn.Listed, checktest.Bundles, "bundle", "agent", checktest.BundleStatus(0, true))
	checktest.Loop(o, 300, 308)
	o.Covers(0, checktest.EndAt)
}

func celSpec(expression string) string {
	b, _ := json.Marshal(expr.CEL{Expression: expression})
	return string(b)
}

func TestCEL(t *testing.T) {
	metrics, stacks := []bundle.Kind{bundle.MetricSamples}, checktest.Times(2, bundle.Goroutines2)
	var q []checktest.Question
	for _, c := range []struct {
		expression string
		met        check.Truth
		seen       string
		evidence   []bundle.Kind
	}{
		{`dumps().all(d, d.exists(g, g.state == "chan send" && g.frames[0].endsWith("PLEG).Relist") && g.count >= 1))`,
			check.True,
			"dumps(): goroutines in each: 3, 4", stacks},
		{`dumps().exists(d, d.exists(g, g.count > 100))`, check.False, "dumps()", stacks},
		{`dumps()[1].filter(g, g.createdBy.contains("GenericPLEG"))[0].frames.size() > 1`, check.True, "dumps()", stacks},
		{`increase("requests_total") > 90 && increase("requests_total") < 110.0`,
			check.True, `increase("requests_total"): 98 between`, metrics},
		{`metric("requests_total").first == 303.0 && metric("requests_total", {"code": "500"}).max == 7.0`,
			check.False, "from 302 to 400 in 50 samples", metrics},
		{`metric("restarts_total").max > metric("restarts_total").last`,
			check.True, "from 0 to 8 in 50 samples, at least 0, at most 28", metrics},
		{`messages("kubelet").exists(m, m.message == "Skipping pod synchronization" && m.severity == "I" && m.lines == 2)`,
			check.True,
			`messages("kubelet"): 3 lines with 2 messages`, []bundle.Kind{bundle.Logs}},
		{`messages("kubelet").exists(m, m.message.startsWith("panic: ") && m.severity == "")`,
			check.True, "messages", []bundle.Kind{bundle.Logs}},
		{`writes("` + checktest.Bundles + `").exists(w, w.changed.contains("lastUpdateTime") && w.manager == "fleet-agent-vulnerable" ` +
			`&& w.subresource == "status" && w.count >= 4)`,
			check.True,
			"5 writes of 2 kinds", []bundle.Kind{bundle.Objects}},
		{`audited().size() == 8 && audited().filter(e, e.code == 504 && e.annotations > 10000).size() == 1`, check.True,
			"audited(): 8 lines; 1 requests without an end; 1 x 0 with 0 to 0 annotations; 1 x 200 with 2 to 2 annotations; 1 x 201 with 2 to 2 annotations; 2 x 504 with 8004 to 16005 annotations",
			[]bundle.Kind{bundle.Audit}},
		{`audited().all(e, e.error == "")`, check.False, "audited(): 8 lines", []bundle.Kind{bundle.Audit}},
		{`audited().filter(e, e.stage == "RequestReceived").map(e, e.lost) == [false, true, false]`, check.True, "1 requests without an end", []bundle.Kind{bundle.Audit}},
		// What is missing is unknown, whatever is made of it.
		{`metric("no_such_total").last > 1.0`,
			check.Unknown, `metric("no_such_total"): the metrics of vulnerable never showed no_such_total`, metrics},
		{`!(metric("no_such_total").last > 1.0)`, check.Unknown, "never showed no_such_total", metrics},
		{`metric("no_such_total").last > 1.0 ? true : false`, check.Unknown, "never showed no_such_total", metrics},
		{`increase("requests_total", {"code": "404"}) == 0.0`, check.Unknown, "never showed requests_total", metrics},
		{`increase("restarts_total") > 0.0`, check.Unknown, "it was reset", metrics},
		{`messages("etcd").size() == 0`, check.Unknown, "no log of etcd was recorded for vulnerable", nil},
		{`writes("pods").size() == 0`, check.Unknown, "nobody followed pods for vulnerable", nil},
		// One side of && and || may decide alone.
		{`metric("no_such_total").last > 1.0 || increase("requests_total") > 90.0`, check.True, "98 between", metrics},
		{`metric("no_such_total").last > 1.0 && increase("requests_total") > 100.0`, check.False, "98 between", metrics},
		{`metric("no_such_total").last > 1.0 && increase("requests_total") > 90.0`,
			check.Unknown, "never showed no_such_total", metrics},
		{`metric("no_such_total").last > 1.0 || increase("requests_total") > 100.0`,
			check.Unknown, "never showed no_such_total", metrics},
		// So is what goes wrong, and what takes too long.
		{`dumps()[2].size() > 0`, check.Unknown, "index out of bounds: 2", stacks},
		{strings.Repeat("[0,1,2,3,4,5,6,7,8,9].all(x, ", 7) + "x >= 0" + strings.Repeat(")", 7) + " && dumps().size() > 0",
			check.Unknown, "cost limit exceeded", nil},
	} {
		q = append(q, checktest.Question{
			Name: c.expression, Spec: celSpec(c.expression), Fill: everything,
			Met: c.met, Code: codes[c.seen], Seen: c.seen, Wanted: c.expression, Evidence: c.evidence,
		})
	}
	checktest.Run(t, q, inRecovery)
}

// codes has the codes of what expressions say.
var codes = map[string]check.Code{
	"never showed no_such_total":                 check.NotRecorded,
	"it was reset":                               check.OtherProcess,
	"no log of etcd was recorded for vulnerable": check.NotRecorded,
	"nobody followed pods for vulnerable":        check.NotRecorded,
	"index out of bounds: 2":                     check.BadCheck,
	"cost limit exceeded":                        check.BadCheck,
}

func inRecovery(q *checktest.Question) {
	q.Kind, q.Scope = "cel", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
}

func TestCELOverGaps(t *testing.T) {
	checktest.Run(t, []checktest.Question{
		{
			Name: "a dump that was cut short", Spec: celSpec(`dumps().size() == 2`), Fill: checktest.Dumps(checktest.Arm, 300, "blocked", 340, "~blocked"),
			Met: check.Unknown, Code: check.Unreadable, Seen: "is cut short", Evidence: checktest.Times(1, bundle.Goroutines2),
		},
		{
			Name: "no dump", Spec: celSpec(`dumps().size() == 0`), Fill: checktest.Dumps(checktest.Arm, 300, "failed"),
			Met: check.Unknown, Code: check.Unreadable, Seen: "connection refused",
		},
		{
			Name: "a gap in the log", Spec: celSpec(`messages("kubelet").size() == 0`),
			Met: check.Unknown, Code: check.Gap, Seen: "does not cover", Evidence: []bundle.Kind{bundle.Logs},
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Log(checktest.Arm, "kubelet", 0, 394).Gap(tr.At(320), tr.At(350), "the file was gone")
			},
		},
		{
			Name: "a metric that stopped", Spec: celSpec(`increase("requests_total") == 0.0`),
			Met: check.Unknown, Code: check.Gap, Seen: "there is no sample of requests_total in", Evidence: []bundle.Kind{bundle.MetricSamples},
			Fill: checktest.Recorded(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Series(st, "requests_total", checktest.RecoveryAt, 350, func(float64) float64 { return 1 })
				tr.Series(st, "up", checktest.RecoveryAt, checktest.EndAt, func(float64) float64 { return 1 })
			}),
		},
		{
			Name: "a record that ends", Spec: celSpec(`writes("` + checktest.Bundles + `").size() == 0`),
			Met: check.Unknown, Code: check.Gap, Seen: "the record of objects does not cover", Evidence: []bundle.Kind{bundle.Objects},
			Fill: func(tr *checktest.Trial) { tr.Phases(); tr.Objects(checktest.Arm, checktest.Bundles).Covers(0, 350) },
		},
	}, inRecovery)
}

// What can't be a question is refused before anything runs, with its place.
func TestCELRefuses(t *testing.T) {
	for expression, want := range map[string]string{
		``:                                      "expression is empty",
		`dumps().size() >`:                      "expression, line 1, column 17: Syntax error: mismatched input '<EOF>'",
		"dumps().size() > 0 &&\n  dumps(3)":     "expression, line 2, column 8: found no matching overload for 'dumps' applied to '(int)'",
		`metric("x").lst > 1.0`:                 "expression, line 1, column 12: undefined field 'lst'",
		`metrics("x").last > 1.0`:               "expression, line 1, column 8: undeclared reference to 'metrics'",
		`increase("x")`:                         "expression, line 1, column 1: it is a double (want a bool)",
		`messages("x")[0].message.matches("(")`: "expression, line 1, column 34: invalid matches argument",
		`1 < 2`:                                 "expression asks for no evidence (want one of audited, dumps, increase, messages, metric, reviewed, webhookAnswers, writes)",
	} {
		err := (&expr.CEL{Expression: expression}).Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", expression, err, want)
		}
	}
}

// A plan without a collector of what the expression asks for is refused by what the check reads.
func TestCELReads(t *testing.T) {
	for expression, want := range map[string][]bundle.Kind{
		`increase("a") > metric("b").last || writes("pods").exists(w, w.count > 3)`: {bundle.MetricSamples, bundle.Objects},
		`messages("kubelet").size() > dumps().size()`:                               {bundle.Goroutines2, bundle.Logs},
	} {
		c, err := kinds.Decode[check.Check](kinds.Check, "cel", json.RawMessage(celSpec(expression)))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Reads()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s reads %s, want %s", expression, got, want)
		}
	}
}
