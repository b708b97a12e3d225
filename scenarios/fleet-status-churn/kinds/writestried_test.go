package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// audited is a trial in which no watch shows a write of either arm; more adds to the audit log.
func audited(more func(*checktest.Audit)) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		checktest.Churning(nil)(tr)
		a := tr.Audit()
		if more != nil {
			more(a)
		}
		a.Covers(0, 400)
	}
}

// each has an arm ask for the same once in so many seconds of from..to.
func each(every, from, to float64, arm, verb, resource string, code int) func(*checktest.Audit) {
	return func(a *checktest.Audit) {
		for s := from; s <= to; s += every {
			a.Asks(s, arm, verb, resource, code)
		}
	}
}

func TestWritesTried(t *testing.T) {
	all := []bundle.Kind{bundle.Audit, bundle.Objects}
	vain := func(name, verb, resource string, code int, differs string) checktest.Question {
		return checktest.Question{Name: name, Fill: audited(each(1, 90, 280, checktest.Arm, verb, resource, code)), Met: check.False, Evidence: all,
			Seen: "60 writes were tried in 10:01:55.0 to 10:02:55.0", Differs: []string{differs}}
	}
	of := checktest.Bundles + "/status"
	checktest.Run(t, []checktest.Question{
		{Name: "none", Fill: audited(nil), Met: check.True, Evidence: all, Seen: "0 writes were tried in 10:01:55.0 to 10:02:55.0"},
		vain("without a changed byte", "update", checktest.Bundles, 200, "60 × update of "+of+", answered 200"),
		vain("by patch", "patch", checktest.Bundles, 200, "60 × patch of "+of+", answered 200"),
		vain("conflicts", "update", checktest.Bundles, 409, "60 × update of "+of+", answered 409"),
		vain("refused", "update", checktest.Bundles, 422, "60 × update of "+of+", answered 422"),
		vain("forbidden", "patch", checktest.Bundles, 403, "60 × patch of "+of+", answered 403"),
		vain("another resource", "create", "secrets", 409, "60 × create of secrets, answered 409"),
		{Name: "deletions", Fill: audited(each(10, 90, 280, checktest.Arm, "deletecollection", "secrets", 200)), Met: check.False, Evidence: all,
			Seen: "6 writes", Differs: []string{"6 × deletecollection of secrets, answered 200"}},
		{Name: "as the world changed", Fill: audited(each(1, 80, 112, checktest.Arm, "update", checktest.Bundles, 200)), Met: check.True, Evidence: all, Seen: "0 writes"},
		{Name: "as many as are tolerated", Spec: `{"atMost":60}`, Fill: audited(each(1, 90, 280, checktest.Arm, "update", checktest.Bundles, 409)), Met: check.True, Evidence: all, Seen: "60 writes"},
		{Name: "another arm's", Fill: audited(each(1, 90, 280, checktest.Other, "patch", checktest.Bundles, 200)), Met: check.True, Evidence: all, Seen: "0 writes"},
		{Name: "a read, and what nobody asks for", Fill: audited(func(a *checktest.Audit) {
			each(1, 90, 280, checktest.Arm, "get", checktest.Bundles, 200)(a)
			each(1, 90, 280, checktest.Arm, "update", "leases.coordination.k8s.io", 200)(a)
		}), Met: check.True, Evidence: all, Seen: "0 writes"},
		{Name: "without an answer", Fill: audited(func(a *checktest.Audit) {
			a.Must(a.St.JSON(bundle.AuditEvent{Time: a.At(150), ID: "x", Stage: "RequestReceived", Verb: "patch", User: "agent-" + checktest.Arm, Resource: checktest.Bundles, Subresource: "status"}))
		}), Met: check.False, Evidence: all, Seen: "1 writes", Differs: []string{"1 × patch of " + of + ", without an answer"}},
		{Name: "no audit log", Fill: checktest.Churning(nil), Met: check.Unknown, Code: check.NotRecorded, Seen: "no audit was recorded for vulnerable or shared"},
		{Name: "a missing file", Fill: audited(nil), Damage: checktest.Remove(t, bundle.Audit), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{Name: "a gap", Fill: audited(func(a *checktest.Audit) { a.St.Gap(a.At(150), a.At(152), "audit.log is another file") }), Met: check.Unknown, Evidence: all,
			Seen: "0 writes were tried in 10:01:55.0 to 10:02:55.0; the audit log does not cover 10:01:55.0 to 10:02:55.0 (covers 10:00:00.0 to 10:06:40.0) (gap 10:02:30.0 to 10:02:32.0: audit.log is another file)"},
		{Name: "a gap beside what was seen", Fill: audited(func(a *checktest.Audit) {
			a.Asks(140, checktest.Arm, "patch", checktest.Bundles, 200)
			a.St.Gap(a.At(150), a.At(152), "audit.log is another file")
		}), Met: check.False, Evidence: all, Seen: "1 writes", Differs: []string{"1 × patch"}},
		{Name: "a log that is cut short", Fill: func(tr *checktest.Trial) {
			checktest.Churning(nil)(tr)
			tr.Audit().Covers(0, 160)
		}, Met: check.Unknown, Code: check.Gap, Evidence: all, Seen: "the audit log does not cover"},
		{Name: "a line that is no event", Fill: audited(func(a *checktest.Audit) {
			a.Must(a.St.JSON(bundle.AuditEvent{Time: a.At(150), Error: "unexpected end of JSON input"}))
		}), Met: check.Unknown, Evidence: all, Seen: "a line of the audit log is no event: unexpected end of JSON input"},
		{Name: "the second API server's log is missing", Fill: func(tr *checktest.Trial) {
			audited(nil)(tr)
			tr.Fail(bundle.Audit, bundle.Shared, 5, "no such node")
		}, Met: check.Unknown, Code: check.Unreadable, Evidence: all, Seen: "the capture failed: no such node"},
		{Name: "a user that the log never had", Spec: `{"user":"somebody"}`, Fill: audited(nil), Met: check.Unknown, Evidence: all, Seen: "the audit log has not one write by somebody"},
		{Name: "a resource that the log never had", Spec: `{"resources":["` + checktest.Bundles + `","pods"]}`, Fill: audited(nil), Met: check.Unknown, Evidence: all, Seen: "the audit log has nobody's write of pods"},
		{Name: "events that don't say whose they are", Met: check.Unknown, Seen: "nobody's write of " + checktest.Bundles, Evidence: all, Fill: func(tr *checktest.Trial) {
			checktest.Churning(nil)(tr)
			st := tr.Stream(bundle.Audit, bundle.Shared)
			tr.Must(st.JSON(bundle.AuditEvent{Time: tr.At(150), ID: "a", Stage: "ResponseComplete", Verb: "update", Path: "/apis/x", Code: 409}))
			st.Alive(tr.At(0))
			st.Alive(tr.At(400))
		}},
		{Name: "a world that nobody followed", Met: check.Unknown, Code: check.NotRecorded, Evidence: all[:1], Seen: "the window never came: nobody followed nodes", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.Audit().Covers(0, 400)
		}},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.From = "writesTried", check.Scope{Arm: checktest.Arm, Phase: check.Fault}, "*"
		q.Spec = checktest.Over(t, `{"user":"agent-$(arm)","resources":["`+checktest.Bundles+`","secrets"],"window":{"terminating":1}}`, q.Spec)
		if q.Wanted = "writes of " + checktest.Bundles; q.Name == "none" {
			q.Wanted = "at most 0 writes of " + checktest.Bundles + ", secrets tried by agent-vulnerable in a window of 60s after 15s of standstill"
		}
	})
}

