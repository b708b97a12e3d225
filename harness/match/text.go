package match

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// line is a line that was kept of a log.
type line struct {
	at         time.Time
	path, from string // from is the program that a journal names
	text       string // without the prefix that logs put before it
	n          int
	words      int // the number of the line with the last words that it belongs to; 0 if there are none
	section    string
	untimed    bool // it tells no time: at is that of a line near it, or of the file
}

// source is what was kept of one file.
type source struct {
	path, folder string
	named        []string // names in its path that may be the component's
	from         []string // the programs that its lines name, as a journal's do
	dumps        []dumped
	kept         []line
	others, size int // kept lines that only a check asks for that wants all, and their bytes
	above        int // lines of the file before the first
	lines, lost  int // lost lines were too long, too many, or could not be read
	log          int // lines that belong to no dump
	first, last  time.Time
	versions     []announcement
	owner        owner             // of what is here, once the source was split
	segments     []string          // of its path
	places       map[string]*place // places in the program that log, by file and line
	samples      []bundle.MetricSample
	process      bundle.IdentitySample // the process of the samples; PID is 0 if they don't tell it
	profiles     []profiled
	functions    *goroutine.Dump      // of the profiles; they show whose profiles these are
	program      string               // the file of the program that a profile names; "" if it names none
	took         time.Time            // when the file was written, as its archive or disk says; zero if not known
	ref          time.Time            // near the times of the lines: gives the year and the zone that lines lack
	began        moment               // of the first line of the current dump
	words        int                  // the number of the line with the current last words
	commands     []string             // the commands in the text that printed it
	logsOf       []string             // whose logs these commands printed
	stated       []announcement       // versions that the text states of programs, whoever wrote it
	watch        *watch               // what is known of these rows; nil if they are of no watch
	headed       bool                 // a goroutine's header came below them
	inside       bool                 // the current line comes below a dump, or in it
	firsts       map[string]time.Time // when the first line of each program that the lines name was written; "" if they name none
	tells        bool                 // some line says when it was written
	folded       []byte               // the current line in lower case
	number       func(int) int        // of a line in the file, by how many were read up to it; nil if these are the same
	part         func() string        // why dumps in what was read so far may lack something
	writer       string               // the pod that has written the last line, and its container; "" if lines don't tell
	stretches    int                  // that the text has, as far as something tells them apart
	makers       map[string]maker     // by stretch
	maker        maker                // of all
	prose        bool                 // the current line explains something, and was not logged
	chosen       bool                 // the text has prose: a person chose what is in it, of whatever time and process
	teaches      bool                 // the text explains something to others
	images       []string             // that the text names
	picked       bool                 // a tool took its lines out of files, which it names
	starting     int                  // lines that announce a version
	heads        map[uint64]int       // of the current dump
	observations int                  // panics that handlers have logged
	lacking      string               // why dumps in the file may lack something; "" if nothing shows that

	ends map[*goroutine.Found]bool // dumps that were printed as a process ended; nil until that was asked
}

// at returns the number in the file of the nth line that was read.
func (s *source) at(n int) int {
	if s.number != nil {
		n = s.number(n)
	}
	return s.above + n
}

// dumped is a dump, and when it was taken.
type dumped struct {
	*goroutine.Found
	moment
	part    string         // why it may be a part of a dump although its text isn't cut; "" otherwise
	heads   map[uint64]int // the lines of goroutines' headers, by their ids; of the first of very many
	section string
}

// copies reports whether a dump is that of another file once more: it has the same goroutines, in the same states and for
// as long. What takes a dump has another goroutine each time.
func (d dumped) copies(o dumped) bool {
	return d.clock == clockFiles && o.clock == clockFiles && d.Total == o.Total &&
		len(d.Groups) == len(o.Groups) &&
		reflect.DeepEqual(d.Groups, o.Groups)
}

// moment is a time, zero if it isn't known, and the clock that told it. Times of two clocks can't be compared: a log
// may be of any zone, and the time of a file may be that of its copy.
type moment struct {
	at    time.Time
	clock string // "" if there is none
}

// The clocks of times that say their zone, and of files. For a log without a zone, its path is the clock.
const (
	clockUTC   = "UTC"
	clockFiles = "files"
)

// newSource returns a source for a file of which nothing is kept yet.
func newSource(f archive.Entry) *source {
	s := &source{
		path:     f.Path,
		folder:   path.Dir(f.Path),
		named:    named(f.Path),
		segments: segments(f.Path),
		took:     f.ModTime,
	}
	s.ref = s.took
	if s.took.Year() < 2000 { // archives say 1970 or 1980 for none
		s.took, s.ref = time.Time{}, time.Now()
	}
	return s
}

const (
	maxLine = 1 << 20
	maxKept = 20_000   // lines that checks ask for, and as many of all others
	maxSize = 16 << 20 // bytes of those others
	dying   = 400      // lines that are kept from the first of a panic on: its stack
)

var (
	lastWords = regexp.MustCompile(`^(panic|fatal error): `)
	// announced matches the lines in which components announce their version at their start.
	announced = regexp.MustCompile(
		`(?i)^(?:"?(?:starting|version info|kubelet version)[^=]*version="?|` +
			`starting kubelet,? version:? |version: )(v[0-9]+\.[0-9]+\.[0-9]+[-+.\w]*)`,
	)
	words    = [][]byte{[]byte("panic: "), []byte("fatal error: ")}
	versions = [][]byte{
		[]byte(`version="v`),
		[]byte(`version=\"v`),
		[]byte("version: v"),
		[]byte("kubelet version v"),
		[]byte(`version":"v`),
		[]byte(`version": "v`),
		[]byte(`etcd-version":`),
	}
)

