// Package profiletext reads profiles as people paste them: a heap profile at debug=1, and what go tool pprof prints with
// -top, -peek and -traces. They become profiles as pprof's protocol buffers hold them.
package profiletext

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// The forms.
const (
	Heap = "heap profile"
	CPU  = "CPU profile"
	Perf = "perf's shares of CPU time" // of which 100 s are taken to be all
)

// Profile is a profile that was text.
type Profile struct {
	*profile.Profile
	Form    string // Heap or CPU
	Program string // the name of the program's file, as pprof prints it; "" if it isn't there
	Line    int    // its first line in the text, from 1
	Part    string // why it may be only a part of a profile; "" if nothing shows that
}

var (
	head     = regexp.MustCompile(`^(File|Build ID|Type|Time|Duration|Showing nodes accounting for|Dropped|Showing top)\b:? ?(.*)$`)
	total    = regexp.MustCompile(`Total samples = ([0-9.]+)(ns|us|µs|ms|s|mins?|hrs?)`)
	lasted   = regexp.MustCompile(`^([0-9.]+)(ns|us|µs|ms|s|mins?|hrs?)`)
	columns  = regexp.MustCompile(`^\s*flat\s+flat%\s+sum%\s+cum\s+cum%`)
	row      = regexp.MustCompile(`^\s*\S+\s+([0-9.]+)%\s+[0-9.]+%\s+\S+\s+([0-9.]+)%(?:\s+\|)?\s+(\S.*?)(?: \(inline\))?\s*$`)
	rule     = regexp.MustCompile(`^-{5,}\+-{5,}`)
	context  = regexp.MustCompile(`^\s+\S+\s+[0-9.]+% \|\s+\S`)
	traced   = regexp.MustCompile(`^\s*([0-9.]+)(ns|us|µs|ms|s|mins?|hrs?|B|[kMGTP]B)\s+(\S+?)(?: \(inline\))?\s*$`)
	untraced = regexp.MustCompile(`^\s+0\s{3}\S+(?: \(inline\))?\s*$`)
	sized    = regexp.MustCompile(`^\s+bytes:\s`)
	allBytes = regexp.MustCompile(`^Showing nodes accounting for .* of ([0-9.]+)(B|[kMGTP]B) total`)
	called   = regexp.MustCompile(`^\s+(\S+?)(?: \(inline\))?\s*$`)
	typeOf   = regexp.MustCompile(`^Type: (\S+)`)
	fileName = regexp.MustCompile(`^File: (\S+)`)

	perfHead = regexp.MustCompile(`^\s*(?:Overhead|Samples:)\s`)
	perfRow  = regexp.MustCompile(
		`^\s*([0-9.]+)%\s+(?:[0-9.]+%\s+)?(?:\S+\s+)??(\S+)\s+\[[.k]\]\s+(\S.*)$`,
	)
)

// Find says which of some lines are of a profile; nil if there is none.
func Find(lines [][]byte) []bool {
	out := make([]bool, len(lines))
	heap, text, found := false, false, false
	for i, l := range lines {
		l = bytes.TrimRight(l, " \t")
		switch {
		case heapBegin.Match(l):
			heap, text = true, false
		case fileName.Match(l) || typeOf.Match(l) || columns.Match(l) || perfHead.Match(l) && i+1 < len(lines) && (perfHead.Match(lines[i+1]) || perfRow.Match(lines[i+1])):
			text, heap = true, false
		case heap:
			heap = len(l) == 0 || l[0] == '#' || heapRecord.Match(l)
		case text:
			text = len(l) == 0 || head.Match(l) || columns.Match(l) || row.Match(l) || rule.Match(l) || context.Match(l) || traced.Match(l) ||
				called.Match(l) || sized.Match(l) || untraced.Match(l) ||
				perfHead.Match(l) ||
				perfRow.Match(l)
		}
		out[i] = heap || text
		found = found || out[i]
	}
	if !found {
		return nil
	}
	return out
}

