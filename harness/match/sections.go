package match

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
)

// The beginnings of two lines. kubectl cluster-info dump prints the logs of each container between them: below each
// other in the file of a pod, or on one page among resources.
const (
	logsBegin = "==== START logs for container "
	logsEnd   = "==== END logs for container "
)

var ofContainer = regexp.MustCompile(`^` + logsBegin + `(\S+) of pod (\S+) ====\s*$`)

// atLogs reports whether a container's logs come next.
func atLogs(in *bufio.Reader) bool {
	head, _ := in.Peek(len(logsBegin)) // a shorter rest is no mark
	return string(head) == logsBegin
}

// containerLogs reads the logs of one container, which begin after the line with the number above. It returns how many
// lines they have, with the two marks.
func (e *evidence) containerLogs(f archive.Entry, in *bufio.Reader, above int) (int, error) {
	first, _, err := nextLine(in, new([]byte))
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	m := ofContainer.FindSubmatch(first)
	if m == nil {
		return 0, fmt.Errorf("line %d begins a container's logs and doesn't say whose", above+1)
	}
	s := newSource(f)
	s.named, s.segments, s.folder, s.above = []string{string(m[1])}, nil, fmt.Sprintf("%s, pod %s", f.Path, m[2]), above+1
	s.took = time.Time{} // the page's time is not the log's
	logs := &section{in: in}
	err = e.text(s, bufio.NewReader(logs))
	e.sources = append(e.sources, s)
	what, lacks := s.form()
	if what == "" {
		what = "nothing"
	}
	e.inputs = append(
		e.inputs,
		Input{f.Path, fmt.Sprintf("logs of container %s of pod %s: %s", m[1], m[2], what), lacks},
	)
	if !logs.over {
		err = errors.Join(
			err,
			fmt.Errorf("the logs of container %s of pod %s have no end", m[1], m[2]),
		)
	}
	return s.lines + 2, err
}

// section reads up to the mark at the end of a container's logs, and consumes the line of the mark.
type section struct {
	in   *bufio.Reader
	rest []byte
	over bool
}

// Read ends at the mark. If the last line of the log has no end, the mark is in that line.
func (s *section) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if s.over {
			return 0, io.EOF
		}
		line, err := s.in.ReadSlice('\n')
		if i := bytes.Index(line, []byte(logsEnd)); i >= 0 {
			line, s.over = line[:i], true
		}
		if len(line) == 0 && s.over {
			return 0, io.EOF
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && len(line) == 0 {
			return 0, err
		}
		s.rest = line
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// newlines counts the lines that were read through it.
type newlines struct {
	io.Reader
	n int
}

func (c *newlines) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += bytes.Count(p[:n], []byte("\n"))
	return n, err
}
