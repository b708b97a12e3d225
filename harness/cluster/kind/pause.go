package kind

import (
	"context"
	"fmt"
	"time"
)

// Pause stops the unit's main process. In the node something waits to have it go on after atMost.
func (s *Service) Pause(ctx context.Context, atMost time.Duration) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", pauseScript(s.pid(), pauseMark(s.name), atMost))
	return err
}

// Resume has it go on.
func (s *Service) Resume(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", resumeScript(s.pid(), pauseMark(s.name)))
	return err
}

// Pause stops the component's process. In its node something waits to have it go on after atMost. A liveness probe that
// fails for long has the kubelet replace it before that.
func (s container) Pause(ctx context.Context, atMost time.Duration) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", pauseScript(s.pid(), pauseMark(s.name), atMost))
	return err
}

// Resume has it go on.
func (s container) Resume(ctx context.Context) error {
	_, err := s.n.Exec(ctx, nil, "sh", "-ec", resumeScript(s.pid(), pauseMark(s.name)))
	return err
}

// pauseMark is a file in the node that has the process group of who waits to resume a component.
func pauseMark(component string) string { return "/run/relapse-paused-" + component }

// pauseScript stops the process that the command pid prints, once somebody waits to have it go on, who must not be
// killed with the command that started it, so it has no execMark and a session of its own.
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

// resumeScript has the process go on that the command pid prints, if there is one.
func resumeScript(pid, mark string) string {
	return fmt.Sprintf(`mark=%s
%s
pid=$(%s)
if [ "${pid:-0}" -gt 0 ]; then kill -CONT "$pid"; fi
`, mark, forget, pid)
}

// forget ends who waits.
const forget = `if [ -e "$mark" ]; then kill -s TERM -- "-$(cat "$mark")" 2>/dev/null || true; rm -f "$mark"; fi`