// text reads a file that may hold a log, dumps, or both.
func (e *evidence) text(
	s *source,
	in *bufio.Reader,
) error {
	return e.lines(s, &plainFeed{in: in})
}

// lines reads a text that may hold a log, dumps, or both, line by line.
func (e *evidence) lines(s *source, in feed) error {
	var finder goroutine.Finder
	var firstLine, lastLine []byte
	stack := 0
	s.number, s.part = in.number, in.part
	for {
		raw, cut, err := in.next()
		unended := errors.Is(err, io.EOF)
		if err != nil && !unended {
			s.lost++
			s.found(finder.End(true), false)
			s.times(firstLine, lastLine)
			return fmt.Errorf("after line %d: %w", s.lines, err)
		}
		if unended && len(raw) == 0 {
			s.found(finder.End(false), true)
			break
		}
		s.lines++
		if cut {
			s.lost++
		}
		if who, begins := s.boundary(raw); begins {
			s.found(finder.End(false), false)
			s.writer, stack = who, 0
			s.stretches++
		}
		s.notice(raw)
		inside, sieve := finder.Inside(), e.rules.sieve
		if inside > 0 && s.lacking == "" && len(raw) > 0 && raw[0] != '\t' && pasted.LeftOut(raw) {
			s.lacking = "something was left out of it"
		}
		if inside > 0 {
			sieve = e.rules.asked
		}
		// Within a dump most bytes are in lines that name a file, and these begin with a tab. Nothing that is asked for
		// begins with one.
		passed := !(inside > 0 && len(raw) > 0 && raw[0] == '\t') && sieve.passes(raw)
		if inside > 0 || passed {
			s.found(finder.Line(raw), false)
		} else {
			finder.Skip()
		}
		now := finder.Inside()
		s.inside = now > 0
		if s.inside {
			s.head(raw)
		}
		if now > inside {
			_, _, s.began = s.plain(raw)
		}
		if len(raw) > 0 && now == 0 {
			s.log++
			s.logged(raw)
		}
		if firstLine == nil {
			firstLine = bytes.Clone(raw)
		}
		lastLine = append(lastLine[:0], raw...)
		if passed || stack > 0 || e.rules.all || s.sampled() {
			s.prose = in.prose()
			e.line(s, raw, passed, &stack)
		}
		if unended {
			s.found(finder.End(true), true)
			break
		}
	}
	if s.log > 0 && s.log == s.starting && len(s.dumps) == 0 {
		s.picked = true
	}
	s.doubtPicked()
	s.times(firstLine, lastLine)
	if s.lost > 0 {
		return fmt.Errorf(
			"%d lines were over %d bytes long, or beyond the %d that checks ask for: not read",
			s.lost,
			maxLine,
			maxKept,
		)
	}
	return nil
}

// found adds a dump. The dump is as old as its first line says, or as the file if nothing else is in it. A dump without
// a time in the middle of other text may be of any time since the line above it.
func (s *source) found(d *goroutine.Found, atEnd bool) {
	if d == nil {
		return
	}
	defer func() { s.heads = nil }()
	at := s.began
	if alone := atEnd && d.After+s.log+len(s.dumps) == 0; alone && at.clock == "" && !s.took.IsZero() {
		at = moment{s.took, clockFiles}
	}
	d.Line = s.at(d.Line)
	withoutParking(d.Dump)
	part := ""
	if !d.Truncated {
		if part = s.unproven(d); s.lacking != "" {
			part = "may lack something: " + s.lacking
		} else if why := s.part(); why != "" {
			part = "may lack something: " + why
		}
		d.Truncated = part != ""
	}
	s.dumps = append(s.dumps, dumped{d, at, part, s.heads, s.section()})
}

// withoutParking takes the functions of parking off the stacks of a dump.
func withoutParking(d *goroutine.Dump) {
	for i, g := range d.Groups {
		d.Groups[i].Frames = slices.DeleteFunc(
			g.Frames,
			func(f goroutine.Frame) bool { return slices.Contains(parking, f.Func) },
		)
	}
}

// parking are functions of the runtime. If GOTRACEBACK asks for them, a dump shows them on top of the call that waits.
var parking = []string{
	"runtime.gopark",
	"runtime.goparkunlock",
	"runtime.chansend",
	"runtime.chansend1",
	"runtime.chanrecv",
	"runtime.chanrecv1",
	"runtime.chanrecv2",
	"runtime.selectgo",
	"runtime.block",
	"runtime.semacquire1",
}

// times sets when the log begins and ends, as far as its lines tell.
func (s *source) times(first, last []byte) {
	_, _, from := s.plain(first)
	_, _, to := s.plain(last)
	all := []time.Time{from.at, to.at}
	for _, l := range s.kept {
		all = append(all, l.at)
	}
	s.first, s.last = s.ref, s.ref
	found := false
	for _, t := range all {
		if t.IsZero() {
			continue
		}
		if !found || t.Before(s.first) {
			s.first = t
		}
		if !found || t.After(s.last) {
			s.last = t
		}
		found = true
	}
}

// plain returns the text of a line, the program that the line names, and when it was written, as far as the line says.
func (s *source) plain(raw []byte) (text []byte, from string, when moment) {
	text, p := goroutine.Plain(raw, s.ref.Location())
	if p.Time.IsZero() {
		l, _ := klog.Parse(text, s.ref)
		p.Time = l.Time
	} else if p.Time.Year() == 0 {
		p.Time = klog.Nearest(p.Time, s.ref)
	}
	switch {
	case p.Zoned:
		when = moment{p.Time, clockUTC}
	case !p.Time.IsZero():
		when = moment{p.Time, s.path}
	}
	return text, p.From, when
}
