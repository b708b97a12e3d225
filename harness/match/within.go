package match

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
	"github.com/kube-relapse/relapse/harness/evidence/profiletext"
)

// inner is a form of evidence that people paste into a text, below the command that printed it or in a fence.
type inner struct {
	// find returns which lines are of that form; none if there is nothing of it.
	find func([]pasted.Line) []bool
	// read reads these lines.
	read func(e *evidence, f archive.Entry, lines []pasted.Line, as func(form, lacks string)) error
}

// inners returns the forms that are tried one after the other: a text may have several of them.
func inners() []inner {
	return []inner{
		{samplesIn, (*evidence).samplesWithin},
		{resourcesIn, (*evidence).resourcesWithin},
		{profilesIn, (*evidence).profilesWithin},
		{watchesIn, (*evidence).watchesWithin},
	}
}

// within reads the forms of evidence that a text has beside logs and dumps. done says that nothing else is in it.
func (e *evidence) within(
	f archive.Entry,
	t pasted.Text,
	as func(form, lacks string),
) (done bool, err error) {
	taken := make([]bool, len(t.Lines))
	any := false
	for _, form := range inners() {
		mine := form.find(t.Lines)
		var lines []pasted.Line
		for i, is := range mine {
			if is {
				taken[i], lines = true, append(lines, t.Lines[i])
			}
		}
		if len(lines) == 0 {
			continue
		}
		any = true
		err = errors.Join(err, form.read(e, f, lines, func(form, lacks string) {
			if len(t.Did) > 0 {
				form += "; " + strings.Join(t.Did, ", ")
			}
			as(form, lacks)
		}))
	}
	if !any {
		return false, nil
	}
	for i, l := range t.Lines {
		if !taken[i] && !l.Prose && !besides.Match(l.Text) && len(bytes.TrimSpace(l.Text)) > 0 {
			return false, err
		}
	}
	return true, err
}

// besides matches what stands around output: a prompt with a command, a fence.
var besides = regexp.MustCompile("^(?:\\S*(?: [~/]\\S*)?[$#>%] |\\s*(?:```|~~~))")

// raw joins lines to a text.
func raw(lines []pasted.Line) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.Write(l.Text)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

var (
	sampleType = regexp.MustCompile(`^# (?:HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* `)
	sampleLine = regexp.MustCompile(
		`^[a-zA-Z_:][a-zA-Z0-9:]*_[a-zA-Z0-9_:]*(?:\{[^{}]*\})? (?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|[-+]Inf)(?: [0-9]+)?$`,
	)
)

// samplesIn finds metrics: lines with a type, or at least two samples below each other.
func samplesIn(lines []pasted.Line) []bool {
	out := make([]bool, len(lines))
	sample := func(i int) bool { return i >= 0 && i < len(lines) && sampleLine.Match(lines[i].Text) }
	found := false
	for i, l := range lines {
		out[i] = sampleType.Match(l.Text) ||
			sample(i) && (sample(i-1) || sample(i+1) || i > 0 && out[i-1])
		found = found || out[i]
	}
	if !found {
		return nil
	}
	return out
}

func (e *evidence) samplesWithin(
	f archive.Entry,
	lines []pasted.Line,
	as func(form, lacks string),
) error {
	return e.metrics(f, bytes.NewReader(raw(lines)), as)
}

var resourceBegin = regexp.MustCompile(`^(?:apiVersion: \S|\{\s*$|\{\s*"(?:apiVersion|kind)":)`)

// resourcesIn finds resources as kubectl prints them: from their first line to a fence, a prompt or an empty line.
func resourcesIn(lines []pasted.Line) []bool {
	out := make([]bool, len(lines))
	in, found := false, false
	for i, l := range lines {
		switch {
		case len(bytes.TrimSpace(l.Text)) == 0 || besides.Match(l.Text):
			in = false
		case !in && resourceBegin.Match(l.Text):
			in = l.Text[0] != '{' || document(raw(lines[i:min(len(lines), i+3)]))
		}
		out[i] = in
		found = found || in
	}
	if !found {
		return nil
	}
	return out
}

func (e *evidence) resourcesWithin(
	f archive.Entry,
	lines []pasted.Line,
	as func(form, lacks string),
) error {
	var err error
	for from, i := 0, 1; i <= len(lines); i++ { // each of them by itself
		if i == len(lines) || lines[i].N > lines[i-1].N+1 || resourceBegin.Match(lines[i].Text) && lines[i].Text[0] != '{' {
			err = errors.Join(err, e.document(f, bufio.NewReader(bytes.NewReader(raw(lines[from:i]))), as))
			from = i
		}
	}
	return err
}

// profilesIn finds profiles as text.
func profilesIn(lines []pasted.Line) []bool {
	texts := make([][]byte, len(lines))
	for i, l := range lines {
		texts[i] = l.Text
	}
	return profiletext.Find(texts)
}

func (e *evidence) profilesWithin(
	f archive.Entry,
	lines []pasted.Line,
	as func(form, lacks string),
) error {
	all, err := profiletext.Read(raw(lines))
	for _, one := range all {
		s := newSource(f)
		at := s.took
		took := time.Duration(one.Profile.DurationNanos)
		kind, lacks := bundle.CPU, lacksCPU
		if one.Form == profiletext.Heap {
			kind, lacks = bundle.Heap, lacksHeap
		}
		if one.Form == profiletext.Perf {
			lacks = "it holds shares of what ran, for all of which 100 s stand here, and nothing of what waits"
		}
		one.Profile.TimeNanos = at.UnixNano()
		var b bytes.Buffer
		if bad := one.Profile.Write(&b); bad != nil {
			return errors.Join(err, bad)
		}
		where := fmt.Sprintf("%s:%d", f.Path, lines[one.Line-1].N) // a text may have several
		s.profiles = []profiled{{kind: kind, path: where, raw: b.Bytes(), at: bundle.Window{Start: at, End: at.Add(took)}, part: one.Part}}
		s.funcs(one.Profile)
		s.program = one.Program
		e.sources = append(e.sources, s)
		form := one.Form + " as text"
		if one.Part != "" {
			form += ", not all of it"
		}
		as(form, lacks)
	}
	return err
}
