package logs_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// Lines that the source dropped may have been those that a check looks for, whichever check that is.
func TestDroppedLinesAreADoubt(t *testing.T) {
	const frames = `"component":"kube-apiserver","message":"index out of range","frames":["log.(*backend).logEvent"]`
	quiet := checktest.Said{Second: 61, Message: "I1125 10:00:00.000000       1 x.go:1] quiet"}
	dropped := func(tr *checktest.Trial) { // by a source that doesn't say when
		w := tr.W.View().World()
		w.Arms[0].Flags = []string{"-race"}
		tr.Must(tr.W.SetWorld(w))
		tr.Phases()
		tr.Log(checktest.Arm, "kube-apiserver", 0, 394, quiet).Suppressed(700)
	}
	dies := func(tr *checktest.Trial) {
		dropped(tr)
		tr.Statuses(checktest.Arm, 0, 394, tr.Ran(1, "a", 0), tr.After(63, "b", "a", 62, "Error", 2))
	}
	journaled := func(lines ...checktest.Said) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			st := tr.Stream(bundle.Journal, checktest.Arm)
			tr.Write(st, lines...)
			st.Alive(tr.At(0))
			st.Alive(tr.At(400))
			st.Suppressed(37)
		}
	}
	logs, journals := []bundle.Kind{bundle.Logs}, []bundle.Kind{bundle.Journal}
	tells := checktest.Said{Second: 330, Message: "Suppressed 37 messages from kubelet.service", Ident: "systemd-journald"}
	const gone, unsaid = "; 700 lines of kube-apiserver were dropped", "the journal suppressed 37 lines"
	marked := `"func":"f","state":"select","since":{"log":{"pattern":"active (?P<age>\\S+) ago; threshold is (?P<limit>\\S+)","exceeds":"limit"}}`
	checktest.Run(t, []checktest.Question{
		{Name: "logCount", Spec: `"component":"kube-apiserver","pattern":"index","atLeast":1`, Fill: dropped, Seen: "0 such lines among 1 of kube-apiserver" + gone, Evidence: logs},
		{Name: "recovered", Spec: frames, Fill: dropped, Seen: "0 of 0 panics that kube-apiserver recovered from are this one" + gone, Evidence: logs},
		{Name: "panicked", Spec: frames, Fill: dropped, Seen: "700 lines of kube-apiserver were dropped", Evidence: logs},
		{Name: "raced", Spec: `"component":"kube-apiserver","sides":[["f"],["g"]]`, Fill: dropped, Seen: "0 of 0 races that it reported are this one" + gone, Evidence: logs},
		{
			Name: "crashed", Spec: `"container":"kube-apiserver","times":1,"message":"index","frames":["f"]`, Fill: dies, Seen: "0 such ends among 1" + gone,
			Evidence: []bundle.Kind{bundle.Statuses, bundle.Logs}, Differs: []string{"its log ends without a panic"},
		},
		{Name: "cel", Spec: `"expression":"messages('kube-apiserver').size() == 1"`, Fill: dropped, Seen: "700 lines of kube-apiserver were dropped", Wanted: "messages", Evidence: logs},
		{Name: "logLine", Spec: `"pattern":"no such line"`, Fill: journaled(), Seen: "0 such lines, and " + unsaid, Evidence: journals},
		{Name: "goroutines", Spec: marked, Fill: journaled(), Seen: unsaid, Evidence: journals},
		{Name: "goroutines", Spec: marked, Fill: journaled(tells), Seen: unsaid, Evidence: journals},
		{Name: "logLine", Spec: `"pattern":"no such line"`, Fill: journaled(tells), Seen: "0 such lines, and " + unsaid, Evidence: journals},
		{
			Name: "logLine", Spec: `"pattern":"no such line"`, Fill: journaled(checktest.Said{Second: 100, Message: tells.Message, Ident: tells.Ident}), Seen: "0 such lines among 0", Met: check.False,
			Evidence: journals, // when it dropped them is told, and that was before
		},
		{Name: "goroutines", Spec: marked, Fill: journaled(checktest.Said{Second: 100, Message: tells.Message, Ident: tells.Ident}), Seen: "it never said so", Met: check.False, Evidence: journals},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec, q.Scope = q.Name, "{"+q.Spec+"}", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		if q.Evidence[0] == bundle.Journal {
			q.Scope.Phase = check.Recovery
		}
	})
}
