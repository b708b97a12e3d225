package check_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// The dumps are of real servers: spinning of one on dynamiclistener v0.3.3 that nobody has called, whose goroutine 273 spins, sleeping of one on v0.3.5.
// After an @ stands another id of the goroutine that spins.
func TestTheSameGoroutineIsReadyInEveryDump(t *testing.T) {
	spun := func(list ...any) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			for i := 0; i < len(list); i += 2 {
				name, id, other := strings.Cut(list[i+1].(string), "@")
				if other {
					tr.edited(list[i].(int), name, "goroutine 273 ", "goroutine "+id+" ")
				} else {
					tr.dump(arm, list[i].(int), name)
				}
			}
		}
	}
	const loop = `"func":"dynamiclistener.(*listener).WrapExpiration.func1"`
	three, persist := times(3, bundle.Goroutines2), `{`+loop+`,"state":"ready","same":true,"dumps":3,"persist":true}`
	run(t, []question{
		{name: "in a row", fill: spun(100, "spinning", 115, "spinning", 131, "spinning"), met: check.True, evidence: three, detail: "runtime.Gosched",
			wanted: "goroutine [ready] in dynamiclistener.(*listener).WrapExpiration.func1 in dumps in a row over 30s", seen: "in a row over 31s"},
		{name: "the first dump came too soon", fill: spun(100, "sleeping", 110, "spinning", 120, "spinning", 141, "spinning"), met: check.True,
			evidence: times(4, bundle.Goroutines2), detail: "[runnable]", seen: "3 of 4 dumps show it", differs: []string{"in that function, but [sleep] in time.Sleep"}},
		{name: "another one each time", fill: spun(100, "spinning", 115, "spinning@300", 131, "spinning@301"), met: check.False, evidence: three,
			detail: "goroutine 301 [runnable]", seen: "3 of 3 dumps show it, the last 1m31s after fault began, in a row over 0s"},
		{name: "every one", spec: persist, fill: spun(100, "spinning", 115, "spinning", 131, "spinning"), met: check.True, evidence: three, detail: "[runnable]", seen: "3 of 3 dumps show it, the last 1m31s after fault began; 1 goroutines are in all of them: [273]"},
		{name: "every one, and others", spec: persist, fill: spun(100, "spinning", 115, "spinning", 131, "spinning@300"), met: check.False, evidence: three,
			detail: "[runnable]", seen: "2 of 3", differs: []string{"10:02:11: 0 of those there are the same as before"}},
		{name: "asleep", fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"), met: check.False, evidence: three, seen: "0 of 3",
			differs: []string{"[sleep]", "[sleep]", "[sleep]"}},
		{name: "asleep is waiting", spec: strings.Replace(persist, "ready", "sleep", 1), fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"), met: check.False,
			evidence: three, seen: "0 of 3", differs: []string{"[sleep]", "[sleep]", "[sleep]"}},
		{name: "below its own call", spec: strings.Replace(persist, `"ready"`, `"sleep","depth":"any"`, 1), fill: spun(100, "sleeping", 115, "sleeping", 131, "sleeping"),
			met: check.True, evidence: three, seen: "3 of 3", detail: "time.Sleep"},
		{name: "compared with nothing", spec: `{"func":"f","state":"ready","same":true}`, fill: spun(), met: check.Unknown, wanted: "f",
			seen: "same is given without persist or span (want one: one dump has nothing to be the same as)"},
	}, func(q *question) {
		q.kind, q.spec = "goroutines", cmp.Or(q.spec, `{`+loop+`,"state":"ready","same":true,"dumps":3,"span":"30s"}`)
		q.scope = check.Scope{Arm: arm, Phase: check.Fault}
	})
}
