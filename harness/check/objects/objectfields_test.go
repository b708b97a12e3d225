package objects_test

import (
	"encoding/json"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestFieldsOfObjects(t *testing.T) {
	one := []bundle.Kind{bundle.Objects}
	const daemons = "daemonsets.apps"
	const absent = `{"fields":null,"absent":true}`
	// daemonSet has two pods until second 81, one until 300, and two again.
	daemonSet := func(more func(*checktest.Objects)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			o := tr.Objects(checktest.Arm, daemons)
			o.Say(0, churn.Listed, daemons, "agent", "controller", `{"numberReady":2,"desired":2}`)
			o.Say(81, churn.Modified, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			if more != nil {
				more(o)
			}
			o.Say(300, churn.Modified, daemons, "agent", "controller", `{"numberReady":2,"desired":2}`)
			o.Covers(0, 400)
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "at the end", Fill: daemonSet(nil), Met: check.True, Evidence: one, Seen: `ns/agent: status.desired "2", status.numberReady "1"`},
		{
			Name: "it was so before", Spec: `{"hold":"240s"}`, Wanted: "for the last 240s", Fill: daemonSet(nil), Met: check.False, Evidence: one,
			Seen: `status.numberReady "1"`, Differs: []string{`10:00:50: ns/agent: status.desired "2", status.numberReady "2"`},
		},
		{
			Name: "it changed in the last stretch", Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(286, churn.Modified, daemons, "agent", "controller", `{"desired":2}`)
				o.Say(287, churn.Modified, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
			Met: check.False, Evidence: one, Seen: `status.numberReady "1"`, Differs: []string{`10:04:46: ns/agent: status.desired "2", status.numberReady ""`},
		},
		{
			Name: "it is gone", Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
			Met: check.False, Evidence: one, Seen: "ns/agent: gone", Differs: []string{"10:04:45: ns/agent: gone"},
		},
		{
			Name: "it is to be absent, and is", Spec: absent, Wanted: "no daemonsets.apps agent for the last 5s", Met: check.True, Evidence: one, Seen: "ns/agent: gone",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.Say(291, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			Name: "it is to be absent, and came back", Spec: absent, Wanted: "no daemonsets.apps agent", Met: check.False, Evidence: one, Seen: "ns/agent: there", Differs: []string{"10:04:45: ns/agent: there"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.Say(220, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			Name: "it is to be absent, and was there for a moment", Spec: absent, Wanted: "no daemonsets.apps agent", Met: check.False, Evidence: one, Seen: "ns/agent: gone", Differs: []string{"10:04:46: ns/agent: there"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.Say(286, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.Say(287, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			Name: "all are to be absent, and one isn't", Spec: `{"name":"","fields":null,"absent":true}`, Wanted: "no daemonsets.apps for the last 5s", Met: check.False, Evidence: one, Seen: "ns/agent: gone; ns/other: there",
			Differs: []string{"10:04:45: ns/agent: gone; ns/other: there"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			Name: "it is to be absent, and nobody ever saw it", Spec: `{"name":"another","fields":null,"absent":true}`, Wanted: "no daemonsets.apps another", Met: check.Unknown, Evidence: one,
			Seen: "no such daemonsets.apps was ever seen by 10:04:50", Fill: daemonSet(nil),
		},
		{
			Name: "it is to be absent, and nobody looked for a while", Spec: absent, Wanted: "no daemonsets.apps agent", Met: check.Unknown, Evidence: one, Seen: "refused",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.St.Gap(o.At(286), o.At(288), "refused")
			}),
		},
		{Name: "nobody ever saw it", Spec: `{"name":"another"}`, Fill: daemonSet(nil), Met: check.Unknown, Evidence: one, Seen: "no such daemonsets.apps was ever seen by 10:04:50", Wanted: "another"},
		{
			Name: "it came in the last stretch", Spec: `{"name":"new"}`, Wanted: "new", Met: check.False, Evidence: one, Seen: `status.numberReady "1"`, Differs: []string{"10:04:45: it was not there"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(287, churn.Added, daemons, "new", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			Name: "a gap in the last stretch", Met: check.Unknown, Evidence: one, Seen: "refused",
			Fill: daemonSet(func(o *checktest.Objects) { o.St.Gap(o.At(286), o.At(288), "refused") }),
		},
		{
			Name: "one of two", Spec: `{"name":"","atLeast":1}`, Wanted: "at least 1 of daemonsets.apps with", Met: check.True, Evidence: one, Seen: `ns/other: status.desired "1", status.numberReady "1"`,
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
			}),
		},
		{
			Name: "not both", Spec: `{"name":""}`, Wanted: "daemonsets.apps with", Met: check.False, Evidence: one, Seen: `ns/other: status.desired "1"`, Differs: []string{"10:04:45: ns/agent"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
			}),
		},
		{
			Name: "of the cluster, by a condition", Spec: `{"resource":"nodes","name":"worker","fields":{"status.conditions[type=Ready].status":"Unknown"}}`, Wanted: "nodes worker with",
			Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(0, 400) }, Met: check.True, Evidence: one, Seen: `ns/worker: status.conditions[type=Ready].status "Unknown"`,
		},
		{
			Name: "of the cluster, which is not the arm's", Spec: `{"resource":"nodes","name":"worker","namespace":"arm"}`, Wanted: "nodes worker with",
			Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(0, 400) }, Met: check.Unknown, Code: check.NotRecorded, Seen: "nobody followed nodes for vulnerable",
		},
		{
			Name: "named after the arm", Spec: `{"name":"agent-$(arm)"}`, Wanted: "agent-vulnerable", Met: check.True, Evidence: one, Seen: "ns/agent-vulnerable",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "agent-"+checktest.Arm, "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{Name: "a missing file", Fill: daemonSet(nil), Damage: checktest.Remove(t, bundle.Objects), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "object", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"resource":"`+daemons+`","name":"agent","fields":{"status.numberReady":"1","status.desired":"2"},"hold":"5s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = `daemonsets.apps agent with status.desired "2", status.numberReady "1" for the last 5s`
		}
	})
	for spec, want := range map[string]string{
		`{"fields":{"a":"b"}}`: "resource is empty",
		`{"resource":"nodes","name":"a-$(cell)","fields":{"a":"b"}}`:  `name is "a-$(cell)" (want no placeholder but $(arm))`,
		`{"resource":"nodes","namespace":"$(ns)","fields":{"a":"b"}}`: `namespace is "$(ns)" (want no placeholder but $(arm))`,
		`{"resource":"nodes"}`:                                  "there are 0 of expression, fields and absent (want one of them)",
		`{"resource":"nodes","fields":{"a..b":""}}`:             `fields: reading path "a..b": a key is empty`,
		`{"resource":"nodes","fields":{"a":"b"},"hold":"x"}`:    `hold is "x" (want a duration with its unit: 3m)`,
		`{"resource":"nodes","fields":{"a":"b"},"hold":""}`:     `hold is "" and versions is 0 (want one of them)`,
		`{"resource":"nodes","fields":{"a":"b"},"absent":true}`: "there are 2 of expression, fields and absent (want one of them)",
		`{"resource":"nodes","absent":true,"atLeast":2}`:        "absent is given with atLeast or versions (want it with hold alone)",
		`{"resource":"nodes","fields":{"a":"b"},"atLeast":-1}`:  "atLeast is -1 (want at least 1)",
	} {
		checktest.Refused(t, "object", checktest.Over(t, `{"hold":"5s"}`, spec), want)
	}
}

// What any object is like whatever happened needs a check beside it.
func TestWhatABareObjectMeets(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"fields":{"spec.nodeName":""}}`:                          true,
		`{"fields":{"spec.nodeName":"","status.phase":"Pending"}}`: false,
		`{"expression":"!has(object.spec.nodeNam)"}`:               true,
		`{"expression":"has(object.spec.nodeName)"}`:               false,
		`{"expression":"object.spec.nodeName == ''"}`:              false,
		`{"absent":true}`: false,
		`{"expression":"!has(object.spec.x)","hold":"","versions":1}`: true,
	} {
		c := &objects.Object{}
		if err := json.Unmarshal([]byte(checktest.Over(t, `{"resource":"pods","hold":"5s"}`, spec)), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		if got := c.Vacuous(); got != want {
			t.Errorf("a bare object meets %s: %t (want %t)", spec, got, want)
		}
	}
}
