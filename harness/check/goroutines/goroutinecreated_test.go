package goroutines_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// What a cure's goroutine runs may have any name. Who started it tells which it is.
func TestGoroutinesByTheirCreator(t *testing.T) {
	const module = "github.com/rancher/dynamiclistener"
	dumped := func(state, runs, creator string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			text := "goroutine 1 [select, 9 minutes]:\nmain.main()\n\t/main.go:1 +0x1\n\n" +
				fmt.Sprintf("goroutine 31 [%s]:\n%s(0x1)\n\t/listener.go:7 +0x59\ncreated by %s in goroutine 7\n\t/listener.go:5 +0x76\n\n", state, runs, creator)
			for _, s := range []float64{300, 330, 360} {
				_, err := tr.W.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: checktest.Arm, Time: tr.At(s)}, "txt", strings.NewReader(text))
				tr.Must(err)
			}
		}
	}
	real := func(name string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for _, s := range []int{300, 330, 360} {
				tr.Dump(checktest.Arm, s, name)
			}
		}
	}
	three := checktest.Times(3, bundle.Goroutines2)
	const wrap = module + ".(*listener).WrapExpiration"
	questions := []checktest.Question{
		{Name: "of another package", Fill: dumped("select", module+"/server.wait", module+"/server.ListenAndServe"), Met: check.False, Seen: "0 of 3 dumps show it", Evidence: three},
		{Name: "of nobody", Fill: dumped("select", wrap+".func1", "net/http.(*Server).Serve"), Met: check.False, Seen: "0 of 3 dumps show it", Evidence: three},
		{
			Name: "in another state", Fill: dumped("sleep", wrap+".func1", wrap), Met: check.False, Seen: "0 of 3 dumps show it", Evidence: three,
			Differs: []string{"of that creator, but [sleep] in " + wrap + ".func1", "[sleep]", "[sleep]"},
		},
		{
			Name: "a real one that sleeps", Fill: real("sleeping"), Met: check.False, Seen: "0 of 3 dumps show it", Evidence: three,
			Differs: []string{"of that creator, but [sleep] in time.Sleep", "[sleep]", "[sleep]"},
		},
		{
			Name: "a real one, whatever it does", Spec: `"state":"any","dumps":3,"span":"40s"`, Fill: real("sleeping"), Met: check.True, Seen: "3 of 3 dumps show it", Evidence: three,
			Detail: "created by " + wrap,
		},
		{
			Name: "a real one that spins", Spec: `"state":"ready","depth":"any","same":true,"dumps":3,"persist":true`, Fill: real("spinning"), Met: check.True,
			Seen: "1 goroutines are in all of them: [273]", Evidence: three, Detail: "runtime.Gosched",
		},
		{Name: "its own function, too", Spec: `"state":"select","func":"dynamiclistener.(*listener).watch"`, Fill: dumped("select", module+".(*listener).watch", wrap), Met: check.True,
			Seen: "3 of 3", Evidence: three, Detail: "watch", Wanted: "dynamiclistener.(*listener).watch, created by " + module + "."},
		{Name: "nothing on top", Spec: `"state":"ready"`, Fill: dumped("select", "f", wrap), Met: check.Unknown, Code: check.BadCheck, Seen: "func is empty and state is ready (want depth any"},
	}
	for _, runs := range []string{".(*listener).watchExpiration", ".(*listener).WrapExpiration.func1", ".(*listener).WrapExpiration.func2", ".(*listener).WrapExpiration.gowrap1", ".watch"} {
		questions = append(questions, checktest.Question{Name: "it runs " + runs, Fill: dumped("select", module+runs, wrap), Met: check.True, Seen: "3 of 3 dumps show it",
			Detail: module + runs, Evidence: three})
	}
	checktest.Run(t, questions, func(q *checktest.Question) {
		q.Kind, q.Scope = "goroutines", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = `{"createdBy":"` + module + `.",` + cmp.Or(q.Spec, `"state":"select"`) + `}`
		q.Wanted = cmp.Or(q.Wanted, "in any function, created by "+module+".")
	})
}
