// Package logs has the checks of what components and the kubelet's journal logged, and of how containers ended.
package logs

import (
	"cmp"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// Stream holds the records of a log. A check that finds no matching line has to look at Doubt: the lines that the
// source dropped may have matched.
type Stream[T any] struct {
	question.Stream[T]
	skipped int // lines that were not recorded because no check asks for them
}

// ComponentLog reads the log of a component. Any dropped line is a doubt, because nobody knows when the source dropped
// it.
func ComponentLog(q *question.Question, component string) (out Stream[bundle.LogLine]) {
	own := bundle.Query{Kind: bundle.Logs, Arm: q.Arm, Component: component}
	if len(q.View.Artifacts(own)) == 0 {
		out.Doubt = check.Doubt(
			check.NotRecorded,
			"no log of %s was recorded for %s",
			component,
			q.Arm,
		)
		return out
	}
	out.Stream = question.ReadWith(q, own, question.Records[bundle.LogLine])
	dropped := 0
	out.skipped, dropped = droppedLines(q.View.Artifacts(own))
	if dropped > 0 {
		out.Doubt = cmp.Or(
			out.Doubt,
			check.Doubt(check.Gap, "%d lines of %s were dropped", dropped, component),
		)
	}
	return out
}

// subjectJournal reads the subject's journal.
func subjectJournal(q *question.Question) (out Stream[klog.Entry]) {
	own := bundle.Query{Kind: bundle.Journal, Arm: q.Arm}
	out.Stream = question.ReadWith(q, own, journal)
	out.skipped, _ = droppedLines(q.View.Artifacts(own))
	var told []Suppressed
	for _, e := range out.Records {
		told = append(told, Suppressed{At: e.Time, N: e.Suppressed})
	}
	out.Doubt = cmp.Or(out.Doubt, DescribeSuppressed(q, told))
	return out
}

// Suppressed is the number of lines that journald reports as dropped just before a time.
type Suppressed struct {
	At time.Time
	N  int
}

// DescribeSuppressed says how many lines of the window the subject's journal may lack, nil if none. If journald says
// when it dropped lines, they count only if that was in the window. The other dropped lines always count, because
// nobody knows when journald dropped them.
func DescribeSuppressed(q *question.Question, told []Suppressed) error {
	_, n := droppedLines(q.View.Artifacts(bundle.Query{Kind: bundle.Journal, Arm: q.Arm}))
	in := 0
	for _, s := range told {
		n -= s.N
		if question.Contains(q.Window, s.At) {
			in += s.N
		}
	}
	if in += max(0, n); in == 0 {
		return nil
	}
	return check.Doubt(check.Gap, "the journal suppressed %d lines", in)
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
