package kind

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/internal/host"
)

// Check checks all that clusters need of the host and the container engine. As root on Debian it installs missing
// packages unasked.
func (p *Provider) Check(ctx context.Context, n cluster.Needs) error {
	o := host.Options{NodeImage: n.NodeImage}
	for _, v := range n.Versions() {
		o.KubernetesMinor = max(o.KubernetesMinor, minor(v))
	}
	if dir, err := p.cacheDir(); err == nil {
		o.CacheDir = dir
	}
	if images, err := p.nodeImages(); err == nil {
		o.HasImages, _ = images.There(ctx, n) // an engine that doesn't answer fails a check
	}
	began := time.Now()
	p.events.Emit(event.Event{Type: event.Stage, Stage: "preflight",
		Message: "checking the host and the container engine",
		Fields:  map[string]any{"expectSeconds": 3.0}})
	checks := host.Preflight(ctx, o)
	if cmds := host.InstallPlan(checks); len(cmds) > 0 {
		if err := p.install(ctx, cmds); err != nil {
			return err
		}
		checks = host.Preflight(ctx, o)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	failed := host.Failed(checks)
	p.events.Emit(event.Event{Type: event.StageDone, Stage: "preflight",
		Message: fmt.Sprintf("%d checks, %d failed", len(checks), len(failed)),
		Fields:  map[string]any{"seconds": time.Since(began).Seconds()}})
	return p.problems(checks)
}

// install installs packages. If it may not, it reports the commands that would.
func (p *Provider) install(ctx context.Context, cmds []string) error {
	p.events.Say(event.Note, "these packages are missing: "+strings.Join(cmds, " && "))
	may, err := host.Install(ctx, lines(func(s string) { p.events.Say(event.Progress, s) }), cmds)
	if !may {
		p.events.Say(event.Note, "nothing was installed: run that as root")
	}
	return err
}

// lines passes on each line that is written to it. A line that is split over two writes is passed on as two.
type lines func(string)

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		l(strings.TrimSpace(line))
	}
	return len(b), nil
}

// problems warns of what may not work later, and returns an error that lists what failed.
func (p *Provider) problems(checks []host.Check) error {
	found := &cluster.HostError{Hint: "relapse doctor shows all checks"}
	for _, c := range checks {
		said := fmt.Sprintf(
			"%s: %s, wanted %s; %s",
			c.Name,
			strings.Join(strings.Fields(c.Seen), " "),
			c.Wanted,
			c.Remedy,
		)
		switch c.Status {
		case host.Warn:
			p.events.Say(event.Warning, said)
		case host.Fail:
			found.Problems = append(found.Problems, said)
		}
	}
	if len(found.Problems) == 0 {
		return nil
	}
	if host.Fixable(checks) {
		found.Hint = "relapse doctor --fix mends what can be mended, and says how to undo it"
	}
	return found
}

// minor returns the minor version, such as 34 for v1.34.4, or 0 if version has none.
func minor(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return 0
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0
	}
	return n
}
