package match

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"

	"github.com/kube-relapse/relapse/harness/evidence/pasted"
)

// maker is what has made the evidence in a stretch of text and is no component, and the text around it that shows that.
type maker struct{ of, mark string }

// The makers that are no program of their own.
const (
	aTest      = "a test"
	sourceCode = "source code"
)

var (
	// ofTest matches lines that the tools of Go's tests print around what a test has printed: go test, gotestsum, bazel,
	// Ginkgo, testing's own log.
	ofTest = regexp.MustCompile(
		`^\s*(?:=== (?:RUN|PAUSE|CONT|NAME|FAIL|PASS|SKIP)\b|--- (?:FAIL|PASS|SKIP|BENCH): \S|(?:FAIL|ok  )\s+\S+[./]\S+\s+(?:\(cached\)|[0-9.]+s\b|\[)|` +
			`\S*_test\.go:[0-9]+: |panic: test timed out after|={4,} Test output for |Running Suite: |Will run [0-9]+ of [0-9]+ specs|Ran [0-9]+ of [0-9]+ Specs in |` +
			`(?:• )?\[FAIL(?:ED)?\] |Benchmark\w+(?:-[0-9]+)?\s+[0-9]+\s+[0-9.]+ ns/op|\{(?:"Time":"[^"]*",)?"Action":"(?:start|run|output|pause|cont|pass|fail|skip|bench)")`,
	)
	// ofSource matches lines of source code in Go, and of a diff of it.
	ofSource = regexp.MustCompile(
		`^\+?(?:package [a-z][a-z0-9_]*|import (?:\(|"[\w./-]+")|func (?:\(\w+ \*?\w+\) )?\w+\([^()]*\)[^(]*\{|func (?:Test|Benchmark|Fuzz)\w*\(\w+ \*testing\.[TBF]\) \{|` +
			"(?:const|var) \\w+ = [\"`].*|(?:\\+\\+\\+|---) \\S+\\.go|" +
			"\\s*(?:(?:pub|export|static|final|private|public|const|let|var|val|auto) )*(?:String |str )?\\w+(?:: &?'?\\w+(?: \\w+)?)? :?= ?" +
			"(?:r#*\"|[rfb]?\"{3}|'{3}|`)[^\"`]*)\\s*$",
	)
	// aroundBegins are beginnings of lines of ofTest.
	aroundBegins = [][]byte{
		[]byte("=== "), []byte("--- "), []byte("FAIL\t"), []byte(`{"Time":`), []byte(`{"Action":`),
		[]byte("Running Suite: "), []byte("Ran "),
	}
	// aroundMarks are what such lines have where something stands before them.
	aroundMarks = [][]byte{
		[]byte("=== RUN"), []byte("--- FAIL: "), []byte("_test.go:"), []byte(`"Action":"output"`), []byte(" Specs in "),
	}
)

// maxAround is the longest line, in bytes, that is looked at to tell who made what is around it.
const maxAround = 2 << 10

// maxNear is how many lines of a text are searched for marks that don't begin them.
const maxNear = 20_000

// marked reports whether a line may be one that shows who made what is around it. It is asked of each line of a log, so
// that it looks at few bytes.
func (s *source) marked(raw []byte) bool {
	if len(raw) < 4 || raw[0] == '\t' {
		return false
	}
	switch raw[0] {
	case '=', '-', 'F', '{', 'R':
		for _, b := range aroundBegins {
			if bytes.HasPrefix(raw, b) {
				return true
			}
		}
	}
	return s.lines <= maxNear && contains(raw, aroundMarks)
}

// notice notes what a line of a log shows of who made what is around it.
func (s *source) notice(raw []byte) {
	if s.marked(raw) {
		text, _, _ := s.plain(raw)
		s.around(text)
	}
}

// section names the stretch of text of one process, as far as something tells such stretches apart, that the current line
// is in.
func (s *source) section() string { return cmp.Or(s.writer, strconv.Itoa(s.stretches)) }

// around notes what a line shows of who made the evidence around it.
func (s *source) around(text []byte) {
	if len(text) > maxAround {
		return
	}
	of := ""
	switch {
	case ofTest.Match(text):
		of = aTest
	case ofSource.Match(text):
		of = sourceCode
	default:
		return
	}
	if s.makers == nil {
		s.makers = map[string]maker{}
	}
	if at := s.section(); s.makers[at].of == "" {
		text = bytes.TrimSpace(text)
		s.makers[at] = maker{of, string(text[:min(len(text), 60)])}
	}
}

// madeBy returns what has made the evidence in a stretch of text, if that is known to be no component.
func (s *source) madeBy(section string) maker {
	if s.maker.of != "" {
		return s.maker
	}
	return s.makers[section]
}

// owner returns whose the evidence is that a maker has made.
func (m maker) owner() owner { return owner{m.of, "what stands around it, " + m.mark} }

// whose returns the program whose dump it is. What stands around a dump outranks its functions.
func (s *source) whose(d dumped, component string, packages []string) owner {
	if m := s.madeBy(d.section); m.of != "" {
		return m.owner()
	}
	who := whose(d.Dump, component, packages)
	if who.program == component && slices.Contains(kubernetes, component) {
		if other := s.mainAbove(d); other.program != "" {
			return other
		}
		if other := anothersLogs(s.logsOf, component); other.program != "" {
			return other
		}
	}
	return who
}

// mainAbove returns the program whose main goroutine stands right above a dump that has none of its own:
// people paste the one above the panic that ended the same process. It returns none if a line between the
// two or another end of a process shows that they are of two, or if that program is known to have nothing
// of Kubernetes' components.
func (s *source) mainAbove(d dumped) owner {
	i := slices.IndexFunc(s.dumps, func(o dumped) bool { return o.Found == d.Found })
	if i < 1 || hasMain(d.Dump) {
		return owner{}
	}
	above := s.dumps[i-1]
	if above.section != d.section || above.After > 0 || s.ended(above) || ofMains(above.Dump) {
		return owner{}
	}
	return anothersMain(above.Dump)
}

// reported takes it into account that a text is a report of tests.
func (s *source) reported(t pasted.Text) {
	if t.Tests != "" {
		s.maker = maker{aTest, t.Tests[:min(len(t.Tests), 60)]}
	}
}
