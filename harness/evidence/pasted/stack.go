package pasted

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The names that stand for what a paste has lost.
const (
	noPlace = "\tnot in the text:0"
	// noHeader begins a goroutine whose header is lost. Its id is one that no process reaches.
	noHeader = "goroutine %d [%s]:"
	lostID   = 1<<60 - 1
)

// lostIDs matches the ids of goroutines whose headers are lost, of which a text has at most some thousands.
var lostIDs = regexp.MustCompile(`\b1152921504606[0-9]{6}\b`)

// Shown returns the text of a stack without what stands for what a paste has lost.
func Shown(stack string) string {
	stack = strings.ReplaceAll(stack, "\n"+noPlace, "")
	stack = strings.TrimSuffix(stack, " "+strings.TrimSpace(noPlace))
	return lostIDs.ReplaceAllString(stack, "?")
}

// assembler puts stacks together.
type assembler struct {
	t       *Text
	out     []Line
	in      bool // within a goroutine
	gap     int  // lines since the last one of the goroutine
	own     bool // in what the runtime prints of its own stack, which has no header
	races   bool // the text has reports of data races, whose stacks have no headers
	last    kind // of the line before, in it
	doubled int  // how many empty lines stand between two lines of a stack; 0 if none
	profile bool // a profile has begun
	died    int  // lines since the last words of a program; 0 if there are none
	lost    uint64
}

// assemble puts back what a paste has lost or added within stacks: tabs, empty lines, the places of frames, headers.
func (t *Text) assemble() {
	if !mayHaveStacks(t.Lines) {
		return
	}
	looks := make([]look, len(t.Lines))
	for i, l := range t.Lines {
		looks[i] = lookAt(l.Text)
	}
	a := assembler{t: t, out: make([]Line, 0, len(t.Lines))}
	a.races = slices.ContainsFunc(
		looks,
		func(l look) bool { return bytes.Contains(l.text, []byte("WARNING: DATA RACE")) },
	)
	bare := withoutPlaces(looks)
	nexts := following(looks)
	for i := range looks {
		next := nexts[i]
		switch now := looks[i]; {
		case now.blank:
			a.blank(t.Lines[i], looks, i, next)
		case now.kind == header:
			a.in, a.own = true, false
			a.add(t.Lines[i], now, "")
		case now.kind == function || now.kind == creator:
			a.call(t.Lines[i], looks, i, next, bare)
		case now.kind == place && a.in && (a.last == function || a.last == creator):
			a.add(t.Lines[i], now, "\t")
		case now.kind == frame:
			a.frame(t.Lines[i], now)
		case now.kind == count && !a.in:
			a.total(t.Lines[i], looks, i, next)
		default:
			a.foreign(t.Lines[i], now)
		}
		a.words(looks[i])
	}
	t.Lines = a.out
}

// call takes a line with a function. Where its place is lost, it says so.
func (a *assembler) call(l Line, looks []look, i int, next look, bare bool) {
	if !a.in {
		indented := len(looks[i].text) > 0 && (looks[i].text[0] == ' ' || looks[i].text[0] == '\t')
		placed := next.kind == place || a.died > 0 && next.kind == function // what a program prints as it dies is a stack
		if !placed || a.own || a.races || indented {
			a.out = append(a.out, l)
			return
		}
		a.begin(l)
	}
	alone := a.gap > 0
	a.add(l, looks[i], "")
	lost := next.kind != place &&
		(next.kind != other || LeftOut(next.text) || looksBlank(looks, i+1) || bare)
	if lost && !alone && (i+1 < len(looks) || bare) {
		a.insert(l, looks[i].lead, noPlace)
		a.last = place
		a.t.part("frames have lost their lines of files")
	}
}

// othersLog is how many lines other threads may log between two lines of a stack.
const othersLog = 20

// foreign takes a line that is not of a stack.
func (a *assembler) foreign(l Line, now look) {
	switch {
	case string(now.text) == "runtime stack:" || now.indented:
		a.in, a.own = false, true
	case bytes.HasPrefix(now.text, []byte("==> ")): // another file's lines begin
		a.in, a.own = false, false
	default:
		a.profile = a.profile || bytes.Contains(now.text, []byte("profile: "))
		a.gap++
		a.in = a.in && a.gap <= othersLog
	}
	a.out = append(a.out, l)
}

