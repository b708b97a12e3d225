package goroutine

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// died is what a runtime that ends its program prints: why it does, and then the goroutines' stacks. A handler that
// recovers from a panic may print the same; then the log goes on.
type died struct {
	first int // the line that says why
	after int // the line behind the last of its stacks
}

const (
	// othersLog is how many lines other threads may log, at most, between two lines of what the runtime prints, and
	// before the program is gone.
	othersLog = 20
	// atOnce is how many lines apart, at most, two threads say why they end the program.
	atOnce = 3
)

var (
	diedWords  = regexp.MustCompile(`^(panic|fatal error): `)
	framePlace = regexp.MustCompile(`^\t\S.*\.(go|s):\d+( |$)`)
	register   = regexp.MustCompile(`^[a-z]\w* +0x[0-9a-f]+$`) // printed below the stacks with GOTRACEBACK=crash
)

// LastWords is the line, counted from 0, in which the runtime says why it ends the program; -1 if there is none. Its
// words begin a line, unlike what programs log about panics themselves. Of several the last count: a program lived
// through what came before. Words without a stack are the runtime's only where the log ends with them.
func LastWords(lines []string) int {
	all := ends(lines)
	for _, d := range slices.Backward(all) {
		if d.isEnd(lines) {
			return d.first
		}
	}
	for _, d := range slices.Backward(all) { // where a log has several processes in it, the next one's lines follow
		if d.after > d.first+1 {
			return d.first
		}
	}
	return -1
}

// ends finds the runtime's words, and those that look like them, in their order.
func ends(lines []string) (all []died) {
	for i, line := range lines {
		if !diedWords.MatchString(line) || withinStack(lines[i+1:]) {
			continue
		}
		d := died{i, i + 1}
		for k := i + 1; k < len(lines) && k-d.after < othersLog; k++ {
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

// withinStack reports whether words stand between two lines of one goroutine's stack: what follows goes on with it.
func withinStack(next []string) bool {
	for _, l := range next[:min(len(next), othersLog)] {
		if framePlace.MatchString(l) {
			return true
		}
		if isHeader(l) || l == "runtime stack:" {
			return false
		}
	}
	return false
}

// ofStacks reports whether a line is one that nothing but the runtime prints below its words.
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

// isEnd reports whether the log ends with it, but for what other threads may have logged meanwhile.
func (d died) isEnd(lines []string) bool { return len(lines)-d.after <= othersLog }

// last reports whether nothing was logged behind it.
func (d died) last(lines []string) bool {
	return !slices.ContainsFunc(lines[d.after:], func(l string) bool { return strings.TrimSpace(l) != "" })
}
