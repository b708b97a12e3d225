package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const panickedSpec = `{"component":"kube-apiserver","message":"nil pointer dereference","frames":["nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"]}`

func TestPanicked(t *testing.T) {
	logs := []bundle.Kind{bundle.Logs}
	of := func(list ...crash) func(*trial) { return func(tr *trial) { tr.crashes(list...) } }
	qs := []question{
		{name: "once is enough", fill: of(crash{second: 60, code: 2, log: panicked(culprit)}), met: check.True, evidence: logs, seen: "1 of 1 logs of kube-apiserver have it",
			detail: "invalid memory address or nil pointer dereference"},
		{name: "another stack", fill: of(crash{second: 60, code: 2, log: panicked("k8s.io/kubernetes/pkg/other.(*Cache).Get")}), met: check.False, evidence: logs,
			seen: "0 of 1 logs", differs: []string{"the goroutine that panicked has no nodevolumelimits"}},
		{name: "no log", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "no log of kube-apiserver was recorded"},
		{name: "no frames", spec: `{"component":"kube-apiserver","message":"x","frames":[]}`, fill: of(), met: check.Unknown, seen: "frames has none"},
	}
	run(t, qs, func(q *question) {
		q.kind, q.scope = "panicked", check.Scope{Arm: arm, Phase: check.Fault}
		if q.spec == "" {
			q.spec = panickedSpec
		}
	})
}
