package check

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// logStream is what there is of a log. A check that looks for lines, and finds none, has to ask for its doubt: lines
// that the source dropped may have been those.
type logStream[T any] struct {
	stream[T]
	skipped int // lines that are not among the records, as nobody asks for them
}

// componentLog reads the log of a component. When the source dropped lines of it is not known.
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
		told = append(told, suppressed{e.Time, e.Suppressed})
	}
	out.doubt = cmp.Or(out.doubt, q.suppressed(told))
	return out
}

// suppressed are lines that journald says it dropped just before a time.
type suppressed struct {
	at time.Time
	n  int
}

// suppressed says that the subject's journal lacks lines of the window, "" if it doesn't. Where journald tells when it
// dropped lines, only those of the window are a doubt; of others nobody knows when they were.
func (q *question) suppressed(told []suppressed) string {
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

// droppedLines counts the lines that artifacts lack: those that nobody asks for, and those that the source dropped.
func droppedLines(arts []bundle.Artifact) (skipped, dropped int) {
	for _, a := range arts {
		skipped += a.Skipped
		if a.Coverage != nil {
			dropped += a.Coverage.Suppressed
		}
	}
	return skipped, dropped
}
