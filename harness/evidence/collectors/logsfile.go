package collectors

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
	// forgotten is after how many polls without it a missing file is forgotten. Until then it could come back.
	forgotten = 100
	// longestLine is the most bytes that the parts of a line are put together to. The rest becomes another line.
	longestLine = 1 << 20
)

// componentLog is the state of reading one component's log.
type componentLog struct {
	name  string
	st    *bundle.Stream
	files map[string]*logFile        // by the time of their first line, as it is written
	parts map[string]*bundle.LogLine // lines whose end is still to come, by their container and output
	known time.Time                  // everything up to this time was read
	doubt string                     // why not everything was read at the last poll, "" if it was

	unread string // a file that the current poll could not read
}

// logFile is one log file, whatever its current name is.
type logFile struct {
	container string    // the first name that it had: the folders of its pod and container, and the count of restarts
	began     time.Time // the time of its first line
	last      time.Time // the time of the last line that was read
	known     time.Time // when it was last seen to be read to its end
	offset    int64     // read so far, uncompressed
	size      int64     // at the last poll
	rest      []byte    // the beginning of a line that was read without its end
	gzip      bool
	over      bool // nothing more will be written to it, and all of it was read
	missed    int  // polls in a row without it
}

func newComponentLog(name string, st *bundle.Stream) *componentLog {
	return &componentLog{
		name:  name,
		st:    st,
		files: map[string]*logFile{},
		parts: map[string]*bundle.LogLine{},
		doubt: "the log was never looked at",
	}
}

// knownFiles returns the lines that tell lookScript which files are known: component, first time and offset.
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

// begin prepares for the results of a poll.
func (c *componentLog) begin() {
	c.unread = ""
	for _, f := range c.files {
		f.missed++
	}
}

// saw notes that a file is there, with its first line's time and its path below podLogs.
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

// take records the data that a file has at offset.
func (c *componentLog) take(first string, offset, size int64, data []byte) error {
	f := c.files[first]
	if offset != f.offset {
		return fmt.Errorf(
			"%s from byte %d, and it had been read to byte %d",
			f.container,
			offset,
			f.offset,
		)
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

// line records one of the container runtime's lines, `time output tags text`, or adds it to the parts before it.
// Anything else, such as what a power cut leaves, is recorded as it is, with the time of the line before it.
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

// settle brings coverage and gaps up to date after a poll that began at asked. It reports whether files have more than
// was read.
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
		} else if behind == "" { // files are read in order of age, so everything older was read
			known, behind = f.last, fmt.Sprintf(
				"%s has %d bytes, of which %d were read",
				f.container,
				f.size,
				f.offset,
			)
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

// recordMissing records a gap for what may have been in a file that is gone: from where it was read to the beginning of
// the next file, or to now.
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

// end records the lines whose end didn't come, and a gap for each file that was missing at the last poll.
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
