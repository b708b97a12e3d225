package match

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/archive"
	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// watched is what a check asks people to watch: a resource, and the component that writes its objects.
type watched struct{ component, resource string }

// watch is what is known of the rows of a watch.
type watch struct {
	asked   []watched // what checks ask people to watch
	command string    // what stands after get in the command above the rows; "" if there is none
	file    string    // the file's name
	kind    string    // that stands before the names; "" if none does
	apart   bool      // each row says in which namespace its object is
}

var (
	// watchedRow matches a row with the name of an object and a time in it. Before the name may be the namespace or the
	// kind.
	watchedRow = regexp.MustCompile(
		`^((?:[A-Za-z0-9.-]+/)?[a-z0-9][a-z0-9.-]*)(?:\s+([a-z0-9][a-z0-9.-]*))?` +
			`\s+([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)\s*$`,
	)
	// watchedHeader matches the names of the columns of such rows.
	watchedHeader = regexp.MustCompile(`^(NAMESPACE\s+)?NAME(?:\s+[A-Z][A-Z0-9_-]*)+\s*$`)
	// namespace matches the name of a namespace. One of digits only is rather a count.
	namespace = regexp.MustCompile(`^[a-z0-9-]*[a-z][a-z0-9-]*$`)
	// gets matches a command that prints objects.
	gets = regexp.MustCompile(`\b(?:kubectl|oc|k)\s(?:.*\s)?get\s+(\S.*)$`)
)

// leastRows is how many rows a watch has at least, so that a short list of objects is not taken for one.
const leastRows = 10

// watchesIn finds the rows of watches, with the commands and the headers above them.
func watchesIn(lines []pasted.Line) []bool {
	out := make([]bool, len(lines))
	n := 0
	for i, l := range lines {
		row := watchedRow.Match(l.Text)
		if row {
			n++
		}
		out[i] = row || watchedHeader.Match(l.Text) || isGet(l.Text)
	}
	if n < leastRows {
		return nil
	}
	return out
}

func isGet(line []byte) bool { return bytes.Contains(line, []byte("get")) && gets.Match(line) }

// watchesWithin reads the rows below each command by themselves.
func (e *evidence) watchesWithin(
	f archive.Entry,
	lines []pasted.Line,
	as func(form, lacks string),
) error {
	from := 0
	for i := 1; i <= len(lines); i++ {
		if i == len(lines) || isGet(lines[i].Text) {
			e.watchWithin(f, lines[from:i], as)
			from = i
		}
	}
	return nil
}

// watchWithin keeps the rows of a watch as lines in their order: where a time goes back, several objects have one name.
func (e *evidence) watchWithin(
	f archive.Entry,
	lines []pasted.Line,
	as func(form, lacks string),
) {
	s := newSource(f)
	s.watch = &watch{asked: e.rules.watched, file: path.Base(f.Path), apart: true}
	var header []byte
	for _, l := range lines {
		if m := gets.FindSubmatch(l.Text); m != nil {
			s.watch.command = string(m[1])
		}
		if watchedHeader.Match(l.Text) {
			header = l.Text
		}
		m := watchedRow.FindStringSubmatch(string(l.Text))
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, m[3])
		if err != nil {
			continue
		}
		name := s.watch.name(m[1], m[2], header)
		s.watch.apart = s.watch.apart && strings.Contains(name, "/")
		if len(s.kept) == 0 || at.Before(s.first) {
			s.first = at
		}
		if at.After(s.last) {
			s.last = at
		}
		s.kept = append(
			s.kept,
			line{at: s.last, path: f.Path, text: name + " " + m[3], n: l.N, words: lines[0].N},
		)
	}
	if len(s.kept) == 0 {
		return
	}
	s.lines, s.log, s.tells = len(s.kept), len(s.kept), true
	e.sources = append(e.sources, s)
	as(
		"a watch of objects, with a name and a time in each row",
		"it holds nothing else of the objects, and not who wrote them",
	)
}

