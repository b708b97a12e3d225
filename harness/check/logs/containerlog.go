package logs

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// died returns the message and the stack of the panic that ended a container. If there is none, if the message does not
// match like, or if the stack lacks one of frames, why says so. unread says that the panic can't be read.
func (l *ContainerLog) died(like string, frames []string) (stack, why string, unread bool) {
	message, d, err := l.panicked()
	switch {
	case err != nil:
		return "", err.Error(), true
	case message == "":
		return "", "its log ends without a panic", false
	}
	re, _ := question.Pattern(like) // Validate has compiled it
	if !re.MatchString(message) {
		return "", fmt.Sprintf("it says %q", message), false
	}
	for _, f := range frames {
		if !(goroutine.Match{Func: f, Closures: true}).Chooses(d.Groups[0]) {
			return "", "the goroutine that panicked has no " + f, false
		}
	}
	return message + "\n\n" + d.Groups[0].Text(), "", false
}

// ContainerLog is the log of one container. Several containers may have had the same name.
type ContainerLog struct {
	first, last time.Time
	Lines       []string
	Times       []time.Time // of each line
}

// GroupByFile groups the lines of a component by log file. Each container had one file.
func GroupByFile(lines []bundle.LogLine) (out []*ContainerLog) {
	of := map[string]*ContainerLog{}
	for _, l := range lines {
		one := of[l.File]
		if one == nil {
			one = &ContainerLog{first: l.Time}
			of[l.File] = one
			out = append(out, one)
		}
		one.last, one.Lines, one.Times = l.Time, append(
			one.Lines,
			l.Text,
		), append(
			one.Times,
			l.Time,
		)
	}
	return out
}

// endLag is how long before or after a container's end its last line may lie. The line may lie after the end because
// the kubelet tells the time of an end in whole seconds.
const endLag = 5 * time.Second

// off returns how far a container's end is from the second in which the log has its last line, and whether the log may be
// of that container.
func (l *ContainerLog) off(ended time.Time) (far time.Duration, may bool) {
	far = max(0, ended.Sub(l.last), l.last.Sub(ended.Add(time.Second)))
	return far, l.first.Before(ended.Add(time.Second)) && l.last.Sub(ended).Abs() <= endLag
}

// giveLogs gives each end the log that ends when the container did, and returns the logs that no end got. A log is of one
// container, so that two ends never share one: it goes to the end that is nearest. The next container may begin in the
// second of an end, so that of two logs which are equally near to an end, the earlier one is its own.
func giveLogs(ends []ContainerEnd, all []*ContainerLog) (free []*ContainerLog) {
	type pair struct {
		end *ContainerEnd
		log *ContainerLog
		far time.Duration
	}
	var pairs []pair
	for i := range ends {
		for _, l := range all {
			if far, may := l.off(ends[i].At); may {
				pairs = append(pairs, pair{&ends[i], l, far})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.far, b.far), a.log.first.Compare(b.log.first))
	})
	given := map[*ContainerLog]bool{}
	for _, p := range pairs {
		if p.end.log == nil && !given[p.log] {
			p.end.log, given[p.log] = p.log, true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *ContainerLog) bool { return given[l] })
}

// panicked returns the message with which the runtime ended the program, and the goroutines that the runtime printed.
// The message is "" if the log has none.
func (l *ContainerLog) panicked() (message string, d *goroutine.Dump, err error) {
	at := lastWords(l.Lines)
	if at < 0 {
		return "", nil, nil
	}
	text := strings.Join(l.Lines[at:], "\n")
	message, _, _ = strings.Cut(text, "\ngoroutine ")
	if d, err = goroutine.Read(strings.NewReader(text + "\n")); err != nil {
		return "", nil, fmt.Errorf("reading what it printed as it ended: %w", err)
	}
	return strings.TrimSpace(message), d, nil
}

// goesOn says that a log goes on after the panic that seems to have ended the program, and that nothing shows another
// process to have begun; "" if the log ends there, or the next process's begins.
func (l *ContainerLog) goesOn() string {
	at := lastWords(l.Lines)
	if at < 0 {
		return ""
	}
	n := 0
	for i, line := range l.Lines[at+goroutine.After(l.Lines[at:], 0):] {
		if i < startLines && starts.MatchString(line) {
			return ""
		}
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	if n <= goroutine.OthersLog {
		return ""
	}
	return fmt.Sprintf(
		"the log goes on for %d lines below it, and none of the first says that a process began: it may have survived it",
		n,
	)
}

// startLines is how many lines a process logs at most before one that shows that it began.
const startLines = 100

// starts matches lines that a process logs as it begins, or what started it.
var starts = regexp.MustCompile(
	`(?i)\b(?:kubelet|etcd-)?version[ "]*[:=] ?"?v?[0-9]+\.[0-9]+\.|\bFLAG: --|Flag --[a-z-]+ has been deprecated|\] "?(?:golang settings|version info|feature gates)\b|Generated self-signed cert|` +
		`external host was not specified|\bStarting (?:k3s|rke2|kubernetes|kubelet|etcd)|"msg":"(?:starting|Running: |etcd Version)|` +
		`: (?:Main process exited|Scheduled restart job|Failed with result|Start(?:ed|ing) )|-- Boot [0-9a-f]{32} --|\bServing securely on\b|attempting to acquire leader lease`,
)

// running matches the first line of a running goroutine, which the runtime prints first when it ends a program.
var running = regexp.MustCompile(`^goroutine \d+ .*\[running`)

// lastWords returns the index of the line in which the runtime says why it ends the program, -1 if there is none. Of
// several lines that look alike, lastWords returns the last one after which the first stack is that of a running
// goroutine, or else the last one. The lines before were printed by a handler that went on.
func lastWords(lines []string) int {
	found, withStack := -1, false
	for at := 0; at < len(lines); at++ {
		next := goroutine.LastWords(lines[at:])
		if next < 0 {
			break
		}
		at += next
		first := slices.IndexFunc(
			lines[at:],
			func(l string) bool { return strings.HasPrefix(l, "goroutine ") },
		)
		if ran := first >= 0 && running.MatchString(lines[at+first]); ran || !withStack {
			found, withStack = at, ran
		}
	}
	return found
}
