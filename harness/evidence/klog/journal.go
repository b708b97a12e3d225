package klog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Entry is one record of the journal.
type Entry struct {
	// Time is when journald took the record, in UTC, with microseconds.
	Time time.Time
	// PID is the sender's; 0 if the record has none.
	PID int
	// Unit is the sender's systemd unit and Ident its syslog identifier; "" if the record has none.
	Unit, Ident string
	Message     string
	// Klog is the message read as klog's, nil if it isn't klog's. The node's zone is taken to be UTC.
	Klog *Line
	// Suppressed is how many messages journald dropped before this record because SuppressedFrom logged too fast; the
	// record is journald's own then. Evidence about that unit has a gap there.
	Suppressed     int
	SuppressedFrom string
	// Cut says that part of the message is missing: the record was longer than MaxLine, journalctl left the message
	// out because it ran without --all, or a multi-line value has no end.
	Cut bool
}

// ReadJournal yields the entries of `journalctl -o json` output.
//
// A klog message whose value spans lines arrives as one record a line. It is yielded as one Entry, with the first
// record's time, once its last line is there. Records of other processes in between are yielded before it. For a line
// that is no journal record, the zero Entry is yielded with an error that names the line, and reading goes on with the
// next line. After an error of r it ends.
func ReadJournal(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := lines{src: bufio.NewReaderSize(r, 64<<10)}
		var j joiner
		for {
			text, cut, err := in.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				yield(Entry{}, fmt.Errorf("reading journal after line %d: %w", in.n, err))
				return
			}
			if len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			e, err := parseEntry(text, cut)
			if err != nil {
				if !yield(Entry{}, fmt.Errorf("journal line %d: %w", in.n, err)) {
					return
				}
				continue
			}
			for _, e := range j.add(e) {
				if !yield(e, nil) {
					return
				}
			}
		}
		for _, e := range j.held {
			if !yield(e.finish(), nil) {
				return
			}
		}
	}
}

// parseEntry reads one record. Of a record that was cut, it reads the part before the cut.
func parseEntry(text []byte, cut bool) (Entry, error) {
	fields, err := object(text)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !cut {
		return Entry{}, fmt.Errorf("expected one JSON object: %w", err)
	}
	e := Entry{Cut: cut}
	fromJournald, hasTime := false, false
	for _, f := range fields {
		switch f.name {
		case "__REALTIME_TIMESTAMP":
			us, err := strconv.ParseInt(first(f.raw), 10, 64)
			if err != nil {
				return Entry{}, fmt.Errorf(
					"__REALTIME_TIMESTAMP is %s; expected microseconds since 1970",
					f.raw,
				)
			}
			e.Time, hasTime = time.UnixMicro(us).UTC(), true
		case "_PID":
			if e.PID, err = strconv.Atoi(first(f.raw)); err != nil {
				return Entry{}, fmt.Errorf("_PID is %s; expected a number", f.raw)
			}
		case "_SYSTEMD_UNIT":
			e.Unit = first(f.raw)
		case "SYSLOG_IDENTIFIER":
			e.Ident = first(f.raw)
			fromJournald = fromJournald || e.Ident == "systemd-journald"
		case "MESSAGE":
			e.Message = first(f.raw)
			e.Cut = e.Cut || string(f.raw) == "null"
		}
	}
	if !hasTime {
		return Entry{}, fmt.Errorf(
			"no __REALTIME_TIMESTAMP among its %d fields; expected a journal record",
			len(fields),
		)
	}
	if l, ok := Parse([]byte(e.Message), e.Time); ok {
		l.Cut = e.Cut
		e.Klog = &l
	}
	if fromJournald {
		e.Suppressed, e.SuppressedFrom = parseSuppressed(e.Message)
	}
	return e, nil
}

// suppressed is journald's own text (server_driver_message in journald-server.c).
var suppressed = regexp.MustCompile(`^Suppressed (\d+) messages from (.+)$`)

func parseSuppressed(msg string) (int, string) {
	m := suppressed.FindStringSubmatch(msg)
	if m == nil {
		return 0, ""
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, ""
	}
	return n, m[2][strings.LastIndexByte(m[2], '/')+1:] // older ones name the cgroup
}

// first returns a field's value: a string, the bytes of a string that isn't clean text, or the first of several values.
func first(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var bytes []uint16 // a []byte would be read as base64
	if json.Unmarshal(raw, &bytes) == nil {
		b := make([]byte, len(bytes))
		for i, c := range bytes {
			b[i] = byte(c)
		}
		return string(b)
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) == nil && len(many) > 0 && len(many[0]) > 0 && many[0][0] != '[' {
		return first(many[0])
	}
	return ""
}

// joiner holds back the entries whose message goes on in later records: at most one for each process.
type joiner struct{ held []*heldEntry }

type heldEntry struct {
	Entry
	block block
}

// finish returns the entry with the lines that have come so far.
func (h *heldEntry) finish() Entry {
	l := h.block.parse(h.Time)
	l.Cut = l.Cut || l.Unfinished
	e := h.Entry
	e.Message, e.Cut, e.Klog = string(h.block.text), l.Cut, &l
	return e
}

// add takes the next entry and returns those that are ready.
func (j *joiner) add(e Entry) []Entry {
	var ready []Entry
	for i, h := range j.held {
		if h.PID != e.PID || h.Unit != e.Unit {
			continue
		}
		if e.Klog == nil {
			if !h.block.add([]byte(e.Message), e.Cut, h.Time) {
				return nil
			}
			j.held = slices.Delete(j.held, i, i+1)
			return []Entry{h.finish()}
		}
		ready = append(ready, h.finish())
		j.held = slices.Delete(j.held, i, i+1)
		break
	}
	if e.Klog != nil && e.Klog.Unfinished && !e.Cut && e.PID != 0 {
		j.held = append(j.held, &heldEntry{Entry: e, block: block{text: []byte(e.Message)}})
		return ready
	}
	return append(ready, e)
}
