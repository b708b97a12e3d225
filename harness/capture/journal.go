package capture

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/klog"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[Collector]{
		Name: "journal",
		Doc: "The subject's journal, followed from its start, with what journald says it suppressed.\n\n" +
			"A connection that breaks is taken up again at the last line seen, so that nothing is lost or doubled.",
		Example: "name: journal\nkind: journal\n",
		New:     func() Collector { return &Journal{} },
	})
}

// Journal collects a component's log.
type Journal struct{}

// Makes names the journal.
func (*Journal) Makes() []bundle.Kind { return []bundle.Kind{bundle.Journal} }

// Stream follows the log until ctx ends.
func (*Journal) Stream(ctx context.Context, t Target, w *bundle.Writer) error {
	st, err := w.Stream(t.meta(bundle.Journal), "jsonl")
	if err != nil {
		return err
	}
	f := &follower{st: st}
	follow(ctx, time.Second, st, func(ask context.Context) error {
		if f.open.Load() {
			return nil
		}
		return f.connect(ctx, t)
	})
	f.wait()
	return st.Close()
}

// follower copies one connection's lines and remembers where it was.
type follower struct {
	st     *bundle.Stream
	open   atomic.Bool
	done   chan struct{}
	cursor string
}

// connect opens the log and copies it in the background. The first lines are skipped up to the one seen last.
func (f *follower) connect(ctx context.Context, t Target) error {
	f.wait()
	rc, err := t.Component.Logs(ctx)
	if err != nil {
		return err
	}
	f.open.Store(true)
	done := make(chan struct{})
	f.done = done
	go func() {
		defer close(done)
		defer f.open.Store(false)
		defer rc.Close()
		f.copy(rc)
	}()
	return nil
}

func (f *follower) wait() {
	if f.done != nil {
		<-f.done
	}
}

func (f *follower) copy(r io.Reader) {
	skipTo := f.cursor
	br := bufio.NewReaderSize(r, 256<<10)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 0 && err == nil {
			var at struct {
				Cursor string `json:"__CURSOR"`
			}
			if json.Unmarshal(line, &at) == nil && at.Cursor != "" {
				f.cursor = at.Cursor
			}
			if skipTo != "" {
				if at.Cursor == skipTo {
					skipTo = ""
				}
				continue
			}
			if bytes.Contains(line, []byte("Suppressed ")) {
				for e := range klog.ReadJournal(bytes.NewReader(line)) {
					f.st.Suppressed(e.Suppressed)
				}
			}
			_ = f.st.Line(line[:len(line)-1]) // a full disk shows in Close
		}
		if err != nil { // the end, however it came: follow connects again
			return
		}
	}
}
