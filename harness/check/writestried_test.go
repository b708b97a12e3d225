package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// audited is a trial in which no watch shows a write of either arm; more adds to the audit log.
func audited(more func(*audit)) func(*trial) {
	return func(tr *trial) {
		churning(nil)(tr)
		a := tr.audit()
		if more != nil {
			more(a)
		}
		a.covers(0, 400)
	}
}

// each has an arm ask for the same once in so many seconds of from..to.
func each(every, from, to float64, arm, verb, resource string, code int) func(*audit) {
	return func(a *audit) {
		for s := from; s <= to; s += every {
			a.asks(s, arm, verb, resource, code)
		}
	}
}

func TestWritesTried(t *testing.T) {
	all := []bundle.Kind{bundle.Audit, bundle.Objects}
	vain := func(name, verb, resource string, code int, differs string) question {
		return question{name: name, fill: audited(each(1, 90, 280, arm, verb, resource, code)), met: check.False, evidence: all,
			seen: "60 writes were tried in 10:01:55.0 to 10:02:55.0", differs: []string{differs}}
	}
	of := bundles + "/status"
	run(t, []question{
		{name: "none", fill: audited(nil), met: check.True, evidence: all, seen: "0 writes were tried in 10:01:55.0 to 10:02:55.0"},
		vain("without a changed byte", "update", bundles, 200, "60 × update of "+of+", answered 200"),
		vain("by patch", "patch", bundles, 200, "60 × patch of "+of+", answered 200"),
		vain("conflicts", "update", bundles, 409, "60 × update of "+of+", answered 409"),
		vain("refused", "update", bundles, 422, "60 × update of "+of+", answered 422"),
		vain("forbidden", "patch", bundles, 403, "60 × patch of "+of+", answered 403"),
		vain("another resource", "create", "secrets", 409, "60 × create of secrets, answered 409"),
		{name: "deletions", fill: audited(each(10, 90, 280, arm, "deletecollection", "secrets", 200)), met: check.False, evidence: all,
			seen: "6 writes", differs: []string{"6 × deletecollection of secrets, answered 200"}},
		{name: "as the world changed", fill: audited(each(1, 80, 112, arm, "update", bundles, 200)), met: check.True, evidence: all, seen: "0 writes"},
		{name: "as many as are tolerated", spec: `{"atMost":60}`, fill: audited(each(1, 90, 280, arm, "update", bundles, 409)), met: check.True, evidence: all, seen: "60 writes"},
		{name: "another arm's", fill: audited(each(1, 90, 280, other, "patch", bundles, 200)), met: check.True, evidence: all, seen: "0 writes"},
		{name: "a read, and what nobody asks for", fill: audited(func(a *audit) {
			each(1, 90, 280, arm, "get", bundles, 200)(a)
			each(1, 90, 280, arm, "update", "leases.coordination.k8s.io", 200)(a)
		}), met: check.True, evidence: all, seen: "0 writes"},
		{name: "without an answer", fill: audited(func(a *audit) {
			a.must(a.st.JSON(bundle.AuditEvent{Time: a.at(150), ID: "x", Stage: "RequestReceived", Verb: "patch", User: "agent-" + arm, Resource: bundles, Subresource: "status"}))
		}), met: check.False, evidence: all, seen: "1 writes", differs: []string{"1 × patch of " + of + ", without an answer"}},
		{name: "no audit log", fill: churning(nil), met: check.Unknown, seen: "no audit was recorded for vulnerable or shared"},
		{name: "a missing file", fill: audited(nil), damage: remove(t, bundle.Audit), met: check.Unknown, seen: "is missing"},
		{name: "a gap", fill: audited(func(a *audit) { a.st.Gap(a.at(150), a.at(152), "audit.log is another file") }), met: check.Unknown, evidence: all,
			seen: "0 writes were tried in 10:01:55.0 to 10:02:55.0; the audit log does not cover 10:01:55.0 to 10:02:55.0 (covers 10:00:00.0 to 10:06:40.0) (gap 10:02:30.0 to 10:02:32.0: audit.log is another file)"},
		{name: "a gap beside what was seen", fill: audited(func(a *audit) {
			a.asks(140, arm, "patch", bundles, 200)
			a.st.Gap(a.at(150), a.at(152), "audit.log is another file")
		}), met: check.False, evidence: all, seen: "1 writes", differs: []string{"1 × patch"}},
		{name: "a log that is cut short", fill: func(tr *trial) {
			churning(nil)(tr)
			tr.audit().covers(0, 160)
		}, met: check.Unknown, evidence: all, seen: "the audit log does not cover"},
		{name: "a line that is no event", fill: audited(func(a *audit) {
			a.must(a.st.JSON(bundle.AuditEvent{Time: a.at(150), Error: "unexpected end of JSON input"}))
		}), met: check.Unknown, evidence: all, seen: "a line of the audit log is no event: unexpected end of JSON input"},
		{name: "the second API server's log is missing", fill: func(tr *trial) {
			audited(nil)(tr)
			tr.fail(bundle.Audit, bundle.Shared, 5, "no such node")
		}, met: check.Unknown, evidence: all, seen: "the capture failed: no such node"},
		{name: "a user that the log never had", spec: `{"user":"somebody"}`, fill: audited(nil), met: check.Unknown, evidence: all, seen: "the audit log has not one write by somebody"},
		{name: "a resource that the log never had", spec: `{"resources":["` + bundles + `","pods"]}`, fill: audited(nil), met: check.Unknown, evidence: all, seen: "the audit log has nobody's write of pods"},
		{name: "events that don't say whose they are", met: check.Unknown, seen: "nobody's write of " + bundles, evidence: all, fill: func(tr *trial) {
			churning(nil)(tr)
			st := tr.stream(bundle.Audit, bundle.Shared)
			tr.must(st.JSON(bundle.AuditEvent{Time: tr.at(150), ID: "a", Stage: "ResponseComplete", Verb: "update", Path: "/apis/x", Code: 409}))
			st.Alive(tr.at(0))
			st.Alive(tr.at(400))
		}},
		{name: "a world that nobody followed", met: check.Unknown, evidence: all[:1], seen: "the window never came: nobody followed nodes", fill: func(tr *trial) {
			tr.phases()
			tr.audit().covers(0, 400)
		}},
	}, func(q *question) {
		q.kind, q.scope, q.from = "writesTried", check.Scope{Arm: arm, Phase: check.Fault}, "*"
		q.spec = over(t, `{"user":"agent-$(arm)","resources":["`+bundles+`","secrets"],"window":{"terminating":1}}`, q.spec)
		if q.wanted = "writes of " + bundles; q.name == "none" {
			q.wanted = "at most 0 writes of " + bundles + ", secrets tried by agent-vulnerable in a window of 60s after 15s of standstill"
		}
	})
}

