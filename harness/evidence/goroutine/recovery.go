package goroutine

import (
	"regexp"
	"slices"
	"strings"
)

// Recovery is a panic that a program recovered from, as the program logged it itself: with the stack of its goroutine.
type Recovery struct {
	First   int    // the line that the stack begins with, counted from 0
	Message string // what the log says right before the stack, which has the panic's value
	Group          // the goroutine, from its handler down to where it was created
}

// At is the part of the stack that was there when the goroutine panicked, innermost function first. What has recovered
// from a panic may panic anew, so of several panics it is below the first.
func (r Recovery) At() Group {
	g := r.Group
	for i, f := range slices.Backward(g.Frames) {
		if f.Func == "panic" {
			g.Frames = g.Frames[i+1:]
			break
		}
	}
	return g
}

var (
	stackBegins = regexp.MustCompile(`^(\t*)goroutine \d+ \[running[^\]]*\]:$`)
	klogBegins  = regexp.MustCompile(`^[IWEF]\d{4} \d\d:`)
	lastWords   = regexp.MustCompile(`^(panic|fatal error): `)
)

// LastWords is the line, counted from 0, in which the runtime says why it ends the program; -1 if there is none. Its
// words begin a line, unlike what programs log about panics themselves.
func LastWords(lines []string) int { return slices.IndexFunc(lines, lastWords.MatchString) }

// Recoveries finds the panics in the lines of one process that it lived through: a stack with a call of panic, logged
// before the runtime's last words, if there are any. klog indents a value of several lines by a tab and closes it by
// " >"; older programs print the stack as it is. cut says that an indented stack lacks its end, so that nobody knows
// what it was about.
func Recoveries(lines []string) (found []Recovery, cut bool) {
	if last := LastWords(lines); last >= 0 {
		lines = lines[:last]
	}
	for i, line := range lines {
		begins := stackBegins.FindStringSubmatch(line)
		if begins == nil {
			continue
		}
		indent := begins[1]
		stack := lines[i:stackEnd(lines, i+1, indent)]
		if after := i + len(stack); indent != "" && (after == len(lines) || lines[after] != " >") {
			cut = true
			continue
		}
		d, err := Read(strings.NewReader(unindented(stack, indent)))
		if err != nil {
			continue
		}
		if g := d.Groups[0]; slices.ContainsFunc(g.Frames, func(f Frame) bool { return f.Func == "panic" }) {
			found = append(found, Recovery{First: i, Message: before(lines[:i]), Group: g})
		}
	}
	return found, cut
}

// stackEnd is the first line from at on that is not part of a stack with that indent.
func stackEnd(lines []string, at int, indent string) int {
	for ; at < len(lines); at++ {
		l := lines[at]
		if !strings.HasPrefix(l, indent) || klogBegins.MatchString(l) || stackBegins.MatchString(l) {
			break
		}
	}
	return at
}

func unindented(lines []string, indent string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, indent) + "\n")
	}
	return b.String()
}

// before is the log's last entry: its last line that isn't indented, and what is indented below it.
func before(lines []string) string {
	from := max(len(lines)-1, 0)
	for from > 0 && strings.HasPrefix(lines[from], "\t") {
		from--
	}
	return strings.Join(lines[from:], "\n")
}
