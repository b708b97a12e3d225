package redact

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// wanted says which lines of a kind of log the checks of a trial need.
type wanted struct {
	by       []string         // checks that need every line
	patterns []*regexp.Regexp // what the others ask for
	dying    map[string]int   // by file: how many lines below last words are still to be kept
}

// takenOut is the text of a line that no check needs.
const takenOut = "[taken out]"

// lastWords begin the line in which a Go program says why it ends. These lines are kept for every check, and so are the
// stacks below them, of which stackLines are enough.
var lastWords = regexp.MustCompile(`^(?:panic: |fatal error: )`)

const stackLines = 2000

// wantedLines returns which lines of each kind of log the checks of a trial need.
func wantedLines(t plan.Trial) map[bundle.Kind]*wanted {
	out := map[bundle.Kind]*wanted{
		bundle.Logs:    {dying: map[string]int{}},
		bundle.Journal: {dying: map[string]int{}},
	}
	for _, list := range [][]plan.Check{t.Steady, t.Exposure, t.Signature, t.Healed, t.Info} {
		for _, c := range list {
			need(out, c)
		}
	}
	return out
}

func need(of map[bundle.Kind]*wanted, c plan.Check) {
	for _, alternative := range c.AnyOf {
		need(of, alternative)
	}
	if c.Spec == nil {
		return
	}
	for kind, w := range of {
		if !slices.Contains(c.Spec.Reads(), kind) {
			continue
		}
		picker, picks := c.Spec.(check.LinePicker)
		if !picks {
			w.by = append(w.by, c.Name)
			continue
		}
		for _, p := range picker.Lines() {
			re, err := regexp.Compile("(?i)" + p)
			if err != nil {
				w.by = append(w.by, c.Name)
				continue
			}
			w.patterns = append(w.patterns, re)
		}
	}
}

// journalFields are the fields of a journal's record that anybody reads.
var journalFields = setOf("__REALTIME_TIMESTAMP _PID _SYSTEMD_UNIT SYSLOG_IDENTIFIER MESSAGE")

// line takes the text out of a line that no check needs, and out of a journal's record the fields that nobody reads.
func (w *wanted) line(m map[string]any, kind bundle.Kind, out *Result) {
	key, file := "text", ""
	if kind == bundle.Journal {
		key = "MESSAGE"
		file, _ = m["_SYSTEMD_UNIT"].(string)
		for k := range m {
			if !journalFields[k] {
				delete(m, k)
			}
		}
	} else {
		file, _ = m["file"].(string)
	}
	text, isText := m[key].(string)
	if lastWords.MatchString(text) {
		w.dying[file] = stackLines
	}
	out.Lines++
	if !isText || len(w.by) > 0 || w.dying[file] > 0 ||
		slices.ContainsFunc(
			w.patterns,
			func(re *regexp.Regexp) bool { return re.MatchString(text) },
		) {
		w.dying[file]--
		return
	}
	if strings.TrimSpace(text) != "" {
		m[key] = takenOut
		out.TakenLines++
	}
}
