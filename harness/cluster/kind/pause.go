package kind

import (
	"context"
	"fmt"
	"time"
)

// Pause stops the unit's main process. A process in the node makes it go on after atMost.
func (s *service) Pause(ctx context.Context, atMost time.Duration) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", pauseScript(s.pid(), pauseMark(s.name), atMost))
	return err
}

// Resume makes the unit's main process go on.
func (s *service) Resume(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", resumeScript(s.pid(), pauseMark(s.name)))
	return err
}

// Pause stops the component's process. A process in its node makes it go on after atMost. If a liveness probe fails for
// long, the kubelet replaces the component before that.
func (s container) Pause(ctx context.Context, atMost time.Duration) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", pauseScript(s.pid(), pauseMark(s.name), atMost))
	return err
}

// Resume makes the component's process go on.
func (s container) Resume(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", resumeScript(s.pid(), pauseMark(s.name)))
	return err
}

// pauseMark returns the path of a file in the node. While a component is paused, the file has the process group of the
// process that waits to resume it.
func pauseMark(component string) string { return "/run/relapse-paused-" + component }

// pauseScript returns a script that stops the process whose id the commands pid print. Before that, it starts a process
// that waits to resume it. The waiting process must survive the command that started it, so it has no execMark and a
// separate session.
func pauseScript(pid, mark string, atMost time.Duration) string {
	return fmt.Sprintf(`mark=%s
pid=$(%s)
if ! [ "${pid:-0}" -gt 0 ]; then echo "no process" >&2; exit 1; fi
%s
env --unset=%s setsid sh -c 'echo $$ >"$2.new"; mv "$2.new" "$2"; sleep "$1"; rm -f "$2"; kill -CONT "$3"' \
	sh %.3f "$mark" "$pid" </dev/null >/dev/null 2>&1 &
until [ -e "$mark" ]; do sleep 0.01; done
kill -STOP "$pid"
`, mark, pid, forget, execMark, atMost.Seconds())
}

// resumeScript returns a script that makes the process go on whose id the commands pid print, if there is one.
func resumeScript(pid, mark string) string {
	return fmt.Sprintf(`mark=%s
%s
pid=$(%s)
if [ "${pid:-0}" -gt 0 ]; then kill -CONT "$pid"; fi
`, mark, forget, pid)
}

// forget ends the process that waits to resume, if there is one, and removes the mark.
const forget = `if [ -e "$mark" ]; then kill -s TERM -- "-$(cat "$mark")" 2>/dev/null || true; rm -f "$mark"; fi`
