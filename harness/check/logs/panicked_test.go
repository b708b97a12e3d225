package logs_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

const panickedSpec = `{"component":"kube-apiserver","message":"nil pointer dereference","frames":["nodevolumelimits.(*CSILimits).checkAttachableInlineVolume"]}`

func TestPanicked(t *testing.T) {
	logs := []bundle.Kind{bundle.Logs}
	of := func(list ...checktest.Crash) func(*checktest.Trial) {
		return func(tr *checktest.Trial) { tr.Crashes(list...) }
	}
	qs := []checktest.Question{
		{Name: "once is enough", Fill: of(ended(60, 2, checktest.Panicked(checktest.Culprit))), Met: check.True, Evidence: logs, Seen: "1 of 1 logs of kube-apiserver have it",
			Detail: "invalid memory address or nil pointer dereference"},
		{Name: "another stack", Fill: of(ended(60, 2, checktest.Panicked("k8s.io/kubernetes/pkg/other.(*Cache).Get"))), Met: check.False, Evidence: logs,
			Seen: "0 of 1 logs", Differs: []string{"the goroutine that panicked has no nodevolumelimits"}},
		{Name: "no log", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "no log of kube-apiserver was recorded"},
		{Name: "no frames", Spec: `{"component":"kube-apiserver","message":"x","frames":[]}`, Fill: of(), Met: check.Unknown, Seen: "frames has none"},
	}
	checktest.Run(t, qs, func(q *checktest.Question) {
		q.Kind, q.Scope = "panicked", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		if q.Spec == "" {
			q.Spec = panickedSpec
		}
	})
}