// withoutPlaces reports whether the frames of a text have no places at all.
func withoutPlaces(looks []look) bool {
	heads := false
	for i, l := range looks {
		if l.kind == place {
			return false
		}
		heads = heads || (l.kind == header || dying.Match(l.text)) && i+1 < len(looks)
	}
	return heads
}

// following returns for each line the next one that isn't empty.
func following(looks []look) []look {
	out := make([]look, len(looks))
	var next look
	for i := len(looks) - 1; i >= 0; i-- {
		if out[i] = next; !looks[i].blank {
			next = looks[i]
		}
	}
	return out
}

func looksBlank(looks []look, i int) bool { return i < len(looks) && looks[i].blank }

// blanksAround returns how many empty lines stand together with one; no more than maxBlanks are counted.
func blanksAround(looks []look, i int) (n int) {
	const maxBlanks = 16
	from := i
	for from > 0 && i-from < maxBlanks && looks[from-1].blank {
		from--
	}
	for n < maxBlanks && looksBlank(looks, from+n) {
		n++
	}
	return n
}

// blank keeps an empty line unless it stands within a goroutine.
func (a *assembler) blank(l Line, looks []look, i int, next look) {
	if a.in {
		within := a.last == header && (next.kind == function || next.kind == creator) ||
			(a.last == function || a.last == creator) && next.kind == place
		run := blanksAround(looks, i)
		if within {
			a.doubled = max(a.doubled, run)
		}
		if within || run <= a.doubled && a.last == place && (next.kind == function || next.kind == creator) {
			a.t.did("took empty lines out of stacks")
			return
		}
		if a.last == place {
			a.in = false
		}
	}
	a.own = false
	a.out = append(a.out, l)
}

// add adds a line of a goroutine, with this indent.
func (a *assembler) add(l Line, now look, indent string) {
	core := bytes.TrimSpace(now.text)
	if string(now.text) != indent+string(core) {
		a.t.did("put tabs back")
	}
	if len(now.lead)+len(indent)+len(core) != len(l.Text) || string(now.text) != indent+string(core) {
		l.Text = append(append(bytes.Clone(now.lead), indent...), core...)
	}
	a.out = append(a.out, l)
	a.last, a.gap = now.kind, 0
}

// insert adds a line that is not in the text.
func (a *assembler) insert(at Line, lead []byte, text string) {
	a.out = append(a.out, Line{Text: append(bytes.Clone(lead), text...), N: at.N})
}

// begin begins a goroutine whose header is lost. Below a program's last words it is the one that ran; of any other it
// isn't known what it waits for.
func (a *assembler) begin(at Line) {
	state := "unknown"
	if a.died > 0 {
		state = "running"
	}
	lead, _ := inner(at.Text)
	a.insert(at, lead, fmt.Sprintf(noHeader, lostID-a.lost, state))
	a.in, a.last = true, header
	a.lost++
	a.t.part("a goroutine has lost its header")
}

// words notes the last words of a program, below which its goroutine is printed at once.
func (a *assembler) words(now look) {
	switch {
	case dying.Match(now.text):
		a.died = 1
	case a.died > 0 && now.kind == other && a.died < 8:
		a.died++
	default:
		a.died = 0
	}
}

// frame puts back the tabs of a frame of a profile.
func (a *assembler) frame(l Line, now look) {
	core := bytes.TrimSpace(now.text)
	if m := frameds.FindSubmatch(core); !bytes.HasPrefix(core, []byte("#\t")) || bytes.Count(core, []byte("\t")) < 3 {
		l.Text = append(bytes.Clone(now.lead), bytes.Join([][]byte{[]byte("#"), m[1], m[2], m[3]}, []byte("\t"))...)
		a.t.did("put tabs back")
	}
	a.out = append(a.out, l)
}

// total puts a header above the counted stacks of a profile that has lost its own.
func (a *assembler) total(l Line, looks []look, i int, next look) {
	if !a.profile && next.kind == frame {
		n := 0
		for _, c := range looks[i:] {
			if c.kind == count {
				var one int
				fmt.Sscan(string(bytes.TrimSpace(c.text)), &one) // 0 where it is no number that a process can have
				n += one
			}
		}
		a.insert(l, looks[i].lead, fmt.Sprintf("goroutine profile: total %d", n))
		a.t.part("the profile has lost its header")
	}
	a.profile = true
	a.out = append(a.out, l)
}

// part says why a dump may lack something.
func (t *Text) part(why string) {
	if t.Part == "" {
		t.Part = why
	}
	t.did("put together what was left: " + why)
}