// Read reads the profiles of a text that has nothing else. The error says what is no profile that can be read.
func Read(text []byte) (all []Profile, err error) {
	var part []string
	begin := 1
	end := func() {
		if len(part) == 0 {
			return
		}
		one, bad := readOne(part)
		one.Line = begin
		begin, part = begin+len(part), nil
		if bad != nil {
			err = errors.Join(err, bad)
			return
		}
		all = append(all, one)
	}
	for _, l := range strings.Split(string(text), "\n") {
		l = strings.TrimRight(l, " \t\r")
		if heapBegin.MatchString(l) || fileName.MatchString(l) && slices.ContainsFunc(part, fileName.MatchString) {
			end()
		}
		part = append(part, l)
	}
	end()
	return all, err
}

func readOne(lines []string) (Profile, error) {
	if heapBegin.MatchString(lines[0]) {
		return readHeap(lines)
	}
	if slices.ContainsFunc(lines, perfRow.MatchString) {
		return readPerf(lines), nil
	}
	return readTop(lines)
}

// shares stands for all of the time of a profile that tells shares only.
const shares = 100 * time.Second

// readPerf reads what perf top and perf report print: which share of the time each function took by itself. The program
// is the one whose functions took most.
func readPerf(lines []string) Profile {
	b := newBuilder(&profile.ValueType{Type: "cpu", Unit: "nanoseconds"})
	left := shares
	of := map[string]time.Duration{}
	out := Profile{Profile: b.p, Form: Perf}
	for _, l := range lines {
		m := perfRow.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		percent, _ := strconv.ParseFloat(m[1], 64) // 0 for what is no number
		spent := min(time.Duration(percent/100*float64(shares)), left)
		left -= spent
		b.add([]string{m[3]}, int64(spent))
		if of[m[2]] += spent; of[m[2]] > of[out.Program] && !strings.HasPrefix(m[2], "[") && !strings.Contains(m[2], ".so") {
			out.Program = path.Base(m[2])
		}
	}
	if left > 0 {
		b.add(nil, int64(left))
	}
	b.p.DurationNanos = int64(shares)
	return out
}

// builder makes a profile of stacks.
type builder struct {
	p         *profile.Profile
	functions map[string]*profile.Location
}

func newBuilder(types ...*profile.ValueType) *builder {
	return &builder{
		&profile.Profile{SampleType: types, PeriodType: types[0], Period: 1},
		map[string]*profile.Location{},
	}
}

func (b *builder) add(stack []string, values ...int64) {
	s := &profile.Sample{Value: values}
	for _, name := range stack {
		l := b.functions[name]
		if l == nil {
			f := &profile.Function{ID: uint64(len(b.functions) + 1), Name: name, SystemName: name}
			l = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			b.functions[name] = l
			b.p.Function, b.p.Location = append(b.p.Function, f), append(b.p.Location, l)
		}
		s.Location = append(s.Location, l)
	}
	b.p.Sample = append(b.p.Sample, s)
}

