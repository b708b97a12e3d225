package kinds_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestStampMoves(t *testing.T) {
	const like = `{"component":"fleet-agent","moves":30,"gap":"10s","over":"1m"}`
	// watch has n rows of each object, so many seconds apart.
	watch := func(n, apart int, names ...string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			var rows []checktest.Said
			for i := range n {
				for _, name := range names {
					rows = append(rows, checktest.Said{Second: float64(100 + i), Message: fmt.Sprintf("%s %s", name, tr.At(float64(i*apart)).UTC().Format("2006-01-02T15:04:05Z"))})
				}
			}
			tr.Phases()
			tr.Log(checktest.Arm, "fleet-agent", 0, 394, rows...)
		}
	}
	logs := []bundle.Kind{bundle.Logs}
	checktest.Run(t, []checktest.Question{
		{Name: "it moves all the time", Fill: watch(60, 2, "a"), Met: check.True, Evidence: logs, Seen: "the stamp of a moves 59 times in a row over 1m58s", Detail: "a 20"},
		{Name: "too few moves", Fill: watch(20, 2, "a"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 19 times in a row over 38s", Detail: "a 20"},
		{Name: "slowly", Fill: watch(60, 300, "a"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 0 times", Detail: "a 20"},
		{Name: "one after the other's", Fill: watch(25, 2, "a", "b", "c"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 24 times", Detail: "a 20"},
		{Name: "no watch", Fill: watch(0, 1), Met: check.Unknown, Code: check.NotRecorded, Seen: "there is no watch"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Scope = "stampMoves", like, check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
	checktest.Refused(t, "stampMoves", `{"component":"","moves":30,"gap":"10s","over":"1m"}`, "component is empty")
}
