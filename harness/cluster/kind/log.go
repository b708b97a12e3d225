package kind

import (
	"fmt"
	"strings"
	"sync"
	"unicode"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/kube-relapse/relapse/harness/event"
)

// logger is kind's logger: its status lines become progress events, and one of them tells that the control plane is up.
type logger struct {
	events       *event.Stream
	controlPlane chan struct{} // closed when the API server answers, or when kind is over
	once         sync.Once
	network      func() // called when kind has read its network's name from the environment; may be called again
}

// expected are warnings of kind's about what we ask of it on purpose.
var expected = []string{"Overriding docker network", "Here be dragons", "cgroup v1 is deprecated",
	"Could not read storage manifest"}

func (l *logger) reached() { l.once.Do(func() { close(l.controlPlane) }) }

// Warn passes on what kind warns of, unless it is expected.
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

// Error passes kind's complaint on as a warning: what makes Create fail comes back as its error.
func (l *logger) Error(message string) { l.Warn(message) }

// Errorf is Error with a format.
func (l *logger) Errorf(format string, args ...any) { l.Warn(fmt.Sprintf(format, args...)) }

// V gives the status lines to us and drops the debugging ones.
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

// Info turns " • Starting control-plane 🕹️ ..." into "kind: Starting control-plane", and drops the line that tells its
// end: the next one says as much. Whatever follows the control plane's start means that it is up.
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

// plain strips a status line of its signs and pictures.
func plain(message string) string {
	var keep []string
	for _, w := range strings.Fields(message) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			keep = append(keep, w)
		}
	}
	return strings.Join(keep, " ")
}
