package kind

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/kube-relapse/relapse/harness/event"
)

// logger is given to kind as its logger. It turns kind's status lines into progress events, and learns from one of them
// that the control plane is up.
type logger struct {
	events       *event.Stream
	controlPlane chan struct{} // closed when the API server answers, or when kind has returned
	once         sync.Once
	network      func() // called when kind has read its network's name from the environment; may be called again
}

// expected lists parts of the warnings that kind gives about what we ask for on purpose. They are dropped.
var expected = []string{"Overriding docker network", "Here be dragons", "cgroup v1 is deprecated",
	"Could not read storage manifest"}

func (l *logger) reached() { l.once.Do(func() { close(l.controlPlane) }) }

// Warn passes on a warning of kind, unless it is expected.
func (l *logger) Warn(message string) {
	for _, e := range expected {
		if strings.Contains(message, e) {
			return
		}
	}
	l.events.Say(event.Warning, "kind: "+message)
}

// Warnf is Warn with a format.
func (l *logger) Warnf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// Error passes an error message of kind on as a warning: if the error makes Create fail, Create returns it.
func (l *logger) Error(message string) { l.Warn(message) }

// Errorf is Error with a format.
func (l *logger) Errorf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// V returns a logger that turns status lines into events and drops debugging lines.
func (l *logger) V(level log.Level) log.InfoLogger { return status{l, level == 0} }

type status struct {
	l  *logger
	on bool
}

func (s status) Enabled() bool { return s.on }

func (s status) Infof(format string, args ...any) {
	if s.on {
		s.Info(fmt.Sprintf(format, args...))
	}
}

// Info turns " • Starting control-plane 🕹️ ..." into the event "kind: Starting control-plane". It drops the line that
// reports the end of a step, because the next step's line says as much. A line about installing or joining follows the
// start of the control plane, and so means that it is up.
func (s status) Info(message string) {
	if !s.on {
		return
	}
	words := plain(message)
	if strings.HasPrefix(words, "Preparing") {
		s.l.network()
	}
	if strings.HasPrefix(words, "Installing") || strings.HasPrefix(words, "Joining") {
		s.l.reached()
	}
	if words != "" && !strings.Contains(message, "✓") {
		s.l.events.Emit(event.Event{Type: event.Progress, Stage: "cluster", Message: "kind: " + words})
	}
}

// plain returns a status line without its bullets and pictures: the words that have a letter or a digit.
func plain(message string) string {
	var keep []string
	for _, w := range strings.Fields(message) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			keep = append(keep, w)
		}
	}
	return strings.Join(keep, " ")
}
