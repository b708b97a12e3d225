package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Packed is the end of a compressed stream's extension. View.Open returns the lines uncompressed.
const Packed = ".zst"

// Stream is an artifact that grows by whole lines. It is safe for concurrent use, and written lines can be read at once
// through View.Open.
//
// Each call of Line extends the coverage to the time in the line: the "time" (RFC 3339) of a JSON object, or a
// journal's "__REALTIME_TIMESTAMP" (microseconds). A line without a time counts with its arrival. All time between
// First and Last counts as covered, except for gaps: whoever follows a source must report the time for which the source
// was lost.
type Stream struct {
	mu       sync.Mutex
	file     *os.File
	sum      hash.Hash
	pack     *zstd.Encoder // nil unless it is compressed
	redact   redactor
	artifact Artifact
	closed   bool
	failed   error
}

// Line appends one line. A newline at its end is optional. Newlines inside become spaces, so that a line stays one
// line.
func (s *Stream) Line(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.put(b); err != nil {
		return err
	}
	s.alive(lineTime(b))
	return nil
}

// Append appends v as one line of JSON and doesn't extend the coverage, which is left to Alive. It is for a source
// whose lines don't prove that nothing is missing before them.
func (s *Stream) Append(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a line for stream %s: %w", s.snapshot().Path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(b)
}

// put redacts a line and writes it. The caller holds mu.
func (s *Stream) put(b []byte) error {
	b = bytes.TrimRight(b, "\r\n")
	b = bytes.ReplaceAll(b, []byte("\n"), []byte(" "))
	if s.closed {
		return fmt.Errorf("writing to stream %s: %w", s.artifact.Path, ErrSealed)
	}
	if s.failed != nil {
		return s.failed
	}
	line := append(slices.Clip(s.redact.line(b)), '\n')
	var err error
	if s.pack == nil {
		_, err = (*onDisk)(s).Write(line)
	} else if _, err = s.pack.Write(line); err == nil {
		err = s.pack.Flush() // ends the block, so that what is on disk can be read
	}
	if err != nil {
		// Part of the line may be on disk after the recorded size, so the bundle can't be sealed as complete.
		s.failed = fmt.Errorf("writing to stream %s: %w", s.artifact.Path, err)
	}
	return s.failed
}

// onDisk writes to a stream's file. The caller of Write holds mu.
type onDisk Stream

// Write writes b to the file, and counts and hashes the bytes that are on disk.
func (d *onDisk) Write(b []byte) (int, error) {
	n, err := d.file.Write(b)
	if err != nil {
		return n, err
	}
	d.sum.Write(b)
	d.artifact.Size += int64(n)
	return n, nil
}

// packed makes the stream compress its lines.
func (s *Stream) packed() (err error) {
	const window = 1 << 20 // bytes: many versions of objects that change by turns, and little memory to read them
	s.pack, err = zstd.NewWriter(
		(*onDisk)(s),
		zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(window),
	)
	return err
}

// JSON appends v as one line of JSON.
func (s *Stream) JSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a line for stream %s: %w", s.snapshot().Path, err)
	}
	return s.Line(b)
}

// lineTime returns the time in a line, as Stream explains, or the current time.
func lineTime(b []byte) time.Time {
	var at struct {
		Time    *time.Time `json:"time"`
		Journal string     `json:"__REALTIME_TIMESTAMP"`
	}
	if len(b) > 0 && b[0] == '{' && json.Unmarshal(b, &at) == nil {
		if at.Time != nil && !at.Time.IsZero() {
			return *at.Time
		}
		if us, err := strconv.ParseInt(at.Journal, 10, 64); err == nil {
			return time.UnixMicro(us)
		}
	}
	return time.Now()
}

// Alive extends the coverage to t: the source was there at t, even if it had no lines.
func (s *Stream) Alive(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.alive(t)
	}
}

func (s *Stream) alive(t time.Time) {
	t = t.Round(0).UTC()
	c := s.coverage()
	if c.First.IsZero() || t.Before(c.First) {
		c.First = t
	}
	if t.After(c.Last) {
		c.Last = t
	}
}

// Gap records that the stream has no evidence for from..to, and the reason.
func (s *Stream) Gap(from, to time.Time, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	c := s.coverage()
	c.Gaps = append(
		c.Gaps,
		Gap{From: from.Round(0).UTC(), To: to.Round(0).UTC(), Reason: redactString(reason)},
	)
}

// Suppressed adds n lines that the source itself dropped.
func (s *Stream) Suppressed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.coverage().Suppressed += n
	}
}

func (s *Stream) coverage() *Coverage {
	if s.artifact.Coverage == nil {
		s.artifact.Coverage = &Coverage{}
	}
	return s.artifact.Coverage
}

// Close ends the stream; closing twice is fine. It returns the write error that lost data, if there was one.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.failed
	}
	s.closed = true
	s.coverage()
	if s.pack != nil {
		if err := s.pack.Close(); err != nil && s.failed == nil {
			s.failed = fmt.Errorf("closing stream %s: %w", s.artifact.Path, err)
		}
	}
	s.artifact.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	if err := s.file.Close(); err != nil && s.failed == nil {
		s.failed = fmt.Errorf("closing stream %s: %w", s.artifact.Path, err)
	}
	return s.failed
}

// snapshot returns a copy of the artifact as it is now.
func (s *Stream) snapshot() Artifact {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.artifact
	c := Coverage{}
	if a.Coverage != nil {
		c = *a.Coverage
		c.Gaps = slices.Clone(c.Gaps)
	}
	a.Coverage = &c
	return a
}
