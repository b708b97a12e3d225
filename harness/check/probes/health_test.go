package probes_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestHealthy(t *testing.T) {
	health := []bundle.Kind{bundle.Health}
	of := func(arm string, fill func(*checktest.Trial, *bundle.Stream)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { tr.Phases(); fill(tr, tr.Stream(bundle.Health, arm)) }
	}
	steps := func(parts ...float64) func(*checktest.Trial, *bundle.Stream) { // from, to, code, …
		return func(tr *checktest.Trial, st *bundle.Stream) {
			for i := 0; i < len(parts); i += 3 {
				tr.Answered(st, "/readyz", parts[i], parts[i+1], int(parts[i+2]))
			}
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "well", Fill: of(checktest.Arm, steps(0, 394, 200)), Met: check.True, Seen: "15 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5", Evidence: health, Wanted: "/readyz answers 200 for the last 30s"},
		{Name: "well for long enough", Fill: of(checktest.Arm, steps(0, 362, 500, 364, 394, 200)), Met: check.True, Seen: "15 of 15", Evidence: health},
		{
			Name: "not well a moment ago", Fill: of(checktest.Arm, steps(0, 366, 500, 368, 394, 200)), Met: check.False, Seen: "14 of 15 answers", Evidence: health,
			Detail: "10:06:06: 500 etcd not ready", Differs: []string{"10:06:06: 500 etcd not ready"},
		},
		{
			Name: "no answer", Fill: of(checktest.Arm, steps(0, 380, 200, 382, 384, 0, 386, 394, 200)), Met: check.Unknown, Seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; the others say nothing", Evidence: health,
			Differs: []string{"10:06:22: no answer: timeout", "10:06:24"},
		},
		{
			Name: "no answer, and a bad one", Fill: of(checktest.Arm, steps(0, 380, 200, 382, 384, 0, 386, 386, 500, 388, 394, 200)), Met: check.False, Seen: "12 of 15", Evidence: health,
			Detail: "10:06:26: 500", Differs: []string{"no answer", "no answer", "500"},
		},
		{
			Name: "an answer that was under way when the stretch began is of it", Met: check.False, Seen: "of 16", Evidence: health, Detail: "500", Differs: []string{"10:06:02: 500"},
			Fill: of(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Must(st.JSON(bundle.HealthSample{Time: tr.At(362), Done: tr.At(366), Path: "/readyz", Code: 500}))
				tr.Answered(st, "/readyz", 366, 394, 200)
			}),
		},
		{
			Name: "one bad answer that is tolerated", Spec: `{"tolerate":"10%"}`, Fill: of(checktest.Arm, steps(0, 370, 200, 372, 372, 500, 374, 394, 200)), Met: check.True, Evidence: health,
			Seen:   "14 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5, and 1 of the others tolerated",
			Wanted: "/readyz answers 200 for the last 30s, but for 10% of the answers and no two in a row", Differs: []string{"10:06:12: 500 etcd not ready"},
		},
		{
			Name: "one that was not answered and is tolerated", Spec: `{"tolerate":"10%"}`, Fill: of(checktest.Arm, steps(0, 370, 200, 372, 372, 0, 374, 394, 200)), Met: check.True, Evidence: health,
			Seen: "14 of 15", Wanted: "10%", Differs: []string{"no answer"},
		},
		{
			Name: "two bad answers in a row", Spec: `{"tolerate":"20%"}`, Fill: of(checktest.Arm, steps(0, 370, 200, 372, 374, 500, 376, 394, 200)), Met: check.False, Evidence: health,
			Seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; two in a row are not", Wanted: "20%", Detail: "10:06:14: 500", Differs: []string{"500", "500"},
		},
		{
			Name: "two bad answers with a missing one between them", Spec: `{"tolerate":"50%"}`, Wanted: "50%", Met: check.False, Evidence: health,
			Fill: of(checktest.Arm, steps(0, 370, 200, 372, 372, 500, 374, 374, 0, 376, 376, 500, 378, 394, 200)), Seen: "12 of 15", Detail: "500", Differs: []string{"500", "no answer", "500"},
		},
		{
			Name: "two missing answers in a row say nothing", Spec: `{"tolerate":"20%"}`, Wanted: "20%", Met: check.Unknown, Evidence: health,
			Fill: of(checktest.Arm, steps(0, 370, 200, 372, 374, 0, 376, 394, 200)), Seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; the others say nothing", Differs: []string{"no answer", "no answer"},
		},
		{
			Name: "more bad answers than are tolerated", Spec: `{"tolerate":"10%"}`, Wanted: "10%", Met: check.False, Evidence: health,
			Fill: of(checktest.Arm, steps(0, 370, 200, 372, 372, 500, 374, 380, 200, 382, 382, 500, 384, 394, 200)),
			Seen: "13 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; 1 may be otherwise", Detail: "500", Differs: []string{"500", "500"},
		},
		{Name: "nothing is tolerated of a few", Spec: `{"tolerate":"10%","for":"15s"}`, Wanted: "10%", Met: check.False, Evidence: health, Seen: "7 of 8", Detail: "500", Differs: []string{"500"}, Fill: of(checktest.Arm, steps(0, 388, 200, 390, 390, 500, 392, 394, 200))},
		{Name: "a share that is none", Spec: `{"tolerate":"2"}`, Fill: of(checktest.Arm, steps()), Met: check.Unknown, Code: check.BadCheck, Seen: `tolerate is "2" (want a share: 5%)`},
		{Name: "half and more", Spec: `{"tolerate":"51%"}`, Wanted: "51%", Fill: of(checktest.Arm, steps()), Met: check.Unknown, Code: check.BadCheck, Seen: "tolerate is 51% (want 0% to 50%)"},
		{Name: "another path", Fill: of(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) { tr.Answered(st, "/livez", 0, 394, 200) }), Met: check.Unknown, Seen: "there are no answers of /readyz in 10:04:55.0", Evidence: health},
		{
			Name: "another path's failure is no matter", Met: check.True, Seen: "15 of 15", Evidence: health,
			Fill: of(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Answered(st, "/readyz", 0, 394, 200)
				tr.Answered(st, "/livez", 0, 394, 500)
			}),
		},
		{
			Name: "well, with a gap", Met: check.Unknown, Code: check.Gap, Seen: "15 of 15 answers of /readyz are well in 10:06:04.5 to 10:06:34.5; health of vulnerable does not cover", Evidence: health,
			Fill: of(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Answered(st, "/readyz", 0, 394, 200)
				st.Gap(tr.At(375), tr.At(386), "exec failed")
			}),
		},
		{
			Name: "not well is not well, whatever the gap", Met: check.False, Seen: "0 of 15", Evidence: health, Detail: "500", Differs: []string{"500", "500", "… and 11 more", "500", "500"},
			Fill: of(checktest.Arm, func(tr *checktest.Trial, st *bundle.Stream) {
				tr.Answered(st, "/readyz", 0, 394, 500)
				st.Gap(tr.At(375), tr.At(386), "exec failed")
			}),
		},
		{Name: "nobody looked in the end", Fill: of(checktest.Arm, steps(0, 380, 200)), Met: check.Unknown, Code: check.Gap, Seen: "does not cover", Evidence: health},
		{
			Name: "not well when somebody looked last", Fill: of(checktest.Arm, steps(0, 340, 500)), Met: check.Unknown, Code: check.Gap, Seen: "0 of 15 answers of /readyz are well in 10:05:10.5 to 10:05:40.5; health of vulnerable does not cover",
			Evidence: health, Differs: []string{"500", "500", "… and 11 more", "500", "500"},
		},
		{
			Name: "not well within the stretch, and nobody looked in the end", Fill: of(checktest.Arm, steps(0, 374, 500)), Met: check.False, Seen: "0 of 15", Evidence: health,
			Detail: "500", Differs: []string{"500", "500", "… and 11 more", "500", "500"},
		},
		{
			Name: "nobody looked for a while, and the stream doesn't say so", Met: check.Unknown, Seen: "there are no answers of /readyz in 10:06:06.5 to 10:06:30.0", Evidence: health,
			Fill: of(checktest.Arm, steps(0, 366, 200, 390, 394, 200)),
		},
		{Name: "a phase that is too short", Spec: `{"for":"2m"}`, Fill: of(checktest.Arm, steps(0, 394, 200)), Wanted: "for the last 2m", Met: check.Unknown, Seen: "that is 1m39.5s only", Evidence: health},
		{Name: "the other arm", Fill: of(checktest.Other, steps(0, 394, 200)), Met: check.Unknown, Code: check.NotRecorded, Seen: "no health was recorded for vulnerable"},
		{Name: "a missing file", Fill: of(checktest.Arm, steps(0, 394, 200)), Damage: checktest.Remove(t, bundle.Health), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{Name: "no path", Spec: `{"path":"readyz"}`, Fill: of(checktest.Arm, steps()), Wanted: "readyz", Met: check.Unknown, Code: check.BadCheck, Seen: `path is "readyz" (want one that begins with a slash`},
		{Name: "no stretch", Spec: `{"for":"0s"}`, Fill: of(checktest.Arm, steps()), Wanted: "0s", Met: check.Unknown, Code: check.BadCheck, Seen: "for is 0s (want above 0)"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "healthy", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, `{"path":"/readyz","for":"30s"}`, q.Spec)
	})
}
