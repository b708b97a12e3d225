package kinds_test

import (
	"fmt"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestStampMoves(t *testing.T) {
	const like = `{"component":"fleet-agent","resource":"bundledeployments.fleet.cattle.io","moves":30,"gap":"10s","over":"1m"}`
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
	// list has rows of many objects with one name, or of one of them twice.
	list := func(name func(i int) string, second func(i int) int) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			var rows []checktest.Said
			for i := range 200 {
				rows = append(rows, checktest.Said{Second: float64(100 + i), Message: fmt.Sprintf("%s %s", name(i), tr.At(float64(second(i))).UTC().Format("2006-01-02T15:04:05Z"))})
			}
			tr.Phases()
			tr.Log(checktest.Arm, "fleet-agent", 0, 394, rows...)
		}
	}
	a := func(int) string { return "a" }
	logs := []bundle.Kind{bundle.Logs}
	checktest.Run(t, []checktest.Question{
		{Name: "it moves all the time", Fill: watch(60, 2, "a"), Met: check.True, Evidence: logs, Seen: "the stamp of a moves 59 times in a row over 1m58s", Detail: "a 20"},
		{Name: "too few moves", Fill: watch(20, 2, "a"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 19 times in a row over 38s", Detail: "a 20"},
		{Name: "slowly", Fill: watch(60, 300, "a"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 0 times", Detail: "a 20"},
		{Name: "one after the other's", Fill: watch(25, 2, "a", "b", "c"), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 24 times", Detail: "a 20"},
		{Name: "many objects with one name", Fill: list(a, func(i int) int { return i * 79 % 200 }), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "the stamp of a goes back: its rows are of several objects", Detail: "a 20"},
		{Name: "and one beside them", Fill: list(func(i int) string { return []string{"a", "n/b"}[i%2] }, func(i int) int { return []int{i * 79 % 200, i}[i%2] }), Met: check.True, Evidence: logs, Seen: "the stamp of n/b moves 99 times", Detail: "n/b 20"},
		{Name: "of many namespaces, each once", Fill: list(func(i int) string { return fmt.Sprintf("n%d/a", i) }, func(i int) int { return i }), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 0 times", Detail: "n0/a 20"},
		{Name: "each row five times", Fill: list(a, func(i int) int { return i / 10 * 10 }), Met: check.Unknown, Code: check.NotConclusive, Evidence: logs, Seen: "moves 19 times", Detail: "a 20"},
		{Name: "no watch", Fill: watch(0, 1), Met: check.Unknown, Code: check.NotRecorded, Seen: "there is no watch"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Scope = "stampMoves", like, check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
	checktest.Refused(t, "stampMoves", `{"component":"","resource":"r","moves":30,"gap":"10s","over":"1m"}`, "component is empty")
	checktest.Refused(t, "stampMoves", `{"component":"c","resource":"","moves":30,"gap":"10s","over":"1m"}`, "resource is empty")
}
