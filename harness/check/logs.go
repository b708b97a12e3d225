package check

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// logStream holds the records of a log. A check that finds no matching line has to look at doubt: the lines that the
// source dropped may have matched.
type logStream[T any] struct {
	stream[T]
	skipped int // lines that were not recorded because no check asks for them
}

// componentLog reads the log of a component. Any dropped line is a doubt, because nobody knows when the source dropped
// it.
func componentLog(q *question, component string) (out logStream[bundle.LogLine]) {
	own := bundle.Query{Kind: bundle.Logs, Arm: q.arm, Component: component}
	if len(q.view.Artifacts(own)) == 0 {
		out.doubt = fmt.Sprintf("no log of %s was recorded for %s", component, q.arm)
		return out
	}
	out.stream = readWith(q, own, records[bundle.LogLine])
	dropped := 0
	out.skipped, dropped = droppedLines(q.view.Artifacts(own))
	if dropped > 0 {
		out.doubt = cmp.Or(out.doubt, fmt.Sprintf("%d lines of %s were dropped", dropped, component))
	}
	return out
}

// subjectJournal reads the subject's journal.
func subjectJournal(q *question) (out logStream[klog.Entry]) {
	own := bundle.Query{Kind: bundle.Journal, Arm: q.arm}
	out.stream = readWith(q, own, journal)
	out.skipped, _ = droppedLines(q.view.Artifacts(own))
	var told []suppressed
	for _, e := range out.records {
		told = append(told, suppressed{at: e.Time, n: e.Suppressed})
	}
	out.doubt = cmp.Or(out.doubt, describeSuppressed(q, told))
	return out
}

// suppressed is the number of lines that journald reports as dropped just before a time.
type suppressed struct {
	at time.Time
	n  int
}

// describeSuppressed says how many lines of the window the subject's journal may lack, "" if none. If journald says when it
// dropped lines, they count only if that was in the window. The other dropped lines always count, because nobody knows
// when journald dropped them.
func describeSuppressed(q *question, told []suppressed) string {
	_, n := droppedLines(q.view.Artifacts(bundle.Query{Kind: bundle.Journal, Arm: q.arm}))
	in := 0
	for _, s := range told {
		n -= s.n
		if contains(q.window, s.at) {
			in += s.n
		}
	}
	if in += max(0, n); in == 0 {
		return ""
	}
	return fmt.Sprintf("the journal suppressed %d lines", in)
}

// droppedLines counts the lines that artifacts lack: lines skipped because no check asks for them, and lines that the
// source dropped.
func droppedLines(arts []bundle.Artifact) (skipped, dropped int) {
	for _, a := range arts {
		skipped += a.Skipped
		if a.Coverage != nil {
			dropped += a.Coverage.Suppressed
		}
	}
	return skipped, dropped
}
