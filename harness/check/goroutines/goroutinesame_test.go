package goroutines_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// The dumps are of real servers: spinning of one on dynamiclistener v0.3.3 that nobody has called, whose goroutine 273
// spins, sleeping of one on v0.3.5. After an @ stands another id of the goroutine that spins.
func TestTheSameGoroutineIsReadyInEveryDump(t *testing.T) {
	spun := func(list ...any) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for i := 0; i < len(list); i += 2 {
				name, id, other := strings.Cut(list[i+1].(string), "@")
				if other {
					tr.Edited(list[i].(int), name, "goroutine 273 ", "goroutine "+id+" ")
				} else {
					tr.Dump(checktest.Arm, list[i].(int), name)
				}
			}
		}
	}
	const loop = `"func":"dynamiclistener.(*listener).WrapExpiration.func1"`
	three, persist := checktest.Times(3, bundle.Goroutines2), `{`+loop+`,"state":"ready","same":true,"dumps":3,"persist":true}`
	checktest.Run(t, []checktest.Question{
		{Name: "in a row", Fill: spun(100, "spinning", 115, "spinning", 131, "spinning"), Met: check.True, Evidence: three, Detail: "runtime.Gosched",
			Wanted: "goroutine [ready] in dynamiclistener.(*listener).WrapExpiration.func1 in dumps in a row over 30s", Seen: "in a row over 31s"},
		{Name: "the first dump came too soon", Fill: spun(100, "sleeping", 110, "spinning", 120, "spinning", 141, "spinning"), Met: check.True,
			Evidence: checktest.Times(4, bundle.Goroutines2), Detail: "[runnable]", Seen: "3 of 4 dumps show it", Differs: []string{"in that function, but [sleep] in time.Sleep"}},
		{Name: "another one each time", Fill: spun(100, "spinning", 115, "spinning@300", 131, "spinning@301"), Met: check.False, Evidence: three,
			Detail: "goroutine 301 [runnable]", Seen: "3 of 3 dumps show it, the last 1m31s after fault began, in a row over 0s"},
		{Name: "every one", Spec: persist, Fill: spun(100, "spinning", 115, "spinning", 131, "spinning"), Met: check.True, Evidence: three, Detail: "[runnable]", Seen: "3 of 3 dumps show it, the last 1m31s after fault began; 1 goroutines are in all of them: [273]"},
		{Name: "every one, and others", Spec: persist, Fill: spun(100, "spinning", 115, "spinning", 131, "spinning@300"), Met: check.False, Evidence: three,
			Detail: "[runnable]", Seen: "2 of 3", Differs: []string{"10:02:11: 0 of those there are the same as before"}},
		{Name: "asleep", Fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"), Met: check.False, Evidence: three, Seen: "0 of 3",
			Differs: []string{"[sleep]", "[sleep]", "[sleep]"}},
		{Name: "asleep is waiting", Spec: strings.Replace(persist, "ready", "sleep", 1), Fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"), Met: check.False,
			Evidence: three, Seen: "0 of 3", Differs: []string{"[sleep]", "[sleep]", "[sleep]"}},
		{Name: "below its own call", Spec: strings.Replace(persist, `"ready"`, `"sleep","depth":"any"`, 1), Fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"),
			Met: check.True, Evidence: three, Seen: "3 of 3", Detail: "time.Sleep"},
		{Name: "compared with nothing", Spec: `{"func":"f","state":"ready","same":true}`, Fill: spun(), Met: check.Unknown, Wanted: "f",
			Seen: "same is given without persist or span (want one: one dump has nothing to be the same as)"},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec = "goroutines", cmp.Or(q.Spec, `{`+loop+`,"state":"ready","same":true,"dumps":3,"span":"30s"}`)
		q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
	})
}

// A fault that ends the subject's process between two dumps leaves nothing that lasts from the one to the other.
func TestGoroutinesOfTwoProcesses(t *testing.T) {
	ended := func(at float64, list ...any) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			for i := 0; i < len(list); i += 2 {
				tr.Dump(checktest.Arm, list[i].(int), list[i+1].(string))
			}
			tr.Process(checktest.Arm, 7, 0, at)
			of := tr.W.View().Artifacts(bundle.Query{Kind: bundle.Identity, Arm: checktest.Arm})[0]
			_, err := tr.W.WriteJSON(bundle.Meta{Kind: bundle.EndedProcess, Arm: of.Arm, Node: of.Node, Component: of.Component, Time: tr.At(at)},
				bundle.EndedByFault{Time: tr.At(at), Fault: "kill", PID: 7, StartTicks: 1007})
			tr.Must(err)
		}
	}
	const loop = `"func":"dynamiclistener.(*listener).WrapExpiration.func1","state":"ready","dumps":3`
	const joined = "; kill ended process 7 at 10:02:00, between two of the dumps, and goroutines of two processes are not one"
	three := checktest.Times(3, bundle.Goroutines2)
	withEnd := append(checktest.Times(3, bundle.Goroutines2), bundle.EndedProcess)
	checktest.Run(t, []checktest.Question{
		{Name: "every one", Spec: `{` + loop + `,"persist":true}`, Fill: ended(120, 100, "spinning", 115, "spinning", 131, "spinning"), Met: check.Unknown, Code: check.OtherProcess,
			Evidence: withEnd, Detail: "[runnable]", Seen: joined},
		{Name: "the same", Spec: `{` + loop + `,"persist":true,"same":true}`, Fill: ended(120, 100, "spinning", 115, "spinning", 131, "spinning"), Met: check.Unknown, Code: check.OtherProcess,
			Evidence: withEnd, Detail: "[runnable]", Seen: joined},
		{Name: "in a row", Spec: `{` + loop + `,"span":"30s"}`, Fill: ended(120, 100, "spinning", 115, "spinning", 131, "spinning"), Met: check.Unknown, Code: check.OtherProcess,
			Evidence: withEnd, Detail: "[runnable]", Seen: "in a row over 15s" + joined},
		{Name: "in a row after it", Spec: `{` + loop + `,"span":"30s"}`, Fill: ended(102, 100, "spinning", 115, "spinning", 146, "spinning"), Met: check.True,
			Evidence: three, Detail: "[runnable]", Seen: "in a row over 31s"},
		{Name: "ended before the dumps", Spec: `{` + loop + `,"persist":true}`, Fill: ended(95, 100, "spinning", 115, "spinning", 131, "spinning"), Met: check.True,
			Evidence: three, Detail: "[runnable]", Seen: "3 of 3"},
		{Name: "in neither process", Spec: `{` + loop + `,"persist":true}`, Fill: ended(120, 100, "sleeping", 115, "sleeping", 131, "sleeping"), Met: check.False,
			Evidence: three, Seen: "0 of 3", Differs: []string{"[sleep]", "[sleep]", "[sleep]"}},
		{Name: "one is enough", Spec: `{` + loop + `}`, Fill: ended(120, 100, "spinning", 115, "spinning", 131, "spinning"), Met: check.True,
			Evidence: three, Detail: "[runnable]", Seen: "3 of 3"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "goroutines", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Wanted = cmp.Or(q.Wanted, "goroutine")
	})
}
