package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func TestObjectField(t *testing.T) {
	one := []bundle.Kind{bundle.Objects}
	const daemons = "daemonsets.apps"
	const absent = `{"fields":null,"absent":true}`
	// daemonSet has two pods until second 81, one until 300, and two again.
	daemonSet := func(more func(*objects)) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			o := tr.objects(arm, daemons)
			o.say(0, churn.Listed, daemons, "agent", "controller", `{"numberReady":2,"desired":2}`)
			o.say(81, churn.Modified, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			if more != nil {
				more(o)
			}
			o.say(300, churn.Modified, daemons, "agent", "controller", `{"numberReady":2,"desired":2}`)
			o.covers(0, 400)
		}
	}
	run(t, []question{
		{name: "at the end", fill: daemonSet(nil), met: check.True, evidence: one, seen: `ns/agent: status.desired "2", status.numberReady "1"`},
		{
			name: "it was so before", spec: `{"hold":"240s"}`, wanted: "for the last 240s", fill: daemonSet(nil), met: check.False, evidence: one,
			seen: `status.numberReady "1"`, differs: []string{`10:00:50: ns/agent: status.desired "2", status.numberReady "2"`},
		},
		{
			name: "it changed in the last stretch", fill: daemonSet(func(o *objects) {
				o.say(286, churn.Modified, daemons, "agent", "controller", `{"desired":2}`)
				o.say(287, churn.Modified, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
			met: check.False, evidence: one, seen: `status.numberReady "1"`, differs: []string{`10:04:46: ns/agent: status.desired "2", status.numberReady ""`},
		},
		{
			name: "it is gone", fill: daemonSet(func(o *objects) {
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
			met: check.False, evidence: one, seen: "ns/agent: gone", differs: []string{"10:04:45: ns/agent: gone"},
		},
		{
			name: "it is to be absent, and is", spec: absent, wanted: "no daemonsets.apps agent for the last 5s", met: check.True, evidence: one, seen: "ns/agent: gone",
			fill: daemonSet(func(o *objects) {
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.say(291, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			name: "it is to be absent, and came back", spec: absent, wanted: "no daemonsets.apps agent", met: check.False, evidence: one, seen: "ns/agent: there", differs: []string{"10:04:45: ns/agent: there"},
			fill: daemonSet(func(o *objects) {
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.say(220, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			name: "it is to be absent, and was there for a moment", spec: absent, wanted: "no daemonsets.apps agent", met: check.False, evidence: one, seen: "ns/agent: gone", differs: []string{"10:04:46: ns/agent: there"},
			fill: daemonSet(func(o *objects) {
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.say(286, churn.Added, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.say(287, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			name: "all are to be absent, and one isn't", spec: `{"name":"","fields":null,"absent":true}`, wanted: "no daemonsets.apps for the last 5s", met: check.False, evidence: one, seen: "ns/agent: gone; ns/other: there",
			differs: []string{"10:04:45: ns/agent: gone; ns/other: there"},
			fill: daemonSet(func(o *objects) {
				o.say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			name: "it is to be absent, and nobody ever saw it", spec: `{"name":"another","fields":null,"absent":true}`, wanted: "no daemonsets.apps another", met: check.Unknown, evidence: one,
			seen: "no such daemonsets.apps was ever seen by 10:04:50", fill: daemonSet(nil),
		},
		{
			name: "it is to be absent, and nobody looked for a while", spec: absent, wanted: "no daemonsets.apps agent", met: check.Unknown, evidence: one, seen: "refused",
			fill: daemonSet(func(o *objects) {
				o.say(200, churn.Deleted, daemons, "agent", "controller", `{"numberReady":1,"desired":2}`)
				o.st.Gap(o.at(286), o.at(288), "refused")
			}),
		},
		{name: "nobody ever saw it", spec: `{"name":"another"}`, fill: daemonSet(nil), met: check.Unknown, evidence: one, seen: "no such daemonsets.apps was ever seen by 10:04:50", wanted: "another"},
		{
			name: "it came in the last stretch", spec: `{"name":"new"}`, wanted: "new", met: check.False, evidence: one, seen: `status.numberReady "1"`, differs: []string{"10:04:45: it was not there"},
			fill: daemonSet(func(o *objects) {
				o.say(287, churn.Added, daemons, "new", "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{
			name: "a gap in the last stretch", met: check.Unknown, evidence: one, seen: "refused",
			fill: daemonSet(func(o *objects) { o.st.Gap(o.at(286), o.at(288), "refused") }),
		},
		{
			name: "one of two", spec: `{"name":"","atLeast":1}`, wanted: "at least 1 of daemonsets.apps with", met: check.True, evidence: one, seen: `ns/other: status.desired "1", status.numberReady "1"`,
			fill: daemonSet(func(o *objects) {
				o.say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
			}),
		},
		{
			name: "not both", spec: `{"name":""}`, wanted: "daemonsets.apps with", met: check.False, evidence: one, seen: `ns/other: status.desired "1"`, differs: []string{"10:04:45: ns/agent"},
			fill: daemonSet(func(o *objects) {
				o.say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1,"desired":1}`)
			}),
		},
		{
			name: "of the cluster, by a condition", spec: `{"resource":"nodes","name":"worker","fields":{"status.conditions[type=Ready].status":"Unknown"}}`, wanted: "nodes worker with",
			fill: func(tr *trial) { tr.phases(); outside(tr).covers(0, 400) }, met: check.True, evidence: one, seen: `ns/worker: status.conditions[type=Ready].status "Unknown"`,
		},
		{
			name: "of the cluster, which is not the arm's", spec: `{"resource":"nodes","name":"worker","namespace":"arm"}`, wanted: "nodes worker with",
			fill: func(tr *trial) { tr.phases(); outside(tr).covers(0, 400) }, met: check.Unknown, seen: "nobody followed nodes for vulnerable",
		},
		{
			name: "named after the arm", spec: `{"name":"agent-$(arm)"}`, wanted: "agent-vulnerable", met: check.True, evidence: one, seen: "ns/agent-vulnerable",
			fill: daemonSet(func(o *objects) {
				o.say(90, churn.Added, daemons, "agent-"+arm, "controller", `{"numberReady":1,"desired":2}`)
			}),
		},
		{name: "a missing file", fill: daemonSet(nil), damage: remove(t, bundle.Objects), met: check.Unknown, seen: "is missing"},
	}, func(q *question) {
		q.kind, q.scope = "objectField", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"resource":"`+daemons+`","name":"agent","fields":{"status.numberReady":"1","status.desired":"2"}}`, q.spec)
		if q.wanted == "" {
			q.wanted = `daemonsets.apps agent with status.desired "2", status.numberReady "1" for the last 5s`
		}
	})
	for spec, want := range map[string]string{
		`{"fields":{"a":"b"}}`: "resource is empty",
		`{"resource":"nodes","name":"a-$(cell)","fields":{"a":"b"}}`:  `name is "a-$(cell)" (want no placeholder but $(arm))`,
		`{"resource":"nodes","namespace":"$(ns)","fields":{"a":"b"}}`: `namespace is "$(ns)" (want no placeholder but $(arm))`,
		`{"resource":"nodes"}`:                                  "fields is empty, which any object would have",
		`{"resource":"nodes","fields":{"a..b":""}}`:             `fields: reading path "a..b": a key is empty`,
		`{"resource":"nodes","fields":{"a":"b"},"hold":"x"}`:    `hold is "x" (want a duration with its unit: 3m)`,
		`{"resource":"nodes","fields":{"a":"b"},"absent":true}`: "absent is given with fields or atLeast (want it alone: what is gone has no fields)",
		`{"resource":"nodes","fields":{"a":"b"},"atLeast":-1}`:  "atLeast is -1 (want 0 or more)",
	} {
		refused(t, "objectField", spec, want)
	}
}