// The world changes at 80, 81 and 100 s. What comes long after that has no reason, however seldom it comes.
func TestWritesTriedWithoutAReason(t *testing.T) {
	all := []bundle.Kind{bundle.Audit, bundle.Objects}
	checktest.Run(t, []checktest.Question{
		{Name: "none", Fill: audited(nil), Met: check.True, Evidence: all, Seen: "0 of 0 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason"},
		{Name: "after each change", Fill: audited(func(a *checktest.Audit) {
			each(20, 82, 102, checktest.Arm, "update", checktest.Bundles, 200)(a)
			each(1, 130, 144, checktest.Arm, "update", checktest.Bundles, 409)(a) // a loaded agent follows late
		}), Met: check.True, Evidence: all, Seen: "0 of 17 writes"},
		{Name: "seen by the agent before the recorder", Fill: audited(each(1, 77, 77, checktest.Arm, "update", checktest.Bundles, 200)), Met: check.True, Evidence: all, Seen: "0 of 1 writes"},
		{Name: "every two minutes", Fill: audited(each(120, 90, 289, checktest.Arm, "patch", checktest.Bundles, 200)), Met: check.False, Evidence: all,
			Seen: "1 of 2 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason, the first at 10:03:30", Differs: []string{"1 × patch of " + checktest.Bundles + "/status, answered 200"}},
		{Name: "before and after the phase", Fill: audited(each(290, 5, 295, checktest.Arm, "patch", checktest.Bundles, 200)), Met: check.True, Evidence: all, Seen: "0 of 0 writes"},
		{Name: "its own change is no reason", Met: check.False, Seen: "1 of 1 writes", Differs: []string{"1 × patch of daemonsets.apps, answered 200"},
			Evidence: []bundle.Kind{bundle.Audit, bundle.Objects, bundle.Objects}, Spec: `{"resources":["daemonsets.apps"]}`, Fill: audited(func(a *checktest.Audit) {
				a.Asks(220, checktest.Arm, "patch", "daemonsets.apps", 200)
				o := a.Objects(bundle.Shared, "daemonsets.apps")
				o.Say(220.2, churn.Modified, "daemonsets.apps", "bundle", "agent", `{"n":1}`)
				o.Covers(0, 400)
			})},
		{Name: "somebody else's change is one", Met: check.True, Seen: "0 of 1 writes", Evidence: []bundle.Kind{bundle.Audit, bundle.Objects, bundle.Objects}, Fill: audited(func(a *checktest.Audit) {
			a.Asks(220, checktest.Arm, "patch", checktest.Bundles, 200)
			o := a.Objects(bundle.Shared, "daemonsets.apps")
			o.Say(215, churn.Modified, "daemonsets.apps", "bundle", "kubectl", `{"n":1}`)
			o.Covers(0, 400)
		})},
		{Name: "nobody knows whether there was one", Met: check.Unknown, Code: check.Gap, Evidence: all, Seen: "0 of 1 writes that were tried in 10:00:40.0 to 10:04:50.0 had no reason; the record of objects does not cover",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				o := checktest.Outside(tr)
				o.St.Gap(o.At(200), o.At(205), "had to be listed anew")
				o.Covers(0, 400)
				a := tr.Audit()
				a.Asks(210, checktest.Arm, "update", checktest.Bundles, 200)
				a.Covers(0, 400)
			}},
		{Name: "a gap in the log", Fill: audited(func(a *checktest.Audit) { a.St.Gap(a.At(200), a.At(201), "cut") }), Met: check.Unknown, Code: check.Gap, Evidence: all, Seen: "the audit log does not cover"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.From = "writesTried", check.Scope{Arm: checktest.Arm, Phase: check.Fault}, "*"
		q.Spec = checktest.Over(t, `{"user":"agent-$(arm)","resources":["`+checktest.Bundles+`"],"within":"45s"}`, q.Spec)
		q.Wanted = " in the whole phase without a change of nodes, pods, deployments.apps, daemonsets.apps in the 45s before"
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
		checktest.Refused(t, "writesTried", spec, want)
	}
}
