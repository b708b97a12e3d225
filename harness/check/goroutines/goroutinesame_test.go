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
