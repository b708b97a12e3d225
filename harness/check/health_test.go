package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestHealthy(t *testing.T) {
	health := []bundle.Kind{bundle.Health}
	of := func(arm string, fill func(*trial, *bundle.Stream)) func(*trial) {
		return func(tr *trial) { tr.phases(); fill(tr, tr.stream(bundle.Health, arm)) }
	}
	steps := func(parts ...float64) func(*trial, *bundle.Stream) { // from, to, code, …
		return func(tr *trial, st *bundle.Stream) {
			for i := 0; i < len(parts); i += 3 {
				tr.answered(st, "/readyz", parts[i], parts[i+1], int(parts[i+2]))
			}
		}
	}
	run(t, []question{
		{name: "well", fill: of(arm, steps(0, 394, 200)), met: check.True, seen: "15 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5", evidence: health, wanted: "/readyz answers 200 for the last 30s"},
		{name: "well for long enough", fill: of(arm, steps(0, 362, 500, 364, 394, 200)), met: check.True, seen: "15 of 15", evidence: health},
		{
			name: "not well a moment ago", fill: of(arm, steps(0, 366, 500, 368, 394, 200)), met: check.False, seen: "14 of 15 answers", evidence: health,
			detail: "10:06:06: 500 etcd not ready", differs: []string{"10:06:06: 500 etcd not ready"},
		},
		{
			name: "no answer", fill: of(arm, steps(0, 380, 200, 382, 384, 0, 386, 394, 200)), met: check.Unknown, seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; the others say nothing", evidence: health,
			differs: []string{"10:06:22: no answer: timeout", "10:06:24"},
		},
		{
			name: "no answer, and a bad one", fill: of(arm, steps(0, 380, 200, 382, 384, 0, 386, 386, 500, 388, 394, 200)), met: check.False, seen: "12 of 15", evidence: health,
			detail: "10:06:26: 500", differs: []string{"no answer", "no answer", "500"},
		},
		{
			name: "an answer that was under way when the stretch began is of it", met: check.False, seen: "of 16", evidence: health, detail: "500", differs: []string{"10:06:02: 500"},
			fill: of(arm, func(tr *trial, st *bundle.Stream) {
				tr.must(st.JSON(bundle.HealthSample{Time: tr.at(362), Done: tr.at(366), Path: "/readyz", Code: 500}))
				tr.answered(st, "/readyz", 366, 394, 200)
			}),
		},
		{
			name: "one bad answer that is tolerated", spec: `{"tolerate":"10%"}`, fill: of(arm, steps(0, 370, 200, 372, 372, 500, 374, 394, 200)), met: check.True, evidence: health,
			seen:   "14 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5, and 1 of the others tolerated",
			wanted: "/readyz answers 200 for the last 30s, but for 10% of the answers and no two in a row", differs: []string{"10:06:12: 500 etcd not ready"},
		},
		{
			name: "one that was not answered and is tolerated", spec: `{"tolerate":"10%"}`, fill: of(arm, steps(0, 370, 200, 372, 372, 0, 374, 394, 200)), met: check.True, evidence: health,
			seen: "14 of 15", wanted: "10%", differs: []string{"no answer"},
		},
		{
			name: "two bad answers in a row", spec: `{"tolerate":"20%"}`, fill: of(arm, steps(0, 370, 200, 372, 374, 500, 376, 394, 200)), met: check.False, evidence: health,
			seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; two in a row are not", wanted: "20%", detail: "10:06:14: 500", differs: []string{"500", "500"},
		},
		{
			name: "two bad answers with a missing one between them", spec: `{"tolerate":"50%"}`, wanted: "50%", met: check.False, evidence: health,
			fill: of(arm, steps(0, 370, 200, 372, 372, 500, 374, 374, 0, 376, 376, 500, 378, 394, 200)), seen: "12 of 15", detail: "500", differs: []string{"500", "no answer", "500"},
		},
		{
			name: "two missing answers in a row say nothing", spec: `{"tolerate":"20%"}`, wanted: "20%", met: check.Unknown, evidence: health,
			fill: of(arm, steps(0, 370, 200, 372, 374, 0, 376, 394, 200)), seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; the others say nothing", differs: []string{"no answer", "no answer"},
		},
		{
			name: "more bad answers than are tolerated", spec: `{"tolerate":"10%"}`, wanted: "10%", met: check.False, evidence: health,
			fill: of(arm, steps(0, 370, 200, 372, 372, 500, 374, 380, 200, 382, 382, 500, 384, 394, 200)),
			seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; 1 may be otherwise", detail: "500", differs: []string{"500", "500"},
		},
		{name: "nothing is tolerated of a few", spec: `{"tolerate":"10%","for":"15s"}`, wanted: "10%", met: check.False, evidence: health, seen: "7 of 8", detail: "500", differs: []string{"500"}, fill: of(arm, steps(0, 388, 200, 390, 390, 500, 392, 394, 200))},
		{name: "a share that is none", spec: `{"tolerate":"2"}`, fill: of(arm, steps()), met: check.Unknown, seen: `tolerate is "2" (want a share: 5%)`},
		{name: "half and more", spec: `{"tolerate":"51%"}`, wanted: "51%", fill: of(arm, steps()), met: check.Unknown, seen: "tolerate is 51% (want 0% to 50%)"},
		{name: "another path", fill: of(arm, func(tr *trial, st *bundle.Stream) { tr.answered(st, "/livez", 0, 394, 200) }), met: check.Unknown, seen: "there are no answers of /readyz in 10:04:55.0", evidence: health},
		{
			name: "another path's failure is no matter", met: check.True, seen: "15 of 15", evidence: health,
			fill: of(arm, func(tr *trial, st *bundle.Stream) {
				tr.answered(st, "/readyz", 0, 394, 200)
				tr.answered(st, "/livez", 0, 394, 500)
			}),
		},
		{
			name: "well, with a gap", met: check.Unknown, seen: "15 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; health of vulnerable does not cover", evidence: health,
			fill: of(arm, func(tr *trial, st *bundle.Stream) {
				tr.answered(st, "/readyz", 0, 394, 200)
				st.Gap(tr.at(375), tr.at(386), "exec failed")
			}),
		},
		{
			name: "not well is not well, whatever the gap", met: check.False, seen: "0 of 15", evidence: health, detail: "500", differs: []string{"500", "500", "… and 11 more", "500", "500"},
			fill: of(arm, func(tr *trial, st *bundle.Stream) {
				tr.answered(st, "/readyz", 0, 394, 500)
				st.Gap(tr.at(375), tr.at(386), "exec failed")
			}),
		},
		{name: "nobody looked in the end", fill: of(arm, steps(0, 380, 200)), met: check.Unknown, seen: "does not cover", evidence: health},
		{
			name: "nobody looked for a while, and the stream doesn't say so", met: check.Unknown, seen: "there are no answers of /readyz in 10:06:06.5 to 10:06:30.0", evidence: health,
			fill: of(arm, steps(0, 366, 200, 390, 394, 200)),
		},
		{name: "a phase that is too short", spec: `{"for":"2m"}`, fill: of(arm, steps(0, 394, 200)), wanted: "for the last 2m", met: check.Unknown, seen: "that is 1m39.5s only", evidence: health},
		{name: "the other arm", fill: of(other, steps(0, 394, 200)), met: check.Unknown, seen: "no health was recorded for vulnerable"},
		{name: "a missing file", fill: of(arm, steps(0, 394, 200)), damage: remove(t, bundle.Health), met: check.Unknown, seen: "is missing"},
		{name: "no path", spec: `{"path":"readyz"}`, fill: of(arm, steps()), wanted: "readyz", met: check.Unknown, seen: `path is "readyz" (want one that begins with a slash`},
		{name: "no stretch", spec: `{"for":"0s"}`, fill: of(arm, steps()), wanted: "0s", met: check.Unknown, seen: "for is 0s (want above 0)"},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "healthy", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, `{"path":"/readyz","for":"30s"}`, q.spec)
	})
}
