package webhook

import (
	"sync"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Record is the evidence of what a webhook was asked and answered. It may be used by several goroutines.
type Record struct {
	mu     sync.Mutex
	stream *bundle.Stream // nil once the record has ended, and outside of a trial
}

// NewRecord begins the record of a node's webhook. Without a writer, as outside of a trial, nothing is recorded.
func NewRecord(w *bundle.Writer, arm, node string) (*Record, error) {
	if w == nil {
		return &Record{}, nil
	}
	st, err := w.Stream(
		bundle.Meta{Kind: bundle.Reviews, Arm: arm, Node: node, Time: time.Now().UTC()},
		"jsonl",
	)
	if err != nil {
		return nil, err
	}
	st.Alive(time.Now())
	return &Record{stream: st}, nil
}

// Add records a review, unless the record has ended.
func (r *Record) Add(one bundle.Review) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream != nil {
		_ = r.stream.JSON(one) // the writer keeps what failed, and doesn't seal
	}
}

// End ends the record.
func (r *Record) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream != nil {
		r.stream.Alive(time.Now())
		_ = r.stream.Close()
		r.stream = nil
	}
}