// name returns the name of a row's object, with its namespace if the row has that. A header says what two columns are.
func (w *watch) name(first, second string, header []byte) string {
	before, name, slash := strings.Cut(first, "/")
	switch {
	case slash && (strings.Contains(before, ".") || slices.ContainsFunc(w.asked, func(a watched) bool { return a.is(before) })):
		w.kind = before
		return name
	case slash && namespace.MatchString(before):
		return first
	case slash: // a kind that nobody asks for
		w.kind = before
		return name
	case second == "" || header != nil && !bytes.HasPrefix(header, []byte("NAMESPACE")):
		return first
	case header != nil || namespace.MatchString(first) && strings.ContainsAny(second, "abcdefghijklmnopqrstuvwxyz"):
		return first + "/" + second
	}
	return first
}

// is reports whether a word stands for the resource, as people write it for kubectl: in the singular or the plural, with
// its group, its version or neither.
func (a watched) is(word string) bool {
	plural, group, _ := strings.Cut(a.resource, ".")
	name, of, _ := strings.Cut(strings.ToLower(word), ".")
	return (name == plural || name+"s" == plural) &&
		(of == "" || of == group || strings.HasSuffix(of, "."+group))
}

// owner returns the component whose objects the rows show, if the component is certain, or else what is missing. Other
// objects are written all the time, too: nodes, leases, what other controllers care for. And rows of several objects
// with one name, or of a list of them, look like those of one.
func (w *watch) owner(component string) owner {
	at := slices.IndexFunc(w.asked, func(a watched) bool { return a.component == component })
	if at < 0 {
		return owner{}
	}
	a := w.asked[at]
	by, watches := w.says(a)
	switch {
	case by == "" && w.command != "":
		return owner{by: fmt.Sprintf("the command above its rows doesn't ask for %s", a.resource)}
	case by == "":
		return owner{
			by: fmt.Sprintf(
				"no command, no kind and no file's name says that its rows are of %s, and others are written as often",
				a.resource,
			),
		}
	case !watches && !w.apart:
		return owner{
			by: "its rows may be of a list, or of objects of several namespaces: they don't name these, and nothing says -w",
		}
	}
	return owner{component, by}
}

// says returns what says that the rows are of a resource, "" if nothing does, and whether it says that they are of a
// watch.
func (w *watch) says(a watched) (by string, watches bool) {
	if w.command != "" {
		for _, word := range strings.Fields(w.command) {
			switch flag := strings.HasPrefix(word, "-"); {
			case flag:
				watches = watches || word == "-w" ||
					strings.HasPrefix(word, "--watch") && word != "--watch=false"
			case slices.ContainsFunc(strings.FieldsFunc(word, func(r rune) bool { return r == ',' || r == '/' }), a.is):
				by = "the command above its rows, get " + w.command
			}
		}
		return by, watches
	}
	words := strings.FieldsFunc(
		strings.ToLower(w.file),
		func(r rune) bool { return !('a' <= r && r <= 'z') },
	)
	watches = slices.Contains(words, "watch")
	if w.kind != "" {
		if a.is(w.kind) {
			by = "the kind in its rows, " + w.kind
		}
		return by, watches
	}
	_, group, _ := strings.Cut(a.resource, ".")
	group, _, _ = strings.Cut(group, ".")
	ours := func(word string) bool {
		return word == group || a.is(word) ||
			strings.Contains(w.file, a.component) &&
				slices.Contains(strings.Split(a.component, "-"), word)
	}
	// A name that says more may be of anything of the group: fleet-leases.txt.
	more := slices.ContainsFunc(
		words,
		func(word string) bool { return !ours(word) && !slices.Contains(ofWatches, word) },
	)
	if slices.ContainsFunc(words, a.is) || slices.ContainsFunc(words, ours) && !more {
		by = "the name of its file, " + w.file
	}
	return by, watches
}

// ofWatches are words in the names of files that don't say what is watched.
var ofWatches = []string{"watch", "get", "output", "out", "txt", "log", "stamps", "status", "churn"}