// readTop reads what go tool pprof prints of a CPU profile, or of what a process has allocated.
func readTop(lines []string) (out Profile, err error) {
	out.Form = CPU
	var all, took time.Duration
	var bytes int64
	trace := false
	for _, l := range lines {
		if m := fileName.FindStringSubmatch(l); m != nil {
			out.Program = path.Base(m[1])
		}
		switch m := typeOf.FindStringSubmatch(l); {
		case m == nil || m[1] == "cpu":
		case m[1] == allocated:
			out.Form = Heap
		default:
			return out, fmt.Errorf(
				"it is a profile of %s as pprof prints it, which no sign asks for",
				m[1],
			)
		}
		if m := total.FindStringSubmatch(l); m != nil {
			all = duration(m[1], m[2])
		}
		if m := allBytes.FindStringSubmatch(l); m != nil {
			bytes = amount(m[1], m[2])
		}
		if rest, ok := strings.CutPrefix(l, "Duration: "); ok {
			if m := lasted.FindStringSubmatch(rest); m != nil {
				took = duration(m[1], m[2])
			}
		}
		trace = trace || traced.MatchString(l)
	}
	b, whole := newBuilder(&profile.ValueType{Type: "cpu", Unit: "nanoseconds"}), int64(all)
	if out.Form == Heap {
		b, whole = newBuilder(&profile.ValueType{Type: allocated, Unit: "bytes"}), bytes
	} else if whole == 0 {
		whole = int64(shares)
	}
	b.p.DurationNanos = int64(took)
	if slices.ContainsFunc(lines, columns.MatchString) {
		readRows(b, lines, whole)
	} else if trace {
		readTraces(b, lines)
	}
	if len(b.p.Sample) == 0 || took == 0 && out.Form == CPU {
		return out, errors.New("it looks like a profile that pprof printed, and has no table or no duration that can be read")
	}
	out.Profile = b.p
	return out, nil
}

// allocated is pprof's name for what a process has allocated since it began, freed again or not.
const allocated = "alloc_space"

// readRows reads the table of -top, or of -peek without the rows of callers. A table tells of each function how much of
// the time it was on the stack, and not together with which others. So the functions are laid into each other, those with
// the most time outermost: each has its own time, and several of them together have never more than they really have.
func readRows(b *builder, lines []string, all int64) {
	type function struct {
		name string
		cum  int64
	}
	var rows []function
	for _, l := range lines {
		if context.MatchString(l) && !row.MatchString(l) {
			continue
		}
		m := row.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		flat, _ := strconv.ParseFloat(m[1], 64) // the pattern allows nothing but numbers; 0 for one with two points
		cum, _ := strconv.ParseFloat(m[2], 64)
		rows = append(
			rows,
			function{m[3], int64(min(max(flat, cum), 100) / 100 * float64(all))},
		)
	}
	slices.SortStableFunc(rows, func(a, b function) int { return cmp.Compare(b.cum, a.cum) })
	var stack []string
	if len(rows) > 0 && rows[0].cum < all {
		b.add(nil, all-rows[0].cum)
	}
	for i, r := range rows {
		stack = append([]string{r.name}, stack...)
		left := r.cum
		if i+1 < len(rows) {
			left -= rows[i+1].cum
		}
		if left > 0 {
			b.add(slices.Clone(stack), left)
		}
	}
}

// readTraces reads the stacks of -traces.
func readTraces(b *builder, lines []string) {
	var stack []string
	var spent int64
	end := func() {
		if spent > 0 {
			b.add(stack, spent)
		}
		stack, spent = nil, 0
	}
	for _, l := range lines {
		switch m := traced.FindStringSubmatch(l); {
		case rule.MatchString(l):
			end()
		case m != nil && spent == 0:
			stack, spent = []string{m[3]}, amount(m[1], m[2])
		case spent > 0:
			if m := called.FindStringSubmatch(l); m != nil {
				stack = append(stack, m[1])
			}
		}
	}
	end()
}

// amount reads a number of bytes, or a time in nanoseconds, as pprof prints them.
func amount(n, unit string) int64 {
	power := strings.Index("kMGTP", strings.TrimSuffix(unit, "B")) + 1
	if !strings.HasSuffix(unit, "B") {
		return int64(duration(n, unit))
	}
	if unit == "B" {
		power = 0
	}
	x, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return 0
	}
	return int64(min(x*math.Pow(1024, float64(power)), 1e17))
}

// duration reads a time as pprof prints it.
func duration(n, unit string) time.Duration {
	x, err := strconv.ParseFloat(n, 64)
	if err != nil {
		return 0
	}
	each := map[string]time.Duration{"ns": 1, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
		"min": time.Minute, "mins": time.Minute, "hr": time.Hour, "hrs": time.Hour}[unit]
	return time.Duration(min(x*float64(each), 1e17))
}
