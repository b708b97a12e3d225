package goroutines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestLeafCount(t *testing.T) {
	const like = `{"func":"registry.(*Store).DeleteCollection","atLeast":20,"closures":true}`
	of := func(counts ...int) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for i, n := range counts {
				text := fmt.Sprintf("goroutine profile: total %d\n%d @ 0x1 0x2\n"+
					"#\t0x2\tk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1+0x1\t/store.go:1101\n\n"+
					"3 @ 0x1 0x3\n#\t0x4\tmain.serve+0x1\t/m.go:1\n#\t0x2\tk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection.func1+0x1\t/store.go:1\n\n", n+3, n)
				_, err := tr.W.Write(bundle.Meta{Kind: bundle.Goroutines1, Arm: checktest.Arm, Time: tr.At(float64(120 + 10*i))}, "txt", strings.NewReader(text))
				tr.Must(err)
			}
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "as many", Spec: like, Fill: of(20), Met: check.True, Evidence: checktest.Times(1, bundle.Goroutines1), Seen: "at most 20 goroutines have it on top, in 1 profiles", Detail: "DeleteCollection.func1"},
		{Name: "in one of several", Spec: like, Fill: of(2, 21), Met: check.True, Evidence: checktest.Times(2, bundle.Goroutines1), Seen: "at most 21", Detail: "DeleteCollection.func1"},
		{Name: "too few", Spec: like, Fill: of(19), Met: check.False, Evidence: checktest.Times(1, bundle.Goroutines1), Seen: "at most 19", Detail: "DeleteCollection.func1"},
		{Name: "without closures", Spec: strings.Replace(like, "true", "false", 1), Fill: of(20), Met: check.False, Evidence: checktest.Times(1, bundle.Goroutines1), Seen: "at most 0"},
		{
			Name: "a capture failed that might have shown more", Spec: like, Met: check.Unknown, Code: check.Unreadable, Evidence: checktest.Times(1, bundle.Goroutines1),
			Seen: "at most 19 goroutines have it on top, in 1 profiles; what those that failed would have shown isn't known", Detail: "DeleteCollection.func1",
			Differs: []string{"the profile of 10:02:20 failed: connection refused"},
			Fill: func(tr *checktest.Trial) {
				of(19)(tr)
				tr.Fail(bundle.Goroutines1, checktest.Arm, 140, "connection refused")
			},
		},
		{Name: "no profile", Spec: like, Fill: of(), Met: check.Unknown, Code: check.NotRecorded, Seen: "in 0 profiles"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "leafCount", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
	checktest.Refused(t, "leafCount", `{"func":"","atLeast":1}`, "func is empty")
}