// The world changes at 80, 81 and 100 s. What comes long after that has no reason, however seldom it comes.
func TestWritesTriedWithoutAReason(t *testing.T) {
	all := []bundle.Kind{bundle.Audit, bundle.Objects}
	run(t, []question{
		{name: "none", fill: audited(nil), met: check.True, evidence: all, seen: "0 of 0 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason"},
		{name: "after each change", fill: audited(func(a *audit) {
			each(20, 82, 102, arm, "update", bundles, 200)(a)
			each(1, 130, 144, arm, "update", bundles, 409)(a) // a loaded agent follows late
		}), met: check.True, evidence: all, seen: "0 of 17 writes"},
		{name: "seen by the agent before the recorder", fill: audited(each(1, 77, 77, arm, "update", bundles, 200)), met: check.True, evidence: all, seen: "0 of 1 writes"},
		{name: "every two minutes", fill: audited(each(120, 90, 289, arm, "patch", bundles, 200)), met: check.False, evidence: all,
			seen: "1 of 2 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason, the first at 10:03:30", differs: []string{"1 × patch of " + bundles + "/status, answered 200"}},
		{name: "before and after the phase", fill: audited(each(290, 5, 295, arm, "patch", bundles, 200)), met: check.True, evidence: all, seen: "0 of 0 writes"},
		{name: "its own change is no reason", met: check.False, seen: "1 of 1 writes", differs: []string{"1 × patch of daemonsets.apps, answered 200"},
			evidence: []bundle.Kind{bundle.Audit, bundle.Objects, bundle.Objects}, spec: `{"resources":["daemonsets.apps"]}`, fill: audited(func(a *audit) {
				a.asks(220, arm, "patch", "daemonsets.apps", 200)
				o := a.objects(bundle.Shared, "daemonsets.apps")
				o.say(220.2, churn.Modified, "daemonsets.apps", "bundle", "agent", `{"n":1}`)
				o.covers(0, 400)
			})},
		{name: "somebody else's change is one", met: check.True, seen: "0 of 1 writes", evidence: []bundle.Kind{bundle.Audit, bundle.Objects, bundle.Objects}, fill: audited(func(a *audit) {
			a.asks(220, arm, "patch", bundles, 200)
			o := a.objects(bundle.Shared, "daemonsets.apps")
			o.say(215, churn.Modified, "daemonsets.apps", "bundle", "kubectl", `{"n":1}`)
			o.covers(0, 400)
		})},
		{name: "nobody knows whether there was one", met: check.Unknown, evidence: all, seen: "0 of 1 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason; the record of objects does not cover",
			fill: func(tr *trial) {
				tr.phases()
				o := outside(tr)
				o.st.Gap(o.at(200), o.at(205), "had to be listed anew")
				o.covers(0, 400)
				a := tr.audit()
				a.asks(210, arm, "update", bundles, 200)
				a.covers(0, 400)
			}},
		{name: "a gap in the log", fill: audited(func(a *audit) { a.st.Gap(a.at(200), a.at(201), "cut") }), met: check.Unknown, evidence: all, seen: "the audit log does not cover"},
	}, func(q *question) {
		q.kind, q.scope, q.from = "writesTried", check.Scope{Arm: arm, Phase: check.Fault}, "*"
		q.spec = over(t, `{"user":"agent-$(arm)","resources":["`+bundles+`"],"within":"45s"}`, q.spec)
		q.wanted = " in the whole phase without a change of nodes, pods, deployments.apps, daemonsets.apps in the 45s before"
	})
}

func TestWritesTriedRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"resources":["a"]}`:                                    "user is empty",
		`{"user":"$(cell)","resources":["b"]}`:                   "user is \"$(cell)\" (want no placeholder but $(arm))",
		`{"user":"a"}`:                                           "resources is [] (want the plural names of what is written)",
		`{"user":"a","resources":[""]}`:                          `resources is [""] (want`,
		`{"user":"a","resources":["b"],"atMost":-1}`:             "atMost is -1 (want 0 or more)",
		`{"user":"a","resources":["b"],"within":"5"}`:            `within is "5" (want a duration with its unit: 3m)`,
		`{"user":"a","resources":["b"],"window":{"still":"0s"}}`: "window.still is 0s (want above 0)",
	} {
		refused(t, "writesTried", spec, want)
	}
}
