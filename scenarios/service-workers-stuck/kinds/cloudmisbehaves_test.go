package kinds_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	own "github.com/kube-relapse/relapse/scenarios/service-workers-stuck/kinds"
)

func TestCloudMisbehavesRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`:                             "",
		`{"how":"slow","delay":"2s"}`:    "",
		`{"how":"close"}`:                "",
		`{"how":"error","code":503}`:     "",
		`{"how":"dance"}`:                `how is "dance" (want hang, slow, close or error)`,
		`{"path":"/pools"}`:              `path is "/pools" (want a part of /octavia/v2.0/lbaas/loadbalancers, by which the fault is seen)`,
		`{"path":""}`:                    `path is "" (want a part of /octavia/v2.0/lbaas/loadbalancers, by which the fault is seen)`,
		`{"how":"slow","delay":"500ms"}`: "how is slow and delay is 500ms (want at least 1s for slow, and nothing else)",
		`{"how":"hang","delay":"2s"}`:    "how is hang and delay is 2s (want at least 1s for slow, and nothing else)",
		`{"how":"error"}`:                "how is error and code is 0 (want 400 to 599 for error, and nothing else)",
		`{"how":"close","code":503}`:     "how is close and code is 503 (want 400 to 599 for error, and nothing else)",
	} {
		f, err := kinds.Decode[fault.Fault](kinds.Fault, "cloudMisbehaves", json.RawMessage(spec))
		if err == nil {
			err = f.(*own.CloudMisbehaves).Validate()
		}
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%s: %s, want %q", spec, got, want)
			}
		} else if want != "" {
			t.Errorf("%s is not refused, want %q", spec, want)
		} else if needs := f.Needs(); !slices.Equal(needs.Seams, []string{"lbaas"}) {
			t.Errorf("%s needs %+v", spec, needs)
		}
	}
}
