package kinds_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestEtcdHealthy(t *testing.T) {
	ms := func(list ...int) (out []control.Duration) {
		for _, n := range list {
			out = append(out, control.Duration(time.Duration(n)*time.Millisecond))
		}
		return out
	}
	quick := control.ConnectionProbe{Through: ms(3, 5, 4), Direct: ms(2, 2, 2), Healthy: true}
	slow := control.ConnectionProbe{Through: ms(3, 1004, 1003), Direct: ms(2, 2, 2), Healthy: true}
	mute := control.ConnectionProbe{Err: "no answer within 3s", Direct: ms(2)}
	ill := control.ConnectionProbe{Through: ms(3), Direct: ms(2)}
	none := control.ConnectionProbe{Direct: ms(2), Healthy: true}
	probes := []bundle.Kind{bundle.EtcdProbe}
	of := func(arm string, before, then control.ConnectionProbe, from float64) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.EtcdProbe, arm)
			tr.Probed(st, 0, from-2, before)
			tr.Probed(st, from, 394, then)
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "well since the lift", Fill: of(checktest.Arm, slow, quick, 292), Met: check.True, Seen: "40 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5, the slowest good answer after 5ms", Evidence: probes, Wanted: "etcd healthy and answering within 100ms for the last 1m20s"},
		{
			Name: "one slow answer of three", Fill: of(checktest.Arm, slow, quick, 318), Met: check.False, Seen: "39 of 40 probes", Evidence: probes,
			Detail: "10:05:16: an answer took 1.004s", Differs: []string{"an answer took 1.004s"},
		},
		{
			Name: "slow answers now and then are tolerated", Spec: `{"tolerate":"10%"}`, Evidence: probes, Met: check.True,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Stream(bundle.EtcdProbe, checktest.Arm)
				for s := 0.0; s <= 394; s += 2 {
					switch s {
					case 320, 340:
						tr.Probed(st, s, s, slow)
					case 360, 380:
						tr.Probed(st, s, s, mute)
					default:
						tr.Probed(st, s, s, quick)
					}
				}
			},
			Seen:    "36 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5, and 4 of the others tolerated, the slowest good answer after 5ms",
			Wanted:  "etcd healthy and answering within 100ms for the last 1m20s, but for 10% of the probes and no two in a row",
			Differs: []string{"10:05:20: an answer took 1.004s", "an answer took 1.004s", "no answer within 3s", "no answer within 3s"},
		},
		{
			Name: "two slow ones in a row are none of them", Spec: `{"tolerate":"10%"}`, Wanted: "10%", Evidence: probes, Met: check.False,
			Fill: of(checktest.Arm, slow, quick, 320), Seen: "38 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5; two in a row are not",
			Detail: "an answer took 1.004s", Differs: []string{"10:05:16", "10:05:18"},
		},
		{Name: "slow before the last stretch", Fill: of(checktest.Arm, slow, quick, 314), Met: check.True, Seen: "40 of 40", Evidence: probes},
		{Name: "no answer", Fill: of(checktest.Arm, quick, mute, 394), Met: check.False, Seen: "39 of 40", Evidence: probes, Detail: "no answer within 3s", Differs: []string{"no answer within 3s"}},
		{Name: "quick and ill", Fill: of(checktest.Arm, quick, ill, 394), Met: check.False, Seen: "39 of 40", Evidence: probes, Detail: "etcd says that it is not healthy", Differs: []string{"not healthy"}},
		{Name: "nothing was timed", Fill: of(checktest.Arm, quick, none, 394), Met: check.False, Seen: "39 of 40", Evidence: probes, Detail: "no answer was timed", Differs: []string{"no answer was timed"}},
		{
			Name: "a gap", Met: check.Unknown, Code: check.Gap, Seen: "etcdproxy.probe of vulnerable does not cover", Evidence: probes,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				st := tr.Stream(bundle.EtcdProbe, checktest.Arm)
				tr.Probed(st, 0, 394, quick)
				st.Gap(tr.At(350), tr.At(365), "exec failed")
			},
		},
		{Name: "longer than the phase", Spec: `{"for":"2m"}`, Wanted: "2m", Fill: of(checktest.Arm, quick, quick, 100), Met: check.Unknown, Seen: "that is 1m39.5s only", Evidence: probes},
		{Name: "the other arm's etcd", Fill: of(checktest.Other, quick, quick, 100), Met: check.Unknown, Code: check.NotRecorded, Seen: "no etcdproxy.probe was recorded for vulnerable"},
		{Name: "no limit", Spec: `{"below":"5"}`, Wanted: "within 5", Fill: of(checktest.Arm, quick, quick, 100), Met: check.Unknown, Code: check.BadCheck, Seen: `below is "5" (want a duration with its unit`},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope, q.Spec = "etcdHealthy", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}, checktest.Over(t, `{"below":"100ms","for":"1m20s"}`, q.Spec)
	})
}
