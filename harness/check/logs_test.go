package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Lines that the source dropped may have been those that a check looks for, whichever check that is.
func TestDroppedLinesAreADoubt(t *testing.T) {
	const frames = `"component":"kube-apiserver","message":"index out of range","frames":["log.(*backend).logEvent"]`
	quiet := said{second: 61, message: "I1125 10:00:00.000000       1 x.go:1] quiet"}
	dropped := func(tr *trial) { // by a source that doesn't say when
		w := tr.w.View().World()
		w.Arms[0].Flags = []string{"-race"}
		tr.must(tr.w.SetWorld(w))
		tr.phases()
		tr.log(arm, "kube-apiserver", 0, 394, quiet).Suppressed(700)
	}
	dies := func(tr *trial) {
		dropped(tr)
		tr.statuses(arm, 0, 394, tr.ran(1, "a", 0), tr.after(63, "b", "a", 62, "Error", 2))
	}
	journaled := func(lines ...said) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			st := tr.stream(bundle.Journal, arm)
			tr.write(st, lines...)
			st.Alive(tr.at(0))
			st.Alive(tr.at(400))
			st.Suppressed(37)
		}
	}
	logs, journals := []bundle.Kind{bundle.Logs}, []bundle.Kind{bundle.Journal}
	tells := said{second: 330, message: "Suppressed 37 messages from kubelet.service", ident: "systemd-journald"}
	const gone, unsaid = "; 700 lines of kube-apiserver were dropped", "the journal suppressed 37 lines"
	marked := `"func":"f","state":"select","since":{"log":{"pattern":"active (?P<age>\\S+) ago; threshold is (?P<limit>\\S+)","exceeds":"limit"}}`
	run(t, []question{
		{name: "logCount", spec: `"component":"kube-apiserver","pattern":"index","atLeast":1`, fill: dropped, seen: "0 such lines among 1 of kube-apiserver" + gone, evidence: logs},
		{name: "recovered", spec: frames, fill: dropped, seen: "0 of 0 panics that kube-apiserver recovered from are this one" + gone, evidence: logs},
		{name: "panicked", spec: frames, fill: dropped, seen: "700 lines of kube-apiserver were dropped", evidence: logs},
		{name: "raced", spec: `"component":"kube-apiserver","sides":[["f"],["g"]]`, fill: dropped, seen: "0 of 0 races that it reported are this one" + gone, evidence: logs},
		{
			name: "crashed", spec: `"container":"kube-apiserver","times":1,"message":"index","frames":["f"]`, fill: dies, seen: "0 such ends among 1" + gone,
			evidence: []bundle.Kind{bundle.Statuses, bundle.Logs}, differs: []string{"its log ends without a panic"},
		},
		{name: "cel", spec: `"expression":"messages('kube-apiserver').size() == 1"`, fill: dropped, seen: "700 lines of kube-apiserver were dropped", wanted: "messages", evidence: logs},
		{name: "logLine", spec: `"pattern":"no such line"`, fill: journaled(), seen: "0 such lines, and " + unsaid, evidence: journals},
		{name: "goroutines", spec: marked, fill: journaled(), seen: unsaid, evidence: journals},
		{name: "goroutines", spec: marked, fill: journaled(tells), seen: unsaid, evidence: journals},
		{name: "logLine", spec: `"pattern":"no such line"`, fill: journaled(tells), seen: "0 such lines, and " + unsaid, evidence: journals},
		{
			name: "logLine", spec: `"pattern":"no such line"`, fill: journaled(said{second: 100, message: tells.message, ident: tells.ident}), seen: "0 such lines among 0", met: check.False,
			evidence: journals, // when it dropped them is told, and that was before
		},
		{name: "goroutines", spec: marked, fill: journaled(said{second: 100, message: tells.message, ident: tells.ident}), seen: "it never said so", met: check.False, evidence: journals},
	}, func(q *question) {
		q.kind, q.spec, q.scope = q.name, "{"+q.spec+"}", check.Scope{Arm: arm, Phase: check.Fault}
		if q.evidence[0] == bundle.Journal {
			q.scope.Phase = check.Recovery
		}
	})
}
