package goroutine

import (
	"regexp"
	"slices"
	"strings"
)

// Recovery is a panic that a program recovered from and logged, with the stack of the goroutine.
type Recovery struct {
	First   int    // the line, counted from 0, that the stack begins with or that has all of it
	Message string // what the log says right before the stack, which has the panic's value
	Group          // the goroutine, from its handler down to where it was created
}

// At returns the part of the stack that was there when the goroutine panicked, innermost function first. A function
// that recovers may panic anew, so of several panics the earliest one counts.
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
	stackBegins = regexp.MustCompile(`^(.*?)goroutine \d+ \[running[^\]]*\]:\r?$`)
	stackLike   = regexp.MustCompile(`goroutine \d+ \[running`)
	klogBegins  = regexp.MustCompile(`^[IWEF]\d{4} \d\d:`)
)

// Recoveries returns the panics that a process survived, from the lines that it logged: stacks with a call of panic
// that the runtime did not print while it ended the program. klog indents a value of several lines by a tab and closes
// it by " >". Older programs print the stack as it is. Others put the same before each line, or all of the stack into
// one line, in JSON or between quotes. cut says that something like a stack can't be read, lacks its end, or may be the
// runtime's last words, so that nobody knows what it was about.
func Recoveries(lines []string) (found []Recovery, cut bool) {
	var end died // zero if the process went on
	if all := ends(lines); len(all) > 0 && all[len(all)-1].isEnd(lines) {
		end = all[len(all)-1]
	}
	for i, line := range lines {
		if !stackLike.MatchString(line) {
			continue
		}
		r, unread := recovery(lines, i)
		switch {
		case end.first <= i && i < end.after:
			cut = cut || r != nil && !end.last(lines)
		case r != nil:
			found = append(found, *r)
			fallthrough
		default:
			cut = cut || unread
		}
	}
	return found, cut
}

// recovery returns the panic in the stack that begins with a line or lies within it, nil if nothing panicked on it.
func recovery(lines []string, i int) (r *Recovery, unread bool) {
	begins := stackBegins.FindStringSubmatch(lines[i])
	if begins == nil {
		return within(lines[i], i)
	}
	prefix, message := begins[1], before(lines[:i])
	each := prefix
	if !indented(prefix) && (i+1 == len(lines) || !strings.HasPrefix(lines[i+1], prefix)) {
		each, message = "", message+"\n"+prefix // the header of one entry, which ends with the stack
	}
	stack := lines[i:stackEnd(lines, i+1, each)]
	after := i + len(stack)
	if indented(each) && (after == len(lines) || !strings.HasPrefix(lines[after], " >")) {
		return nil, true
	}
	g, unread := readStack(stack, prefix)
	if !panics(g) {
		return nil, unread
	}
	return &Recovery{First: i, Message: message, Group: *g}, unread
}

// readStack reads one goroutine's stack that has prefix before each line; nil if the lines are no stack. unread says
// that they are no stack, or not all of one.
func readStack(lines []string, prefix string) (g *Group, unread bool) {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimPrefix(l, prefix) + "\n")
	}
	d, err := Read(strings.NewReader(b.String()))
	if err != nil || d.Format != Stacks {
		return nil, true
	}
	return &d.Groups[0], len(d.Groups[0].Frames) == 0 || len(d.Groups) == 1 && d.Truncated
}

func panics(g *Group) bool {
	return g != nil &&
		slices.ContainsFunc(g.Frames, func(f Frame) bool { return f.Func == "panic" })
}

// stackEnd returns the first line from at on that doesn't belong to a stack with that prefix.
func stackEnd(lines []string, at int, prefix string) int {
	for ; at < len(lines); at++ {
		l := lines[at]
		if !strings.HasPrefix(l, prefix) || klogBegins.MatchString(l) || stackBegins.MatchString(l) {
			break
		}
	}
	return at
}

func indented(prefix string) bool { return prefix != "" && strings.Trim(prefix, "\t") == "" }

// before returns the log's last entry: the last line that isn't indented, and the indented lines below it. A line in
// which the runtime names a signal belongs to the line before it.
func before(lines []string) string {
	from := len(lines) - 1
	for from > 0 && lines[from] == "" {
		from--
	}
	lines = lines[:from+1]
	for from > 0 && (strings.HasPrefix(lines[from], "\t") || strings.HasPrefix(lines[from], "[signal ")) {
		from--
	}
	return strings.Join(lines[max(from, 0):], "\n")
}
