package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// serving is a trial in which both arms may write, and the API server counts requests of a verb with an answer; rate is how many a second.
func serving(a, b func(*objects), verb, code string, rate float64) func(*trial) {
	return func(tr *trial) {
		churning(a)(tr)
		own := tr.objects(other, bundles)
		if b != nil {
			b(own)
		}
		own.covers(0, 400)
		st := tr.stream(bundle.MetricSamples, bundle.Shared)
		for s := 0.0; s <= 400; s += 2 {
			tr.sample(st, "apiserver_request_total", s, 3*s, ofStatus("GET", "200"))
			tr.sample(st, "apiserver_request_total", s, rate*max(0, s-100), ofStatus(verb, code))
		}
	}
}

// served is serving for updates that succeed.
func served(a, b func(*objects), rate float64) func(*trial) {
	return serving(a, b, "PUT", "200", rate)
}

// ofStatus labels requests for the bundles' status.
func ofStatus(verb, code string) map[string]string {
	return map[string]string{"verb": verb, "code": code, "group": "fleet.cattle.io", "resource": "bundledeployments", "subresource": "status"}
}

func TestUnchangedUpdates(t *testing.T) {
	all := []bundle.Kind{bundle.MetricSamples, bundle.Objects, bundle.Objects, bundle.Objects}
	writes := func(o *objects) { loop(o, 101, 289) }
	run(t, []question{
		{
			name: "each changes something", fill: served(writes, nil, 0.5), met: check.True, evidence: all,
			seen: "in 10:01:56.0 to 10:02:54.1 the API server counted 29 updates of " + bundles + "/status, and the watches showed 29: 0 changed nothing",
		},
		{
			name: "both arms write", fill: served(writes, writes, 1), met: check.Unknown, evidence: all,
			seen: "counted 58 updates of " + bundles + "/status, and the watches showed 29, and 29 of other arms: whose the rest are isn't known",
		},
		{name: "only another arm's writes are shown", fill: served(nil, writes, 0.5), met: check.Unknown, evidence: all, seen: "the watches showed 0, and 29 of other arms"},
		{name: "by patch", fill: serving(nil, nil, "PATCH", "200", 1), met: check.False, evidence: all, seen: "counted 58 updates"},
		{name: "by apply", fill: serving(nil, nil, "APPLY", "200", 1), met: check.False, evidence: all, seen: "counted 58 updates"},
		{name: "conflicts", fill: serving(nil, nil, "PUT", "409", 1), met: check.False, evidence: all, seen: "the watches showed 0: 58 changed nothing"},
		{name: "refused", fill: serving(nil, nil, "PUT", "422", 1), met: check.False, evidence: all, seen: "58 changed nothing"},
		{name: "half of them change nothing", fill: served(writes, nil, 1), met: check.False, evidence: all, seen: "the watches showed 29: 29 changed nothing"},
		{name: "none changes anything", fill: served(nil, nil, 0.5), met: check.False, evidence: all, seen: "the watches showed 0: 29 changed nothing"},
		{name: "nobody writes", fill: served(nil, nil, 0), met: check.True, evidence: all, seen: "counted 0 updates"},
		{name: "one arm was not followed", fill: func(tr *trial) {
			churning(writes)(tr)
			st := tr.stream(bundle.MetricSamples, bundle.Shared)
			for s := 0.0; s <= 400; s += 2 {
				tr.sample(st, "apiserver_request_total", s, s, ofStatus("PUT", "200"))
			}
		}, met: check.Unknown, evidence: all[:3], seen: "nobody followed " + bundles + " for fixed"},
		{name: "no count", fill: churning(writes), met: check.Unknown, seen: "no metrics.samples was recorded for shared"},
	}, func(q *question) {
		q.kind, q.scope, q.from = "unchangedUpdates", check.Scope{Arm: arm, Phase: check.Fault}, "*"
		q.spec = `{"resource":"` + bundles + `","subresource":"status","atMost":2,"window":{"terminating":1}}`
		q.wanted = "at most 2 updates of " + bundles + "/status that changed nothing"
	})
	for spec, want := range map[string]string{
		`{"atMost":2}`:                             "resource is empty",
		`{"resource":"a","atMost":-1}`:             "atMost is -1 (want 0 or more)",
		`{"resource":"a","window":{"still":"0s"}}`: "window.still is 0s (want above 0)",
	} {
		refused(t, "unchangedUpdates", spec, want)
	}
}
