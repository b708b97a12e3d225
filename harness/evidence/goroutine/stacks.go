package goroutine

import (
	"bytes"
	"strconv"
	"time"
)

// stacks parses debug=2 line by line. As the hot path it allocates only for a new group. Frames that a cgo symbolizer
// named are skipped; those without a name are kept as `non-Go function`.
//
// Within a goroutine a function's line counts only once its file's line follows, so that log lines of other goroutines,
// which a crashing program may print in between, are passed over.
type stacks struct {
	key    []byte // of the current goroutine: see groups
	head   member
	labels []byte // backs head.labels
	open   bool   // inside a goroutine
	called bool   // key ends with a function that has no file yet,
	mark   int    // which begins here
	frames int
	past   bool // after the creator: the stacks of ancestors are not this goroutine's
	cut    bool
	total  int
	ids    map[uint64]struct{} // those so far, if another dump may follow; else nil
	again  bool                // one of ids came a second time: another dump has begun
	arenas map[uint64]int      // arena -> how often it is among the arguments of the first stacks
}

var (
	goroutineWord = []byte("goroutine ")
	createdBy     = []byte("created by ")
	inGoroutine   = []byte(" in goroutine ")
	originating   = []byte("[originating from goroutine ")
	elided        = []byte("elided...")
	dots          = []byte("...")
	unavailable   = []byte("goroutine running on other thread; stack unavailable")
	nonGo         = []byte("non-Go function")
	labelsWord    = []byte(" labels:{")
	labelsEnd     = []byte("}")
	stateEnd      = []byte("]:")
	hexMark       = []byte("0x")
)

func (s *stacks) line(gs *groups, line []byte) {
	if len(line) == 0 {
		s.flush(gs)
		return
	}
	switch c := line[0]; {
	case c == '\t':
		if s.open && !s.past {
			s.file(line[1:])
		}
	case c == 'g' && bytes.HasPrefix(line, goroutineWord) && s.header(gs, line):
	case c == 'g' && brokenHeader(line):
		s.cut = true
	case !s.open || s.past:
	case c == 'c' && bytes.HasPrefix(line, createdBy):
		s.creator(line[len(createdBy):])
	case line[len(line)-1] == ')':
		if i := bytes.LastIndexByte(line, '('); i > 0 {
			s.function(line[:i])
			if s.total < arenaStacks {
				s.addresses(line[i:])
			}
		}
	case c == '.' && bytes.HasPrefix(line, dots) && bytes.HasSuffix(line, elided):
		s.placeless(line)
	case c == 'n' && bytes.HasPrefix(line, nonGo):
		s.placeless(nonGo)
	case c == '[' && bytes.HasPrefix(line, originating):
		s.past = true
	}
}

// creator begins the frame of the go statement.
func (s *stacks) creator(name []byte) {
	for {
		i := bytes.LastIndex(name, inGoroutine)
		if i < 0 {
			break
		}
		name = name[:i]
	}
	if name = bytes.TrimRight(name, "\r"); len(name) == 0 {
		return
	}
	s.forget()
	s.mark, s.called = len(s.key), true
	s.key = append(append(append(s.key, '\n'), name...), '\n')
}

// arenaStacks is the number of stacks that suffices to tell a process's arena.
const arenaStacks = 64

// addresses counts the arenas of the addresses among a call's arguments. Below 4 GiB lies the program itself.
func (s *stacks) addresses(args []byte) {
	for {
		_, rest, ok := bytes.Cut(args, hexMark)
		if !ok {
			return
		}
		n := 0
		for n < len(rest) && ('0' <= rest[n] && rest[n] <= '9' || 'a' <= rest[n] && rest[n] <= 'f') {
			n++
		}
		if at, err := strconv.ParseUint(string(rest[:n]), 16, 48); err == nil && at>>32 > 0 {
			if s.arenas == nil {
				s.arenas = map[uint64]int{}
			}
			s.arenas[at>>32]++
		}
		args = rest[n:]
	}
}

// arena returns the arena that more than half of the addresses are in; 0 if there is none. With few arguments, most may
// be numbers, such as durations, that look like addresses, each in another arena.
func (s *stacks) arena() uint64 {
	all := 0
	for _, n := range s.arenas {
		all += n
	}
	for at, n := range s.arenas {
		if 2*n > all {
			return at
		}
	}
	return 0
}

// placeless adds a frame without a file.
func (s *stacks) placeless(name []byte) {
	s.forget()
	s.key = append(append(s.key, name...), '\n', '\n')
	s.frames++
}

// function begins a frame.
func (s *stacks) function(name []byte) {
	s.forget()
	s.mark, s.called = len(s.key), true
	s.key = append(append(s.key, name...), '\n')
}

// forget drops a function for which no file came: the line was somebody else's.
func (s *stacks) forget() {
	if s.called {
		s.key, s.called = s.key[:s.mark], false
	}
}

