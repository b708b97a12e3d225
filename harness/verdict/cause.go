package verdict

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

const (
	// seenLate is how far a record of a process's end may lie from the end: somebody may have noticed the end late, and
	// some clocks only have whole seconds.
	seenLate = 20 * time.Second
	// forewarned is how long before a container's end the kubelet may have said why it would end the container: a probe
	// may fail for a minute.
	forewarned = 90 * time.Second
)

// causeOfEnd says why an arm's subject ended at about t, as far as its node knows: how its container ended, what the
// kubelet did or systemd saw, and the last line that it logged. It returns "" if nobody knows. The cause decides
// nothing.
func causeOfEnd(v bundle.View, arm string, t time.Time) string {
	var out []string
	pod, ended, at := containerEnd(v, arm, t)
	at = laterOf(at, t)
	if ended != "" {
		out = append(out, ended)
	}
	for _, said := range []string{kubeletSaid(v, pod, at), systemdSaid(v, arm, at), lastLine(v, arm, at)} {
		if said != "" {
			out = append(out, said)
		}
	}
	return strings.Join(out, "; ")
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func isNear(at, t time.Time) bool { return !at.Before(t.Add(-seenLate)) && !at.After(t.Add(seenLate)) }

// containerEnd finds the end of the subject's container closest to t, as the kubelet reported it. It returns the pod, a
// description and the time of the end.
func containerEnd(v bundle.View, arm string, t time.Time) (pod, said string, at time.Time) {
	best := seenLate + 1
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Statuses, Arm: arm}) {
		lines(v, a, func(s bundle.ContainerStatus) {
			if s.Container != a.Component {
				return
			}
			pod = s.Pod
			reason, code, when := s.LastReason, s.LastExitCode, s.LastFinished
			if s.State == "terminated" {
				reason, code, when = s.Reason, s.ExitCode, s.Time
			}
			if when.IsZero() || !isNear(when, t) || when.Sub(t).Abs() >= best {
				return
			}
			best, at = when.Sub(t).Abs(), when
			said = fmt.Sprintf(
				"its container ended with %s, exit code %d",
				cmp.Or(reason, "no reason"),
				code,
			)
		})
	}
	return pod, said, at
}

// kubeletSaid returns what Events say about an end: that the kubelet killed the container, after which probe, or that
// the kernel ran out of memory.
func kubeletSaid(v bundle.View, pod string, t time.Time) string {
	var out []string
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Events}) {
		lines(v, a, func(s bundle.Stamped[*corev1.Event]) {
			if s.Value == nil || s.Time.Before(t.Add(-forewarned)) || s.Time.After(t.Add(seenLate)) {
				return
			}
			of := s.Value.InvolvedObject
			said := ""
			switch {
			case s.Value.Reason == "SystemOOM" || s.Value.Reason == "OOMKilling":
				said = "the kernel of " + of.Name + " ran out of memory: " + s.Value.Message
			case pod != "" && of.Name == pod &&
				(s.Value.Reason == "Killing" || s.Value.Reason == "Unhealthy" &&
					strings.Contains(s.Value.Message, "iveness")):
				said = "the kubelet said: " + s.Value.Message
			}
			if said != "" && !slices.Contains(out, said) {
				out = append(out, said)
			}
		})
	}
	return strings.Join(out[max(0, len(out)-3):], "; ")
}

// systemdEnd matches what systemd logs when a unit ends.
var systemdEnd = regexp.MustCompile(`(?i)main process exited|killed by the oom killer|failed with result`)

// systemdSaid returns what systemd logged about the end of the subject, if the subject is a unit.
func systemdSaid(v bundle.View, arm string, t time.Time) string {
	var out []string
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Journal, Arm: arm}) {
		r, err := v.Open(a)
		if err != nil {
			continue
		}
		for e, err := range klog.ReadJournal(r) {
			if err == nil && e.Ident == "systemd" && isNear(e.Time, t) && systemdEnd.MatchString(e.Message) &&
				!slices.Contains(out, e.Message) {
				out = append(out, e.Message)
			}
		}
		r.Close()
	}
	if len(out) == 0 {
		return ""
	}
	return "systemd said: " + strings.Join(out[:min(2, len(out))], "; ")
}

// lastLine returns the last line with a panic or an error before t, else the last line, of the subject's own log.
func lastLine(v bundle.View, arm string, t time.Time) string {
	last, fatal := "", ""
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Logs, Arm: arm}) {
		lines(v, a, func(s bundle.LogLine) {
			if s.Time.Before(t.Add(-forewarned)) || s.Time.After(t.Add(time.Second)) ||
				strings.TrimSpace(s.Text) == "" || !strings.Contains(s.File, "/"+a.Component+"/") {
				return
			}
			last = s.Text
			if strings.HasPrefix(s.Text, "panic: ") || strings.HasPrefix(s.Text, "fatal error: ") ||
				strings.HasPrefix(s.Text, "error: ") {
				fatal = s.Text
			}
		})
	}
	if line := cmp.Or(fatal, last); line != "" {
		return fmt.Sprintf("its log said: %.200s", line)
	}
	return ""
}
