package check_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// everything is evidence of each sort: dumps, a counter that grows and one that was reset, a log, writes to objects.
func everything(tr *trial) {
	dumps(arm, 300, "blocked", 340, "two")(tr)
	st := tr.stream(bundle.MetricSamples, arm)
	for s := recoveryAt; s <= endAt; s += 2 {
		tr.sample(st, "requests_total", float64(s), float64(s), map[string]string{"code": "200"})
		tr.sample(st, "requests_total", float64(s), 7, map[string]string{"code": "500"})
		tr.sample(st, "restarts_total", float64(s), float64((s-recoveryAt)%30), nil)
	}
	audited := tr.stream(bundle.Audit, arm)
	for _, e := range []bundle.AuditEvent{
		{Time: tr.at(305), ID: "answered", Stage: "RequestReceived"}, {Time: tr.at(306), ID: "lost", Stage: "RequestReceived"},
		{Time: tr.at(307), ID: "answered", Stage: "ResponseComplete", Code: 200, Annotations: 2},
		{Time: tr.at(endAt - 5), ID: "under way", Stage: "RequestReceived"},
		{Time: tr.at(200), Code: 201, Annotations: 3}, {Time: tr.at(310), Code: 504, Annotations: 8004}, {Time: tr.at(320), Code: 504, Annotations: 16005},
		{Time: tr.at(321), Code: 201, Annotations: 2}, {Time: tr.at(322), Error: "it is no audit event"}} {
		tr.must(audited.JSON(e))
	}
	audited.Alive(tr.at(endAt))
	const skipped = `I0301 10:05:00.000000    1234 generic.go:331] "Skipping pod synchronization" err=`
	tr.log(arm, "kubelet", 0, endAt, said{second: 300, message: skipped + `"x"`}, said{second: 310, message: skipped + `"y"`},
		said{second: 320, message: "panic: y"})
	o := tr.objects(arm, bundles)
	o.say(0, churn.Listed, bundles, "bundle", "agent", bundleStatus(0, true))
	loop(o, 300, 308)
	o.covers(0, endAt)
}

func celSpec(expression string) string {
	b, _ := json.Marshal(check.CEL{Expression: expression})
	return string(b)
}

func TestCEL(t *testing.T) {
	metrics, stacks := []bundle.Kind{bundle.MetricSamples}, times(2, bundle.Goroutines2)
	var q []question
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
		{`writes("` + bundles + `").exists(w, w.changed.contains("lastUpdateTime") && w.manager == "fleet-agent-vulnerable" ` +
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
		q = append(q, question{
			name: c.expression, spec: celSpec(c.expression), fill: everything,
			met: c.met, seen: c.seen, wanted: c.expression, evidence: c.evidence,
		})
	}
	run(t, q, inRecovery)
}

func inRecovery(q *question) { q.kind, q.scope = "cel", check.Scope{Arm: arm, Phase: check.Recovery} }

func TestCELOverGaps(t *testing.T) {
	run(t, []question{
		{
			name: "a dump that was cut short", spec: celSpec(`dumps().size() == 2`), fill: dumps(arm, 300, "blocked", 340, "~blocked"),
			met: check.Unknown, seen: "is cut short", evidence: times(1, bundle.Goroutines2),
		},
		{
			name: "no dump", spec: celSpec(`dumps().size() == 0`), fill: dumps(arm, 300, "failed"),
			met: check.Unknown, seen: "connection refused",
		},
		{
			name: "a gap in the log", spec: celSpec(`messages("kubelet").size() == 0`),
			met: check.Unknown, seen: "does not cover", evidence: []bundle.Kind{bundle.Logs},
			fill: func(tr *trial) {
				tr.phases()
				tr.log(arm, "kubelet", 0, 394).Gap(tr.at(320), tr.at(350), "the file was gone")
			},
		},
		{
			name: "a metric that stopped", spec: celSpec(`increase("requests_total") == 0.0`),
			met: check.Unknown, seen: "there is no sample of requests_total in", evidence: []bundle.Kind{bundle.MetricSamples},
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, "requests_total", recoveryAt, 350, func(float64) float64 { return 1 })
				tr.series(st, "up", recoveryAt, endAt, func(float64) float64 { return 1 })
			}),
		},
		{
			name: "a record that ends", spec: celSpec(`writes("` + bundles + `").size() == 0`),
			met: check.Unknown, seen: "the record of objects does not cover", evidence: []bundle.Kind{bundle.Objects},
			fill: func(tr *trial) { tr.phases(); tr.objects(arm, bundles).covers(0, 350) },
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
		`1 < 2`:                                 "expression asks for no evidence (want one of audited, dumps, increase, messages, metric, reviewed, writes)",
	} {
		err := (&check.CEL{Expression: expression}).Validate()
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
