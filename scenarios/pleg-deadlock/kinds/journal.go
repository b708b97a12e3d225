package kinds

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "journal",
		Doc: "The subject's journal, followed from its start, with the number of lines that journald says it " +
			"suppressed.\n\n" +
			"If the connection breaks, the collector continues after the last line that it saw, so no line is lost " +
			"or recorded twice. If the journal no longer has that line, the time up to the next line is a gap.",
		Example: "name: journal\nkind: journal\n",
		New:     func() capture.Collector { return &Journal{} },
	})
}

// Journal collects a component's log.
type Journal struct{}

// Makes returns the kind of artifact that the collector records: the journal.
func (*Journal) Makes() []bundle.Kind { return []bundle.Kind{bundle.Journal} }

// NeedsKubelets returns true: without kubelets there is nothing to record.
func (*Journal) NeedsKubelets() bool { return true }

// Stream follows the log until ctx ends.
func (*Journal) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	st, err := w.Stream(t.Meta(bundle.Journal), "jsonl")
	if err != nil {
		return err
	}
	f := &follower{st: st}
	collectors.Follow(ctx, time.Second, st, func(ask context.Context) error {
		if f.open.Load() {
			return nil
		}
		return f.connect(ctx, t)
	})
	f.wait()
	return st.Close()
}

// follower copies the lines of one connection at a time, and remembers the last line.
type follower struct {
	st    *bundle.Stream
	open  atomic.Bool
	done  chan struct{}
	place journalPosition // of the last line recorded
}

// connect opens the log and copies it in the background. Lines up to the last recorded one are skipped.
func (f *follower) connect(ctx context.Context, t capture.Target) error {
	f.wait()
	rc, err := t.Component.Logs(ctx)
	if err != nil {
		return err
	}
	f.open.Store(true)
	done := make(chan struct{})
	f.done = done
	// The reader is closed when ctx ends, even if the component ignores ctx: a copy that never ended would hold up the
	// run.
	closing := context.AfterFunc(ctx, func() { _ = rc.Close() })
	go func() {
		defer close(done)
		defer f.open.Store(false)
		defer rc.Close()
		defer closing()
		f.copy(rc)
	}()
	return nil
}

func (f *follower) wait() {
	if f.done != nil {
		<-f.done
	}
}

// copy records the lines of r after the last recorded one. If the journal no longer has that line, copy goes on at the
// first later line, and the time in between is a gap: waiting for the lost line would drop everything unnoticed.
func (f *follower) copy(r io.Reader) {
	searching := f.place.cursor != ""
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil { // the end, for whatever reason: capture.Follow connects again
			return
		}
		here := placeOf(line)
		if searching && !here.at.After(f.place.at) {
			searching = here.cursor != f.place.cursor
			continue
		}
		if searching {
			f.st.Gap(f.place.at, here.at, "the journal no longer has the last line that was seen")
			searching = false
		}
		if here.cursor != "" {
			f.place = here
		}
		if bytes.Contains(line, []byte("Suppressed ")) {
			for e := range klog.ReadJournal(bytes.NewReader(line)) {
				f.st.Suppressed(e.Suppressed)
			}
		}
		_ = f.st.Line(line[:len(line)-1]) // a full disk shows in Close
	}
}

// journalPosition identifies a line of a journal.
type journalPosition struct {
	cursor string
	at     time.Time
}

// placeOf returns the position of a line. Without a cursor the line is none of a journal.
func placeOf(line []byte) journalPosition {
	var l struct {
		Cursor string `json:"__CURSOR"`
		Micros string `json:"__REALTIME_TIMESTAMP"`
	}
	us := int64(0)
	if json.Unmarshal(line, &l) == nil {
		us, _ = strconv.ParseInt(l.Micros, 10, 64) // a line without a time is before all others
	}
	return journalPosition{l.Cursor, time.UnixMicro(us).UTC()}
}
