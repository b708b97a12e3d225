package capture

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const (
	// forgotten is after how many looks without it a file that is gone is no longer remembered. Until then it could
	// come back.
	forgotten = 100
	// longestLine bounds what is put together of a line's parts; the rest is a line of its own.
	longestLine = 1 << 20
)

// componentLog is what is known of one component's log.
type componentLog struct {
	name  string
	st    *bundle.Stream
	files map[string]*logFile        // by the time of their first line, as it is written
	parts map[string]*bundle.LogLine // lines whose end is still to come, by their container and output
	known time.Time                  // up to when all was read
	doubt string                     // why that isn't now, "" if it is

	unread string // of this look: a file that can't be read
}

// logFile is one file, under whatever name it is now.
type logFile struct {
	container string    // the name that it was born with: its pod's folder, its container's, and the count of restarts
	began     time.Time // its first line's
	last      time.Time // the last line's that was read
	known     time.Time // when it was last seen to be read to its end
	offset    int64     // read so far, uncompressed
	size      int64     // when it was looked at
	rest      []byte    // read, and without the newline at its end
	gzip      bool
	over      bool // nothing more will be written to it, and all was read
	missed    int  // looks since it was seen
}

func newComponentLog(name string, st *bundle.Stream) *componentLog {
	return &componentLog{name: name, st: st, files: map[string]*logFile{}, parts: map[string]*bundle.LogLine{},
		doubt: "the log was never looked at"}
}

// knownFiles is what the script is told.
func (c *componentLog) knownFiles() []string {
	var out []string
	for t, f := range c.files {
		offset := fmt.Sprint(f.offset)
		if f.gzip && f.offset == f.size {
			offset = "done"
		}
		out = append(out, c.name+" "+t+" "+offset)
	}
	return out
}

// begin makes ready for a look.
func (c *componentLog) begin() {
	c.unread = ""
	for _, f := range c.files {
		f.missed++
	}
}

// saw notes that a file is there, under the path below podLogs.
func (c *componentLog) saw(first, path string) error {
	at, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return fmt.Errorf("%s begins with the time %q: %w", path, first, err)
	}
	f := c.files[first]
	if f == nil {
		i := strings.LastIndex(path, ".log")
		if i < 0 {
			return fmt.Errorf("%q is no log file", path)
		}
		f = &logFile{container: path[:i] + ".log", began: at}
		c.files[first] = f
	}
	f.missed = 0
	f.gzip = strings.HasSuffix(path, ".gz")
	return nil
}

// take records what a file has at offset.
func (c *componentLog) take(first string, offset, size int64, data []byte) error {
	f := c.files[first]
	if offset != f.offset {
		return fmt.Errorf("%s from byte %d, and it had been read to byte %d", f.container, offset, f.offset)
	}
	f.offset += int64(len(data))
	f.size = size
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}
		line := data[:end]
		if len(f.rest) > 0 {
			line = append(f.rest, line...)
			f.rest = nil
		}
		c.line(f, line)
		data = data[end+1:]
	}
	if f.rest = append(f.rest, data...); len(f.rest) > longestLine {
		c.flush(f)
	}
	return nil
}

// flush records a line whose end didn't come.
func (c *componentLog) flush(f *logFile) {
	if len(f.rest) > 0 {
		c.line(f, f.rest)
		f.rest = nil
	}
}

// line records one of the runtime's lines, `time output tags text`, or adds it to those before it. What isn't one, such
// as what a power cut leaves, is recorded as it is, with the time of the line before it.
func (c *componentLog) line(f *logFile, raw []byte) {
	stamp, rest, _ := bytes.Cut(raw, []byte(" "))
	output, rest, _ := bytes.Cut(rest, []byte(" "))
	tags, text, ok := bytes.Cut(rest, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	tag, _, _ := strings.Cut(string(tags), ":")
	if !ok || err != nil || tag != "P" && tag != "F" {
		if at = f.last; at.IsZero() {
			at = f.began
		}
		c.record(bundle.LogLine{Time: at, File: f.container, Text: string(raw)})
		return
	}
	at = at.UTC()
	f.last = at
	key := f.container + " " + string(output) // the rest of a line may be in the next file
	p := c.parts[key]
	if p == nil {
		p = &bundle.LogLine{Time: at, File: f.container}
		c.parts[key] = p
	}
	p.Text += string(text)
	if tag == "F" || len(p.Text) > longestLine {
		delete(c.parts, key)
		c.record(*p)
	}
}

func (c *componentLog) record(l bundle.LogLine) { _ = c.st.JSON(l) } // a full disk shows in Close

// settle draws the conclusions of a look that began at asked. It reports whether files have more than was taken in.
func (c *componentLog) settle(asked time.Time) (more bool) {
	var here []*logFile
	for _, f := range c.files {
		if f.missed == 0 {
			here = append(here, f)
		}
	}
	slices.SortFunc(here, func(a, b *logFile) int { return a.began.Compare(b.began) })
	c.doubt = c.unread
	if len(here) == 0 {
		c.doubt = cmp.Or(c.doubt, fmt.Sprintf("there is no log file of %s", c.name))
	}
	for first, f := range c.files {
		switch {
		case f.missed > 1 && !f.over:
			c.recordMissing(f, here, asked)
		case f.missed == 1 && !f.over: // a listing may miss a file that is being renamed
			c.doubt = cmp.Or(c.doubt, f.container+" was not there")
		case f.missed > forgotten:
			delete(c.files, first)
		}
	}
	known := asked
	behind := ""
	for i, f := range here {
		whole := f.offset == f.size
		if whole {
			f.known = asked
		} else if behind == "" { // files are read in the order of their age, so that what is older was read
			known, behind = f.last, fmt.Sprintf("%s has %d bytes, of which %d were read", f.container, f.size, f.offset)
		}
		f.over = whole && i < len(here)-1
		more = more || f.offset < f.size
	}
	if c.doubt == "" && known.After(c.known) {
		c.known = known
	}
	if c.doubt = cmp.Or(c.doubt, behind); c.doubt == "" {
		c.st.Alive(asked)
	}
	return more
}

// recordMissing records what may have been in a file that is gone: from where it was read to the beginning of the next file, or
// to now.
func (c *componentLog) recordMissing(f *logFile, here []*logFile, now time.Time) {
	c.flush(f)
	from, to := f.began, now
	for _, t := range []time.Time{f.last, f.known} {
		if t.After(from) {
			from = t
		}
	}
	for _, next := range here {
		if next.began.After(f.began) {
			to = next.began
			break
		}
	}
	if to.After(from) {
		c.st.Gap(from, to, f.container+" vanished before it was read to its end")
	}
	f.over = true
}

// end records what is left of lines whose end didn't come, and what was lost so late that nobody looked again.
func (c *componentLog) end() {
	for _, f := range c.files {
		c.flush(f)
		if f.missed > 0 && !f.over {
			c.recordMissing(f, nil, time.Now())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.parts)) {
		c.record(*c.parts[key])
	}
}
