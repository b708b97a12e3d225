package check_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What a cure's goroutine runs may have any name. Who started it tells which it is.
func TestGoroutinesByTheirCreator(t *testing.T) {
	const module = "github.com/rancher/dynamiclistener"
	dumped := func(state, runs, creator string) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			text := "goroutine 1 [select, 9 minutes]:\nmain.main()\n\t/main.go:1 +0x1\n\n" +
				fmt.Sprintf("goroutine 31 [%s]:\n%s(0x1)\n\t/listener.go:7 +0x59\ncreated by %s in goroutine 7\n\t/listener.go:5 +0x76\n\n", state, runs, creator)
			for _, s := range []float64{300, 330, 360} {
				_, err := tr.w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: arm, Time: tr.at(s)}, "txt", strings.NewReader(text))
				tr.must(err)
			}
		}
	}
	real := func(name string) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			for _, s := range []int{300, 330, 360} {
				tr.dump(arm, s, name)
			}
		}
	}
	three := times(3, bundle.Goroutines2)
	const wrap = module + ".(*listener).WrapExpiration"
	questions := []question{
		{name: "of another package", fill: dumped("select", module+"/server.wait", module+"/server.ListenAndServe"), met: check.False, seen: "0 of 3 dumps show it", evidence: three},
		{name: "of nobody", fill: dumped("select", wrap+".func1", "net/http.(*Server).Serve"), met: check.False, seen: "0 of 3 dumps show it", evidence: three},
		{
			name: "in another state", fill: dumped("sleep", wrap+".func1", wrap), met: check.False, seen: "0 of 3 dumps show it", evidence: three,
			differs: []string{"of that creator, but [sleep] in " + wrap + ".func1", "[sleep]", "[sleep]"},
		},
		{
			name: "a real one that sleeps", fill: real("sleeping"), met: check.False, seen: "0 of 3 dumps show it", evidence: three,
			differs: []string{"of that creator, but [sleep] in time.Sleep", "[sleep]", "[sleep]"},
		},
		{
			name: "a real one, whatever it does", spec: `"state":"any","dumps":3,"span":"40s"`, fill: real("sleeping"), met: check.True, seen: "3 of 3 dumps show it", evidence: three,
			detail: "created by " + wrap,
		},
		{
			name: "a real one that spins", spec: `"state":"ready","depth":"any","same":true,"dumps":3,"persist":true`, fill: real("spinning"), met: check.True,
			seen: "1 goroutines are in all of them: [273]", evidence: three, detail: "runtime.Gosched",
		},
		{name: "its own function, too", spec: `"state":"select","func":"dynamiclistener.(*listener).watch"`, fill: dumped("select", module+".(*listener).watch", wrap), met: check.True,
			seen: "3 of 3", evidence: three, detail: "watch", wanted: "dynamiclistener.(*listener).watch, created by " + module + "."},
		{name: "nothing on top", spec: `"state":"ready"`, fill: dumped("select", "f", wrap), met: check.Unknown, seen: "func is empty and state is ready (want depth any"},
	}
	for _, runs := range []string{".(*listener).watchExpiration", ".(*listener).WrapExpiration.func1", ".(*listener).WrapExpiration.func2", ".(*listener).WrapExpiration.gowrap1", ".watch"} {
		questions = append(questions, question{name: "it runs " + runs, fill: dumped("select", module+runs, wrap), met: check.True, seen: "3 of 3 dumps show it",
			detail: module + runs, evidence: three})
	}
	run(t, questions, func(q *question) {
		q.kind, q.scope = "goroutines", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = `{"createdBy":"` + module + `.",` + cmp.Or(q.spec, `"state":"select"`) + `}`
		q.wanted = cmp.Or(q.wanted, "in any function, created by "+module+".")
	})
}
