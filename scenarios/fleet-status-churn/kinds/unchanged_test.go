package kinds_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// serving is a trial in which both arms may write, and the API server counts requests of a verb with an answer; rate is
// how many a second.
func serving(a, b func(*checktest.Objects), verb, code string, rate float64) func(*checktest.Trial) {
	return func(tr *checktest.Trial) {
		checktest.Churning(a)(tr)
		own := tr.Objects(checktest.Other, checktest.Bundles)
		if b != nil {
			b(own)
		}
		own.Covers(0, 400)
		st := tr.Stream(bundle.MetricSamples, bundle.Shared)
		for s := 0.0; s <= 400; s += 2 {
			tr.Sample(st, "apiserver_request_total", s, 3*s, ofStatus("GET", "200"))
			tr.Sample(st, "apiserver_request_total", s, rate*max(0, s-100), ofStatus(verb, code))
		}
	}
}

// served is serving for updates that succeed.
func served(a, b func(*checktest.Objects), rate float64) func(*checktest.Trial) {
	return serving(a, b, "PUT", "200", rate)
}

// ofStatus labels requests for the bundles' status.
func ofStatus(verb, code string) map[string]string {
	return map[string]string{"verb": verb, "code": code, "group": "fleet.cattle.io", "resource": "bundledeployments", "subresource": "status"}
}

func TestUnchangedUpdates(t *testing.T) {
	all := []bundle.Kind{bundle.MetricSamples, bundle.Objects, bundle.Objects, bundle.Objects}
	writes := func(o *checktest.Objects) { checktest.Loop(o, 101, 289) }
	checktest.Run(t, []checktest.Question{
		{
			Name: "each changes something", Fill: served(writes, nil, 0.5), Met: check.True, Evidence: all,
			Seen: "in 10:01:56.0 to 10:02:54.1 the API server counted 29 updates of " + checktest.Bundles + "/status, and the watches showed 29: 0 changed nothing",
		},
		{
			Name: "both arms write", Fill: served(writes, writes, 1), Met: check.Unknown, Evidence: all,
			Seen: "counted 58 updates of " + checktest.Bundles + "/status, and the watches showed 29, and 29 of other arms: whose the rest are isn't known",
		},
		{Name: "only another arm's writes are shown", Fill: served(nil, writes, 0.5), Met: check.Unknown, Evidence: all, Seen: "the watches showed 0, and 29 of other arms"},
		{Name: "by patch", Fill: serving(nil, nil, "PATCH", "200", 1), Met: check.False, Evidence: all, Seen: "counted 58 updates"},
		{Name: "by apply", Fill: serving(nil, nil, "APPLY", "200", 1), Met: check.False, Evidence: all, Seen: "counted 58 updates"},
		{Name: "conflicts", Fill: serving(nil, nil, "PUT", "409", 1), Met: check.False, Evidence: all, Seen: "the watches showed 0: 58 changed nothing"},
		{Name: "refused", Fill: serving(nil, nil, "PUT", "422", 1), Met: check.False, Evidence: all, Seen: "58 changed nothing"},
		{Name: "half of them change nothing", Fill: served(writes, nil, 1), Met: check.False, Evidence: all, Seen: "the watches showed 29: 29 changed nothing"},
		{Name: "none changes anything", Fill: served(nil, nil, 0.5), Met: check.False, Evidence: all, Seen: "the watches showed 0: 29 changed nothing"},
		{Name: "nobody writes", Fill: served(nil, nil, 0), Met: check.True, Evidence: all, Seen: "counted 0 updates"},
		{Name: "one arm was not followed", Fill: func(tr *checktest.Trial) {
			checktest.Churning(writes)(tr)
			st := tr.Stream(bundle.MetricSamples, bundle.Shared)
			for s := 0.0; s <= 400; s += 2 {
				tr.Sample(st, "apiserver_request_total", s, s, ofStatus("PUT", "200"))
			}
		}, Met: check.Unknown, Code: check.NotRecorded, Evidence: all[:3], Seen: "nobody followed " + checktest.Bundles + " for fixed"},
		{Name: "no count", Fill: checktest.Churning(writes), Met: check.Unknown, Code: check.NotRecorded, Seen: "no metrics.samples was recorded for shared"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.From = "unchangedUpdates", check.Scope{Arm: checktest.Arm, Phase: check.Fault}, "*"
		q.Spec = `{"resource":"` + checktest.Bundles + `","subresource":"status","atMost":2,"window":{"terminating":1}}`
		q.Wanted = "at most 2 updates of " + checktest.Bundles + "/status that changed nothing"
	})
	for spec, want := range map[string]string{
		`{"atMost":2}`:                             "resource is empty",
		`{"resource":"a","atMost":-1}`:             "atMost is -1 (want 0 or more)",
		`{"resource":"a","window":{"still":"0s"}}`: "window.still is 0s (want above 0)",
	} {
		checktest.Refused(t, "unchangedUpdates", spec, want)
	}
}
