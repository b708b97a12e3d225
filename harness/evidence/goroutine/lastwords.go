package goroutine

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// died is the place in a log where Go's runtime ends its program: it prints the reason, and then the goroutines'
// stacks. A handler that recovers from a panic may print the same, but then the log goes on.
type died struct {
	first int // the line with the reason
	after int // the line after the last of the stacks
}

const (
	// OthersLog is the most lines that other threads may log between two lines of the runtime, and after them before
	// the program is gone.
	OthersLog = 20
	// atOnce is the most lines between the reasons of two threads that end the program at once.
	atOnce = 3
)

var (
	diedWords  = regexp.MustCompile(`^(panic|fatal error): `)
	framePlace = regexp.MustCompile(`^\t\S.*\.(go|s):\d+( |$)`)
	register   = regexp.MustCompile(`^[a-z]\w* +0x[0-9a-f]+$`) // printed below the stacks with GOTRACEBACK=crash
)

// LastWords returns the line, counted from 0, in which the runtime gives its reason for ending the program; -1 if there
// is none. The runtime's words begin a line, unlike what programs log about panics themselves. Of several such lines
// the last one counts, because the program survived the earlier ones. A line without a stack counts only where the log
// ends with it.
func LastWords(lines []string) int {
	all := ends(lines)
	for _, d := range slices.Backward(all) {
		if d.isEnd(lines) {
			return d.first
		}
	}
	for _, d := range slices.Backward(all) { // a log of several processes goes on with the next one's lines
		if d.after > d.first+1 {
			return d.first
		}
	}
	return -1
}

// ends returns the places where the runtime ends the program, and those that look like it, in order.
func ends(lines []string) (all []died) {
	for i, line := range lines {
		if !diedWords.MatchString(line) || withinStack(lines[i+1:]) || handled(lines[i:]) {
			continue
		}
		d := died{i, i + 1}
		for k := i + 1; k < len(lines) && k-d.after < OthersLog; k++ {
			if (d.after > i+1 || k > i+atOnce) && diedWords.MatchString(lines[k]) && !withinStack(lines[k+1:]) {
				break
			}
			if ofStacks(lines[k]) {
				d.after = k + 1
			}
		}
		// Two threads may end the program at once. Both say why, and one prints the stacks.
		if n := len(all); n > 0 && i < all[n-1].after {
			continue
		}
		all = append(all, d)
	}
	return all
}

// withinStack reports whether the line before next stands in the middle of one goroutine's stack: next goes on with
// that stack.
func withinStack(next []string) bool {
	for _, l := range next[:min(len(next), OthersLog)] {
		if framePlace.MatchString(l) {
			return true
		}
		if isHeader(l) || l == "runtime stack:" {
			return false
		}
	}
	return false
}

// handled reports whether a handler that recovered from a panic printed these words and the stack below them. The
// runtime prints no function of its own above the one that panicked, and where a handler panics anew it says so.
func handled(lines []string) bool {
	anew := !strings.HasPrefix(lines[0], "panic: ") // nobody recovers from a fatal error
	calls := -1                                     // that were read of the stack; -1 above it
	for i, l := range lines[:min(len(lines), maxHandled)] {
		switch {
		case calls < 0 && isHeader(l):
			calls = 0
		case calls < 0:
			if i > OthersLog || i > 0 && diedWords.MatchString(l) {
				return false
			}
			anew = anew || strings.Contains(l, "[recovered") || strings.HasPrefix(l, "\tpanic: ")
		case l == "" || isHeader(l):
			return false
		case strings.HasPrefix(l, "\t"):
		case calls == 0 && (strings.HasPrefix(l, "runtime/debug.Stack(") || strings.HasPrefix(l, "runtime/debug.PrintStack(")):
			return true
		case calls > 0 && strings.HasPrefix(l, "panic("):
			return !anew
		default:
			calls++
		}
	}
	return false
}

// maxHandled is how many lines from a program's words on are looked at for the call of panic.
const maxHandled = 200

// After returns the line after the last of the stacks below the last words that begin with a line, which counts like it
// from 0. It is the line after the words if there is no stack.
func After(lines []string, words int) int {
	for _, d := range ends(lines) {
		if d.first == words {
			return d.after
		}
	}
	return words + 1
}

// ofStacks reports whether only the runtime prints such a line, below its reason.
func ofStacks(line string) bool {
	return isHeader(line) || framePlace.MatchString(line) || register.MatchString(line)
}

func isHeader(line string) bool {
	if !strings.HasPrefix(line, "goroutine ") {
		return false
	}
	_, ok := parseHeader(bytes.TrimRight([]byte(line), "\r"))
	return ok
}

// isEnd reports whether the log ends with d, except for lines that other threads may have logged meanwhile.
func (d died) isEnd(lines []string) bool { return len(lines)-d.after <= OthersLog }

// last reports whether nothing was logged after d.
func (d died) last(lines []string) bool {
	return !slices.ContainsFunc(
		lines[d.after:],
		func(l string) bool { return strings.TrimSpace(l) != "" },
	)
}
