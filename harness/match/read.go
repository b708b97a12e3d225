package match

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// evidence is everything that was read.
type evidence struct {
	rules    *rules
	sources  []*source
	objects  []object
	trials   []*subject // the arms of relapse's own bundles
	bundled  []*Trial
	versions map[string][]string
	restarts []Restart
	warnings []Warning
	inputs   []Input
	problems []archive.Problem
	bundles  []string // folders with a bundle of relapse's own
	close    func()
}

// What a form of evidence can't hold.
const (
	lacksLog     = "it holds no goroutines but those that a crash prints, and nothing from before its first line"
	lacksProfile = "it tells neither what goroutines wait for nor for how long: take debug=2"
	lacksCPU     = "it holds what ran, and nothing of what waits"
	lacksHeap    = "it holds what keeps memory, and nothing of what waits"
	lacksStacks  = "it is of one moment: of what lasts it has only the minutes that it prints"
	lacksMoment  = "it is of one moment: it holds no goroutines, no logs and no changes"
)

// read reads all paths. It opens relapse's own bundles as bundles.
func (e *evidence) read(ctx context.Context, paths []string, stdin io.Reader) error {
	for _, p := range paths {
		e.bundles = append(e.bundles, onDiskBelow(p)...)
	}
	problems, err := archive.Walk(ctx, paths, archive.Options{Stdin: stdin}, e.entry)
	e.problems = append(e.problems, problems...)
	if err != nil {
		return err
	}
	return e.ours(ctx, paths)
}

// entry reads one file in the form that its content shows.
func (e *evidence) entry(f archive.Entry) error {
	if e.inside(f.Path) {
		return nil
	}
	in := bufio.NewReaderSize(f.Reader, 256<<10)
	if mark, err := in.Peek(2); err == nil && (mark[0] == 0xff && mark[1] == 0xfe || mark[0] == 0xfe && mark[1] == 0xff) {
		// UTF-16, in which Windows' shell saves what a program prints.
		in = bufio.NewReaderSize(
			transform.NewReader(
				in,
				unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder(),
			),
			256<<10,
		)
	}
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" { // as Windows' programs begin UTF-8
		in.Discard(3)
	}
	if head, err := in.Peek(64); err == nil || err == io.EOF {
		if order, ok := pasted.Wide(head); ok {
			in = bufio.NewReaderSize(
				transform.NewReader(in, unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder()),
				256<<10,
			)
		}
	}
	head, err := in.Peek(4 << 10)
	if err != nil && err != io.EOF {
		return err
	}
	if e.rules == nil && path.Base(f.Path) != bundle.ManifestFile { // only bundles are looked for
		return nil
	}
	as := func(form, lacks string) { e.inputs = append(e.inputs, Input{f.Path, form, lacks}) }
	switch begin := bytes.TrimSpace(head); {
	case len(begin) == 0:
		as("empty", "")
	case path.Ext(f.Path) == ".go" && goSource.Match(head), sourceBegin.Match(begin):
		as("source code", ofSourceCode)
	case bytes.HasPrefix(begin, []byte(klog.ExportMark)):
		s := newSource(f)
		err := e.text(s, bufio.NewReaderSize(klog.FromExport(in), 256<<10))
		e.sources = append(e.sources, s)
		what, lacks := s.form()
		as("journal in the export form, each record of which counts as a line: "+what, lacks)
		return err
	case bytes.IndexByte(head, 0) >= 0 || !text(head):
		return e.profile(f, in, as)
	case path.Base(f.Path) == bundle.ManifestFile && bytes.Contains(head, []byte(bundle.ManifestSchema)):
		e.bundles = append(e.bundles, path.Dir(f.Path))
	case exposition.Match(begin):
		return e.metrics(f, in, as)
	case document(begin):
		return e.document(f, in, as)
	default:
		return e.anyText(f, in, as)
	}
	return nil
}

// ofSourceCode says why source code shows nothing.
const ofSourceCode = "what it quotes, as a test does, was seen by nobody"

// goSource matches the clause that a file in Go begins with, below its comments.
var goSource = regexp.MustCompile(`(?m)^package [a-z][a-z0-9_]*\s*$`)

// sourceBegin matches how source code begins, whatever its file is called: with the program that runs it or, below
// comments, with the clause of a package, an import, or the list of tests that a file of YAML has.
var sourceBegin = regexp.MustCompile(
	`\A#! ?/|\A(?:(?://|#)[^\n]*\n|---\n|\s*\n)*(?:package [a-z][\w.]*;?\s*\n|import [a-z_][\w.,* ]*;?\s*\n|` +
		`from [\w.]+ import [^\n]+\n|import [^\n]* from ['"][^\n]+\n|(?:const|let|var) [^\n]{1,200}= require\([^\n]+\n|` +
		`(?:pub )?(?:use|mod) [\w:{}*, ]+;\s*\n|#include [<"][^\n]+\n|(?:tests|test_cases|testcases|fixtures):\s*\n\s*- )`,
)

// exposition matches the beginning of a file of metrics: a type, or a sample with another line of metrics below it. A
// word and a number alone may be anything, such as a version.
var exposition = regexp.MustCompile(
	`^(?:# (?:HELP|TYPE) [a-zA-Z_:]|` + sampleBegin + `\n(?:# (?:HELP|TYPE) |` + sampleBegin + `(?:\n|\z)))`,
)

const sampleBegin = `[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^\n]*\})? (?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|NaN|[-+]Inf)(?: [0-9]+)?`

// text reports whether the beginning of a file is text: UTF-8, apart from a few bytes.
func text(head []byte) bool {
	bad := 0
	for b := head; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			bad++
		}
		b = b[n:]
	}
	return bad*50 <= len(head)
}

// form returns the form in which a text was read, and what that form can't hold.
func (s *source) form() (as, lacks string) {
	var parts []string
	for _, d := range s.dumps {
		what := fmt.Sprintf("goroutine dump (%s) with %d goroutines", d.Format, d.Total)
		switch {
		case d.part != "":
			what += ", perhaps not all"
		case d.Truncated:
			what += ", cut short"
		}
		parts, lacks = append(parts, what), lacksStacks
		if !d.Format.HasStates() {
			lacks = lacksProfile
		}
	}
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("and %d more", len(parts)-3))
	}
	if s.log > 0 {
		parts, lacks = append(parts, fmt.Sprintf("text of %d lines", s.log)), lacksLog
		if !s.tells {
			parts[len(parts)-1] += " without times"
		}
		if len(s.from) > 0 {
			parts[len(parts)-1] += " by " + list(s.from[:min(len(s.from), 5)])
		}
	}
	return list(parts), lacks
}

// containerLog matches the name that the kubelet gives the log of a container: pod_namespace_container-id.log.
var containerLog = regexp.MustCompile(`_([a-z0-9.-]+)-[0-9a-f]{64}$`)

// named returns the names in the last segments of a path that may be a component's, without the endings of files. The
// folder of a container is among these segments.
func named(p string) (out []string) {
	for _, part := range segments(p) {
		part, _, _ = strings.Cut(part, ".")
		out = append(out, part)
		if m := containerLog.FindStringSubmatch(part); m != nil {
			out = append(out, m[1])
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// segments returns the last four segments of a path.
func segments(p string) []string {
	parts := strings.Split(p, "/")
	return parts[max(0, len(parts)-4):]
}

// union adds the strings to a list that are not in it yet, without "".
func union(all []string, more ...string) []string {
	for _, x := range more {
		if x != "" && !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}
