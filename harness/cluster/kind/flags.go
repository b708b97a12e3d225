package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// flagsDropIn is the drop-in of a service that has added flags. It comes after all others. Its first line is a comment
// with the flags as JSON.
const flagsDropIn = "zz-relapse-flags.conf"

func (s *service) flagsFile() string { return "/etc/systemd/system/" + s.unit() + ".d/" + flagsDropIn }

// RestartWith restarts the service with a drop-in whose command line is the unit's own with the flags after it. Of a
// flag that is given twice the last counts, except of one that is a list.
func (s *service) RestartWith(ctx context.Context, flags map[string]string) error {
	if err := s.restartWith(ctx, flags); err != nil {
		return fmt.Errorf("restarting the %s of %s with other flags: %w", s.name, s.n.name, err)
	}
	return nil
}

func (s *service) restartWith(ctx context.Context, flags map[string]string) error {
	text := ""
	if len(flags) > 0 {
		unit, err := s.n.Exec(ctx, nil, "systemctl", "cat", s.unit())
		if err == nil {
			text, err = withFlags(string(unit), flags)
		}
		if err != nil {
			return err
		}
	}
	_, err := s.n.Exec(ctx, strings.NewReader(text), "sh", "-ec", `mkdir -p "$(dirname "$1")"
cat >"$1.new"
if [ -s "$1.new" ]; then mv "$1.new" "$1"; else rm -f "$1" "$1.new"; fi
systemctl daemon-reload
systemctl restart "$2"`, "sh", s.flagsFile(), s.unit())
	return err
}

// withFlags returns a drop-in that adds flags to the command line of a unit. unit is what systemctl cat prints: the
// unit's files one after the other, each after a comment with its path.
func withFlags(unit string, flags map[string]string) (string, error) {
	own, ours := "", false
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if path, isFile := strings.CutPrefix(line, "# /"); isFile {
			ours = strings.HasSuffix(path, "/"+flagsDropIn)
		}
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok && !ours {
			own = command
		}
	}
	if own == "" || strings.HasSuffix(own, `\`) {
		return "", fmt.Errorf("its unit has no command line of one line: %q", own)
	}
	note, err := json.Marshal(flags)
	if err != nil {
		return "", err
	}
	out := "# " + string(note) + "\n[Service]\nExecStart=\nExecStart=" + own
	for _, arg := range arguments(flags) {
		out += ` "` + unitText.Replace(arg) + `"`
	}
	return out + "\n", nil
}

// unitText escapes a text for a quoted word of a unit's command line.
var unitText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "%", "%%", "$", "$$")

// arguments returns flags as arguments, in alphabetical order.
func arguments(flags map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		out = append(out, "--"+name+"="+flags[name])
	}
	return out
}

// Added reads the flags from the drop-in.
func (s *service) Added(ctx context.Context) (flags map[string]string, err error) {
	out, err := s.n.Look(
		ctx,
		nil,
		"sh",
		"-ec",
		`if [ -e "$1" ]; then head -n 1 "$1"; fi`,
		"sh",
		s.flagsFile(),
	)
	if err == nil && len(out) > 0 {
		err = json.Unmarshal(bytes.TrimPrefix(out, []byte("#")), &flags)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"reading which flags the %s of %s was given: %w",
			s.name,
			s.n.name,
			err,
		)
	}
	return flags, nil
}

// Arguments reads them from /proc.
func (s *service) Arguments(ctx context.Context) ([]string, error) {
	return s.n.arguments(ctx, s.pid())
}

// Annotations of a static pod with added flags: the flags, and the pod's own command line, both as JSON.
const (
	addedFlags = "relapse.dev/added-flags"
	ownCommand = "relapse.dev/own-command"
)

// RestartWith writes the flags into the pod's manifest, and the kubelet then replaces the pod.
func (s *staticPod) RestartWith(ctx context.Context, flags map[string]string) error {
	return s.restart(ctx, func() error {
		return s.rewrite(
			ctx,
			func(pod *corev1.Pod) error { return reflag(pod, flags, time.Now()) },
		)
	})
}

// reflag adds flags to the pod's own command line, or gives it back. at is the time of the restart.
func reflag(pod *corev1.Pod, flags map[string]string, at time.Time) error {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.Containers[0].Args) > 0 {
		return fmt.Errorf(
			"it has %d containers, want 1 with all arguments in its command",
			len(pod.Spec.Containers),
		)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[restartedAt] = at.UTC().Format(time.RFC3339Nano)
	own := pod.Spec.Containers[0].Command
	if text, has := pod.Annotations[ownCommand]; has {
		own = nil
		if err := json.Unmarshal([]byte(text), &own); err != nil {
			return fmt.Errorf("annotation %s: %w", ownCommand, err)
		}
	}
	delete(pod.Annotations, ownCommand)
	delete(pod.Annotations, addedFlags)
	pod.Spec.Containers[0].Command = cluster.WithFlags(own, flags)
	if len(flags) == 0 {
		return nil
	}
	for name, value := range map[string]any{ownCommand: own, addedFlags: flags} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		pod.Annotations[name] = string(text)
	}
	return nil
}

// Added reads the flags from the manifest.
func (s *staticPod) Added(ctx context.Context) (flags map[string]string, err error) {
	pod, err := s.manifest(ctx)
	if text := ""; err == nil {
		if text = pod.Annotations[addedFlags]; text != "" {
			err = json.Unmarshal([]byte(text), &flags)
		}
	}
	if err != nil {
		return nil, fmt.Errorf(
			"reading which flags the %s of %s was given: %w",
			s.name,
			s.n.name,
			err,
		)
	}
	return flags, nil
}

// Arguments reads them from /proc.
func (s *staticPod) Arguments(ctx context.Context) ([]string, error) {
	return s.n.arguments(ctx, s.pid())
}

// arguments returns the arguments of the process whose id the commands pid print, or none if there is no process.
func (n *Node) arguments(ctx context.Context, pid string) ([]string, error) {
	out, err := n.Look(ctx, nil, "sh", "-ec", argumentsScript(pid))
	if err != nil {
		return nil, err
	}
	return cluster.ParseArguments(out), nil
}

func argumentsScript(pid string) string {
	return `pid=$(` + pid + `)
if ! [ "${pid:-0}" -gt 0 ]; then exit 0; fi
cat "/proc/$pid/cmdline" 2>/dev/null || [ ! -e "/proc/$pid/stat" ]
`
}
