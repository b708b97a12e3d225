package check_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
)

func TestNothingStuck(t *testing.T) {
	// dumped is one process and its debug=2 dumps: of a shot, ids 101, 102, … are blocked in a send.
	dumped := func(shots ...shot) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			tr.process(arm, 312, 0, 394)
			for _, s := range shots {
				if s.lacks == "" {
					s.lacks = "1" // this check reads no debug=1
				}
				tr.shoot(arm, s)
			}
		}
	}
	cut := func(s shot) shot { s.lacks = "~2"; return s }
	four := []bundle.Kind{bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2}
	questions := []question{
		{
			name: "none is blocked", fill: dumped(leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.Met, evidence: four,
			seen: "3 dumps, and 1 of the baseline; 0 goroutines stay blocked", wanted: "no goroutine [chan send] in each of the last 3 dumps",
		},
		{
			name: "what was blocked in the baseline is normal", fill: dumped(leaks(25, 2), leaks(300, 2), leaks(330, 2), leaks(360, 2)), met: check.Met,
			seen: "0 goroutines stay blocked", evidence: four,
		},
		{
			name: "two more than in the baseline", fill: dumped(leaks(25, 1), leaks(300, 3), leaks(330, 3), leaks(360, 3)), met: check.NotMet,
			seen: "2 goroutines stay blocked", evidence: four, detail: "registry.(*Store).DeleteCollection.func1",
		},
		{
			name: "others in each dump are at work", met: check.Met, evidence: four,
			fill: dumped(leaks(25, 0), shot{second: 300, leaked: []int{7}}, shot{second: 330, leaked: []int{8}}, shot{second: 360, leaked: []int{9}}),
			seen: "0 goroutines stay blocked",
		},
		{
			name: "no dump of the baseline", fill: dumped(leaks(300, 0), leaks(330, 0), leaks(360, 0)), met: check.Unknown,
			seen: "3 dumps, and 0 of the baseline: nothing to compare with", evidence: four[:3],
		},
		{
			name: "two dumps are too few", fill: dumped(leaks(25, 0), leaks(330, 0), leaks(360, 0)), met: check.Unknown,
			seen: "the last 1m5s after recovery began: too few to answer by", evidence: four[:3],
		},
		{
			name: "the last one is too early", fill: dumped(leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(350, 0)), met: check.Unknown,
			seen: "the last 55s after recovery began: too few", evidence: four,
		},
		{
			name: "a cut dump could have shown more", fill: dumped(leaks(25, 0), cut(leaks(300, 0)), leaks(310, 0), leaks(330, 0), leaks(360, 0)),
			met: check.Unknown, seen: "is cut short", evidence: four,
		},
		{
			name: "a restart takes away what was blocked", met: check.Unknown, seen: "the process was not the same any more at 10:02:00", evidence: four,
			fill: func(tr *trial) {
				tr.phases()
				st := tr.process(arm, 312, 0, 118)
				tr.lookAt(st, 999, 120, 394)
				for _, s := range []shot{leaks(25, 0), leaks(300, 0), leaks(330, 0), leaks(360, 0)} {
					s.lacks = "1"
					tr.shoot(arm, s)
				}
			},
		},
		{
			name: "the baseline has not ended", met: check.Unknown, seen: "the baseline, which it is compared with, has not ended",
			fill: func(tr *trial) {
				tr.enter(0, check.Steady)
				tr.enter(20, check.Recovery)
				tr.enter(30, bundle.EndPhase)
			},
		},
	}
	run(t, questions, func(q *question) {
		q.kind, q.spec = "nothingStuck", `{"states":["chan send"],"dumps":3,"lastAfter":"60s"}`
		q.scope = check.Scope{Cell: arm, Phase: check.Recovery}
	})
}

func TestNothingStuckRefuses(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{`{"dumps":3}`, "states is []"},
		{`{"states":[""],"dumps":3}`, `states is [""]`},
		{`{"states":["chan send"],"dumps":1}`, "dumps is 1 (want at least 2"},
		{`{"states":["chan send"],"dumps":3,"lastAfter":"soon"}`, "lastAfter"},
	} {
		c := &check.NothingStuck{}
		if err := json.Unmarshal([]byte(tt.spec), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q in it", tt.spec, err, tt.want)
		}
	}
}
