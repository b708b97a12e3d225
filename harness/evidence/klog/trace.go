package klog

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is an operation that took long enough for a component to log it: the `Trace[…]` lines of k8s.io/utils/trace, whose text is the
// same in v1.22, v1.23 and v1.34, or a trace nested in another. A component logs them from -v 2 on.
type Span struct {
	// ID is drawn at random when the trace is logged; what is nested in it has the same.
	ID int64
	// Name is the operation ("List", "Delete", "GuaranteedUpdate etcd3"); which request it was is in the fields.
	Name string
	// Fields are the pairs after the name ("url", "user-agent", "audit-id", …), in their order. The text doesn't quote them: a comma with
	// a word and a colon right after it is taken for the next field's beginning.
	Fields []Pair
	// Start has milliseconds; it is zero if the line that has the date is missing.
	Start time.Time
	// Total is how long it took. Of a nested span it is the time from its start to when all was logged, which may be later than its own
	// end: that is what the component writes.
	Total time.Duration
	// Steps are those that were logged. Below -v 4 quick ones are left out, and so are quick nested spans.
	Steps  []Step
	Nested []Span
	// Incomplete says of an outermost span that some of its lines are missing or can't be read.
	Incomplete bool
}

// Step is a point that an operation came to.
type Step struct {
	Name   string
	Fields []Pair
	// Time has milliseconds; it is zero if the span's start is.
	Time time.Time
	// Took is the time since the step before it, or since the end of a nested span. It is negative if that ended after the step.
	Took time.Duration
	// Since is the time since the start of the outermost span; 0 if that isn't known.
	Since time.Duration
}

// Get returns the value of the first field with that key.
func (s *Span) Get(key string) (string, bool) {
	for _, p := range s.Fields {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

const (
	// maxOpen bounds the traces that are without their last line; the one that has waited longest goes.
	maxOpen = 256
	// maxItems bounds the steps and nested spans of one trace; further ones are dropped and the span is marked.
	maxItems = 10_000
)

// Spans yields the traces among a log's lines, each when its last line is there; those that have none come at the end, or when too
// many are open, marked incomplete. Lines that belong to no trace are passed over.
//
// The lines of one trace may have others between them, those of other traces too. Only the first has a header; it may be missing, as it is
// in a Line's Message. A JSON line has the whole trace in its message. The component's zone is taken to be UTC.
func Spans(lines iter.Seq[string]) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		var t traces
		for line := range lines {
			if !strings.Contains(line, "Trace[") {
				continue
			}
			for text := range strings.SplitSeq(traceText(line), "\n") {
				if done := t.add(strings.TrimRight(text, "\r")); done != nil && !yield(*done) {
					return
				}
			}
		}
		for _, o := range t.open {
			if !yield(*o.lost()) {
				return
			}
		}
	}
}

// traceText is a line without its header.
func traceText(line string) string {
	if strings.HasPrefix(line, "Trace[") {
		return line
	}
	if l, ok := Parse([]byte(line), time.Unix(0, 0).UTC()); ok {
		return l.Message
	}
	return ""
}

// traces puts spans together from lines that interleave.
type traces struct{ open []*openTrace } // in the order of their first lines

type openTrace struct {
	span  Span
	depth int // of nested spans that are open
	items int
}

// lost is the span whose last line never came.
func (o *openTrace) lost() *Span {
	o.span.Incomplete = true
	return &o.span
}

// add takes a line and returns the span that it ends, or that has to go for it.
func (t *traces) add(text string) *Span {
	text, ok := strings.CutPrefix(text, "Trace[")
	number, text, found := strings.Cut(text, "]: ")
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || !found || err != nil {
		return nil
	}
	i := slices.IndexFunc(t.open, func(o *openTrace) bool { return o.span.ID == id })
	total, ends := parseEnd(text)
	switch {
	case ends && i < 0:
		return &Span{ID: id, Total: total, Incomplete: true}
	case ends:
		o := t.take(i)
		o.span.Total = total
		return &o.span
	case strings.HasPrefix(text, `"`):
		return t.begin(i, parseHead(id, text))
	case i < 0:
		gone := t.begin(i, Span{ID: id, Incomplete: true})
		t.open[len(t.open)-1].item(text)
		return gone
	}
	t.open[i].item(text)
	return nil
}

// begin opens a trace and returns the one that has to go for it, if there is one: the one at i, which has the same number, as may be after a
// restart, or the oldest of too many.
func (t *traces) begin(i int, s Span) *Span {
	if i < 0 && len(t.open) == maxOpen {
		i = 0
	}
	var gone *Span
	if i >= 0 {
		gone = t.take(i).lost()
	}
	t.open = append(t.open, &openTrace{span: s})
	return gone
}

func (t *traces) take(i int) *openTrace {
	o := t.open[i]
	t.open = slices.Delete(t.open, i, i+1)
	return o
}

// item takes a step or the beginning of a nested span. One space before it stands for each span that it is nested in; brackets at
// its end close them, which says no more.
func (o *openTrace) item(text string) {
	bare := strings.TrimLeft(text, " ")
	depth := len(text) - len(bare)
	rest, step := strings.CutPrefix(bare, "---")
	nested := false
	if !step {
		rest, nested = strings.CutPrefix(bare, "[")
	}
	name, fields, took, clock, ok := parseSummary(rest)
	o.items++
	if !step && !nested || !ok || o.items > maxItems || depth > o.depth {
		o.span.Incomplete = true
	}
	if !step && !nested || !ok || o.items > maxItems {
		return
	}
	o.depth = min(depth, o.depth)
	in := &o.span
	for range o.depth {
		in = &in.Nested[len(in.Nested)-1]
	}
	at := o.on(clock)
	if nested {
		in.Nested = append(in.Nested, Span{ID: o.span.ID, Name: name, Fields: fields, Start: at, Total: took})
		o.depth++
		return
	}
	s := Step{Name: name, Fields: fields, Time: at, Took: took}
	if !at.IsZero() {
		s.Since = at.Sub(o.span.Start)
	}
	in.Steps = append(in.Steps, s)
}

// on is the time of a clock, which has no date, that is nearest to the outermost span's start.
func (o *openTrace) on(clock time.Duration) time.Time {
	start := o.span.Start
	if start.IsZero() {
		return time.Time{}
	}
	t := start.Truncate(24 * time.Hour).Add(clock)
	switch d := t.Sub(start); {
	case d < -12*time.Hour:
		return t.Add(24 * time.Hour)
	case d > 12*time.Hour:
		return t.Add(-24 * time.Hour)
	}
	return t
}
