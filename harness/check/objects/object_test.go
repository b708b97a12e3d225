package objects_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestObject(t *testing.T) {
	one := []bundle.Kind{bundle.Objects}
	const daemons = "daemonsets.apps"
	// daemonSet has two pods until second 81, one from then on, and says from second 82 on that it is short.
	daemonSet := func(more func(*checktest.Objects)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			o := tr.Objects(checktest.Arm, daemons)
			o.Say(0, churn.Listed, daemons, "agent", "controller", `{"numberReady":2}`)
			o.Say(81, churn.Modified, daemons, "agent", "controller", `{"numberReady":1}`)
			o.Say(82, churn.Modified, daemons, "agent", "controller", `{"numberReady":1,"short":true}`)
			if more != nil {
				more(o)
			}
			o.Covers(0, 400)
		}
	}
	// otherwise has two pods, as far as its record reaches.
	otherwise := func(record func(*checktest.Objects)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			o := tr.Objects(checktest.Arm, daemons)
			o.Say(0, churn.Listed, daemons, "agent", "controller", `{"numberReady":2}`)
			record(o)
		}
	}
	const versions, hold = `{"hold":"","versions":1}`, ""
	checktest.Run(t, []checktest.Question{
		{Name: "at the end", Fill: daemonSet(nil), Met: check.True, Evidence: one, Seen: "ns/agent: true"},
		{Name: "not at the end", Spec: `{"expression":"object.status.numberReady == 2"}`, Wanted: "daemonsets.apps agent with object.status.numberReady == 2 for the last 5s", Fill: daemonSet(nil), Met: check.False, Evidence: one, Seen: "ns/agent: false", Differs: []string{"10:04:45: ns/agent: false"}},
		{
			Name: "it was so in one version", Spec: `{"hold":"","versions":1,"expression":"!has(object.status.short) && object.status.numberReady == 1"}`,
			Wanted: "at least 1 versions of daemonsets.apps agent with", Fill: daemonSet(nil), Met: check.True, Evidence: one, Seen: "1 of 2 versions",
		},
		{
			Name: "in too few versions", Spec: `{"hold":"","versions":2,"expression":"has(object.status.short)"}`, Wanted: "at least 2 versions", Fill: daemonSet(nil),
			Met: check.False, Evidence: one, Seen: "1 of 2 versions", Differs: []string{"10:01:21: ns/agent: false"},
		},
		{
			Name: "too few were seen, and nobody looked for a while", Spec: `{"hold":"","versions":2,"expression":"has(object.status.short)"}`, Wanted: "at least 2 versions",
			Fill: daemonSet(func(o *checktest.Objects) { o.St.Gap(o.At(100), o.At(110), "refused") }), Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "refused",
		},
		{
			Name: "enough were seen, though nobody looked for a while", Spec: versions, Wanted: "at least 1 versions", Met: check.True, Evidence: one, Seen: "2 of 2 versions",
			Fill: daemonSet(func(o *checktest.Objects) { o.St.Gap(o.At(100), o.At(110), "refused") }),
		},
		{
			Name: "a field that isn't there", Spec: `{"expression":"object.status.missing"}`, Wanted: "with object.status.missing", Fill: daemonSet(nil),
			Met: check.Unknown, Code: check.BadCheck, Evidence: one, Seen: "ns/agent at 10:01:22: the expression has no value: no such key: missing",
		},
		{Name: "nobody ever saw it", Spec: `{"name":"another"}`, Wanted: "daemonsets.apps another", Fill: daemonSet(nil), Met: check.Unknown, Code: check.NotRecorded, Evidence: one, Seen: "no such daemonsets.apps was ever seen by 10:04:50"},
		{
			Name: "a resource that nobody followed", Spec: `{"resource":"pods","hold":"","versions":1}`, Wanted: "at least 1 versions of pods agent", Fill: daemonSet(nil),
			Met: check.Unknown, Code: check.NotRecorded, Seen: "nobody followed pods for vulnerable",
		},
		{
			Name: "of one of two objects", Spec: `{"name":"","atLeast":1}`, Wanted: "at least 1 of daemonsets.apps with", Met: check.True, Evidence: one, Seen: "ns/other: false",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "other", "controller", `{"numberReady":3}`)
			}),
		},
		{
			Name: "versions of one object count for one", Spec: `{"name":"","hold":"","versions":1,"atLeast":2}`, Met: check.False, Evidence: one, Fill: daemonSet(nil),
			Wanted: "at least 1 versions of each of at least 2 of daemonsets.apps with", Seen: "2 of 2 versions, so many of each of 1 objects",
		},
		{
			Name: "versions of each of two objects", Spec: `{"name":"","hold":"","versions":1,"atLeast":2}`, Met: check.True, Evidence: one,
			Wanted: "at least 1 versions of each of at least 2 of daemonsets.apps with", Seen: "3 of 3 versions, so many of each of 2 objects",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(90, churn.Added, daemons, "other", "controller", `{"numberReady":1}`)
			}),
		},
		{
			Name: "it went while nobody watched", Met: check.False, Evidence: one, Seen: "ns/agent: gone", Differs: []string{"10:04:45: ns/agent: gone"},
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Must(o.St.Append(churn.Version{Time: o.At(105), Type: churn.Lost, From: o.At(100), Reason: "too old", Resource: daemons}))
				o.Must(o.St.Append(churn.Version{Time: o.At(110), Type: churn.Synced, Resource: daemons})) // a list without it
			}),
		},
		{
			Name: "a version that was only listed", Spec: `{"hold":"","versions":3}`, Wanted: "at least 3 versions", Met: check.False, Evidence: one, Seen: "2 of 2 versions",
			Fill: daemonSet(func(o *checktest.Objects) {
				o.Say(110, churn.Listed, daemons, "agent", "controller", `{"numberReady":1,"short":true}`)
				o.Must(o.St.Append(churn.Version{Time: o.At(110), Type: churn.Synced, Resource: daemons}))
			}),
		},
		{
			Name: "nobody looked any more since it was otherwise", Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "the record of objects does not cover 10:04:45.0 to 10:04:50.0",
			Fill: otherwise(func(o *checktest.Objects) { o.Covers(0, 70) }),
		},
		{
			Name: "it was otherwise before a gap at the end", Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "refused",
			Fill: otherwise(func(o *checktest.Objects) { o.St.Gap(o.At(200), o.At(300), "refused"); o.Covers(0, 400) }),
		},
		{
			Name: "it was otherwise before a short gap at the beginning of the stretch, and is as wanted since", Met: check.True, Evidence: one, Seen: "ns/agent: true",
			Fill: otherwise(func(o *checktest.Objects) {
				o.Must(o.St.Append(churn.Version{Time: o.At(286), Type: churn.Lost, From: o.At(280), Reason: "too old", Resource: daemons}))
				o.Say(286, churn.Listed, daemons, "agent", "controller", `{"numberReady":1}`)
				o.Must(o.St.Append(churn.Version{Time: o.At(286), Type: churn.Synced, Resource: daemons}))
				o.St.Gap(o.At(280), o.At(286), "listed anew")
				o.Covers(0, 400)
			}),
		},
		{
			Name: "it was otherwise before that gap, and still is", Met: check.False, Evidence: one, Seen: "ns/agent: false", Differs: []string{"10:04:46: ns/agent: false"},
			Fill: otherwise(func(o *checktest.Objects) { o.St.Gap(o.At(280), o.At(286), "slow"); o.Covers(0, 400) }),
		},
		{
			Name: "all were otherwise before that gap, and are as wanted since", Spec: `{"name":""}`, Wanted: "daemonsets.apps with object.status.numberReady == 1 for the last 5s", Met: check.True, Evidence: one, Seen: "ns/other: true",
			Fill: otherwise(func(o *checktest.Objects) {
				o.Say(0, churn.Listed, daemons, "other", "controller", `{"numberReady":2}`)
				o.Must(o.St.Append(churn.Version{Time: o.At(286), Type: churn.Lost, From: o.At(280), Reason: "too old", Resource: daemons}))
				o.Say(286.1, churn.Listed, daemons, "agent", "controller", `{"numberReady":1}`)
				o.Say(286.2, churn.Listed, daemons, "other", "controller", `{"numberReady":1}`)
				o.Must(o.St.Append(churn.Version{Time: o.At(286), Type: churn.Synced, Resource: daemons}))
				o.St.Gap(o.At(280), o.At(286), "listed anew")
				o.Covers(0, 400)
			}),
		},
		{
			Name: "it was otherwise before that gap and after it, and changes later in the stretch", Met: check.False, Evidence: one,
			Seen: "ns/agent: true", Differs: []string{"10:04:46: ns/agent: false"},
			Fill: otherwise(func(o *checktest.Objects) {
				o.St.Gap(o.At(280), o.At(286), "slow")
				o.Say(288, churn.Modified, daemons, "agent", "controller", `{"numberReady":1}`)
				o.Covers(0, 400)
			}),
		},
		{
			Name: "it was otherwise in the last stretch, before a gap there", Met: check.False, Evidence: one, Seen: "ns/agent: false", Differs: []string{"10:04:45: ns/agent: false"},
			Fill: otherwise(func(o *checktest.Objects) { o.St.Gap(o.At(286), o.At(289), "refused"); o.Covers(0, 400) }),
		},
		{
			Name: "it was otherwise, and a gap reaches over the end", Spec: `{"hold":"1s"}`, Wanted: "for the last 1s", Met: check.Unknown, Code: check.Gap, Evidence: one,
			Seen: "ns/agent: false, as far as it was seen before the gap in the record", Fill: otherwise(func(o *checktest.Objects) { o.St.Gap(o.At(288.5), o.At(295), "refused"); o.Covers(0, 400) }),
		},
		{Name: "a missing file", Spec: hold, Fill: daemonSet(nil), Damage: checktest.Remove(t, bundle.Objects), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "object", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"resource":"`+daemons+`","name":"agent","expression":"object.status.numberReady == 1","hold":"5s"}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "daemonsets.apps agent with object.status.numberReady == 1 for the last 5s"
		}
	})
	for spec, want := range map[string]string{
		`{"expression":"true","hold":"5s"}`:                                  "resource is empty",
		`{"resource":"nodes","hold":"5s"}`:                                   "there are 0 of expression, fields and absent (want one of them)",
		`{"resource":"nodes","expression":"true"}`:                           `hold is "" and versions is 0 (want one of them)`,
		`{"resource":"nodes","expression":"true","hold":"5s","versions":2}`:  `hold is "5s" and versions is 2 (want one of them)`,
		`{"resource":"nodes","expression":"true","versions":2,"atLeast":-1}`: "atLeast is -1 (want at least 1)",
		`{"resource":"nodes","expression":"object.x +","hold":"5s"}`:         "expression, line 1, column 11: Syntax error",
		`{"resource":"nodes","expression":"size(object.x)","hold":"5s"}`:     "expression, line 1, column 1: it is a int (want a bool)",
		`{"resource":"nodes","expression":"objekt.x == 1","hold":"5s"}`:      "undeclared reference to 'objekt'",
	} {
		checktest.Refused(t, "object", spec, want)
	}
}
