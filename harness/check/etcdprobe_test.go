package check_test

import (
	"testing"
	"time"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestEtcdHealthy(t *testing.T) {
	ms := func(list ...int) (out []control.Duration) {
		for _, n := range list {
			out = append(out, control.Duration(time.Duration(n)*time.Millisecond))
		}
		return out
	}
	quick := control.EtcdProbe{Through: ms(3, 5, 4), Direct: ms(2, 2, 2), Healthy: true}
	slow := control.EtcdProbe{Through: ms(3, 1004, 1003), Direct: ms(2, 2, 2), Healthy: true}
	mute := control.EtcdProbe{Err: "no answer within 3s", Direct: ms(2)}
	ill := control.EtcdProbe{Through: ms(3), Direct: ms(2)}
	none := control.EtcdProbe{Direct: ms(2), Healthy: true}
	probes := []bundle.Kind{bundle.EtcdProbe}
	of := func(arm string, before, then control.EtcdProbe, from float64) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			st := tr.stream(bundle.EtcdProbe, arm)
			tr.probed(st, 0, from-2, before)
			tr.probed(st, from, 394, then)
		}
	}
	run(t, []question{
		{name: "well since the lift", fill: of(arm, slow, quick, 292), met: check.True, seen: "40 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5, the slowest good answer after 5ms", evidence: probes, wanted: "etcd healthy and answering within 100ms for the last 1m20s"},
		{
			name: "one slow answer of three", fill: of(arm, slow, quick, 318), met: check.False, seen: "39 of 40 probes", evidence: probes,
			detail: "10:05:16: an answer took 1.004s", differs: []string{"an answer took 1.004s"},
		},
		{
			name: "slow answers now and then are tolerated", spec: `{"tolerate":"10%"}`, evidence: probes, met: check.True,
			fill: func(tr *trial) {
				tr.phases()
				st := tr.stream(bundle.EtcdProbe, arm)
				for s := 0.0; s <= 394; s += 2 {
					switch s {
					case 320, 340:
						tr.probed(st, s, s, slow)
					case 360, 380:
						tr.probed(st, s, s, mute)
					default:
						tr.probed(st, s, s, quick)
					}
				}
			},
			seen:    "36 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5, and 4 of the others tolerated, the slowest good answer after 5ms",
			wanted:  "etcd healthy and answering within 100ms for the last 1m20s, but for 10% of the probes and no two in a row",
			differs: []string{"10:05:20: an answer took 1.004s", "an answer took 1.004s", "no answer within 3s", "no answer within 3s"},
		},
		{
			name: "two slow ones in a row are none of them", spec: `{"tolerate":"10%"}`, wanted: "10%", evidence: probes, met: check.False,
			fill: of(arm, slow, quick, 320), seen: "38 of 40 probes of etcd are well in 10:05:14.5 to 10:06:34.5; two in a row are not",
			detail: "an answer took 1.004s", differs: []string{"10:05:16", "10:05:18"},
		},
		{name: "slow before the last stretch", fill: of(arm, slow, quick, 314), met: check.True, seen: "40 of 40", evidence: probes},
		{name: "no answer", fill: of(arm, quick, mute, 394), met: check.False, seen: "39 of 40", evidence: probes, detail: "no answer within 3s", differs: []string{"no answer within 3s"}},
		{name: "quick and ill", fill: of(arm, quick, ill, 394), met: check.False, seen: "39 of 40", evidence: probes, detail: "etcd says that it is not healthy", differs: []string{"not healthy"}},
		{name: "nothing was timed", fill: of(arm, quick, none, 394), met: check.False, seen: "39 of 40", evidence: probes, detail: "no answer was timed", differs: []string{"no answer was timed"}},
		{
			name: "a gap", met: check.Unknown, seen: "etcdproxy.probe of vulnerable does not cover", evidence: probes,
			fill: func(tr *trial) {
				tr.phases()
				st := tr.stream(bundle.EtcdProbe, arm)
				tr.probed(st, 0, 394, quick)
				st.Gap(tr.at(350), tr.at(365), "exec failed")
			},
		},
		{name: "longer than the phase", spec: `{"for":"2m"}`, wanted: "2m", fill: of(arm, quick, quick, 100), met: check.Unknown, seen: "that is 1m39.5s only", evidence: probes},
		{name: "the other arm's etcd", fill: of(other, quick, quick, 100), met: check.Unknown, seen: "no etcdproxy.probe was recorded for vulnerable"},
		{name: "no limit", spec: `{"below":"5"}`, wanted: "within 5", fill: of(arm, quick, quick, 100), met: check.Unknown, seen: `below is "5" (want a duration with its unit`},
	}, func(q *question) {
		q.kind, q.scope, q.spec = "etcdHealthy", check.Scope{Arm: arm, Phase: check.Recovery}, over(t, `{"below":"100ms","for":"1m20s"}`, q.spec)
	})
}