// file ends a frame by the text after the tab: `file:line`, then ` +0x1f fp=…` or nothing.
func (s *stacks) file(at []byte) {
	if !s.called {
		if bytes.Equal(at, unavailable) {
			s.frames++ // the runtime has no stack to print: nothing was lost on the way
		}
		return
	}
	end := placeEnd(at)
	if end == 0 {
		return
	}
	creator := s.key[s.mark] == '\n'
	s.key = append(append(s.key, at[:end]...), '\n')
	s.called = false
	if creator {
		s.past = true
	} else {
		s.frames++
	}
}

// placeEnd returns the length of the `file:line` at the beginning of at, 0 if there is none. A path may contain spaces
// and colons, so the search begins at the end: for the last colon with a number as Go writes it, before the offsets.
func placeEnd(at []byte) int {
	for end := len(at); end > 0; {
		i := end
		for i > 0 && '0' <= at[i-1] && at[i-1] <= '9' {
			i--
		}
		if n := end - i; i > 1 && at[i-1] == ':' && (n == 1 || 1 < n && n < 10 && at[i] != '0') {
			return end
		}
		end = bytes.LastIndexByte(at[:end], ' ')
	}
	return 0
}

// header begins a goroutine if the line is a goroutine's header.
func (s *stacks) header(gs *groups, line []byte) bool {
	h, ok := parseHeader(line)
	if !ok {
		return false
	}
	if s.ids != nil {
		if _, s.again = s.ids[h.id]; s.again {
			return true
		}
		s.ids[h.id] = struct{}{}
	}
	s.flush(gs)
	s.open, s.past, s.frames = true, false, 0
	s.key = append(append(s.key[:0], h.state...), '\n')
	s.labels = append(s.labels[:0], h.labels...)
	s.head = member{
		count:  1,
		id:     h.id,
		hasID:  true,
		wait:   h.wait,
		locked: h.locked,
		labels: s.labels,
	}
	return true
}

// brokenHeader reports whether a line is the beginning of a goroutine's header, whose end is lost.
func brokenHeader(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, goroutineWord)
	if !ok {
		return bytes.HasPrefix(goroutineWord, line)
	}
	if bytes.HasSuffix(line, stateEnd) {
		return false
	}
	rest = bytes.TrimLeft(rest, "0123456789")
	return len(rest) == 0 || bytes.HasPrefix(rest, []byte(" [")) && bytes.IndexByte(rest, ']') < 0
}

// flush ends the current goroutine, if any.
func (s *stacks) flush(gs *groups) {
	if !s.open {
		return
	}
	if s.called || s.frames == 0 {
		s.cut = true
	}
	s.forget()
	s.open = false
	s.total++
	gs.add(s.key, s.head)
}

type header struct {
	id     uint64
	state  []byte
	wait   time.Duration
	locked bool
	labels []byte
}

// parseHeader reads `goroutine N [state, M minutes, locked to thread labels:{…}]:`, with `gp=… m=… mp=…` before the
// bracket or not (goroutineheader in runtime/traceback.go).
func parseHeader(line []byte) (h header, ok bool) {
	if !bytes.HasPrefix(line, goroutineWord) || !bytes.HasSuffix(line, stateEnd) {
		return h, false
	}
	rest := line[len(goroutineWord):]
	i := 0
	for ; i < len(rest) && '0' <= rest[i] && rest[i] <= '9'; i++ {
		if i >= 19 { // no uint64 overflows below
			return h, false
		}
		h.id = h.id*10 + uint64(rest[i]-'0')
	}
	open := bytes.IndexByte(rest, '[')
	if i == 0 || open < i+1 || rest[i] != ' ' || rest[open-1] != ' ' {
		return h, false
	}
	if open > i+1 && !bytes.HasPrefix(rest[i:], []byte(" gp=")) {
		return h, false
	}
	in := rest[open+1 : len(rest)-len(stateEnd)]
	if l := bytes.Index(in, labelsWord); l >= 0 && bytes.HasSuffix(in, labelsEnd) {
		h.labels = in[l+len(labelsWord) : len(in)-1]
		in = in[:l]
	}
	h.state, in, _ = bytes.Cut(in, []byte(", "))
	for len(in) > 0 {
		var attr []byte
		attr, in, _ = bytes.Cut(in, []byte(", "))
		if string(attr) == "locked to thread" {
			h.locked = true
		} else if n, ok := bytes.CutSuffix(attr, []byte(" minutes")); ok {
			if m, err := strconv.ParseInt(string(n), 10, 32); err == nil && m > 0 {
				h.wait = time.Duration(m) * time.Minute
			}
		}
	}
	h.state = withoutRemarks(h.state)
	return h, len(h.state) > 0 && !bytes.Contains(h.state, labelsWord)
}

// withoutRemarks returns a state without the runtime's remarks, which come and go while the goroutine stays where it
// is.
func withoutRemarks(state []byte) []byte {
	for len(state) > 0 && state[len(state)-1] == ')' {
		cut, ok := state, false
		for _, r := range [...]string{" (scan)", " (leaked)", " (durable)"} {
			if cut, ok = bytes.CutSuffix(state, []byte(r)); ok {
				break
			}
		}
		if !ok {
			break
		}
		state = cut
	}
	return state
}
