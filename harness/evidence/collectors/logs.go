package collectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "componentLogs",
		Doc: "The logs of components that run as static pods, or of an arm that is a workload, from the files on the " +
			"arm's node, rotated files included.\n\n" +
			"The collector doesn't ask the API server, which may be slow or dead. A file is identified by the time " +
			"of its first line, so that a rotation, a compression, a restart or a failed command loses no line and " +
			"repeats none. A file that vanished before it was read to its end is a gap.",
		Example: "name: logs\nkind: componentLogs\nspec:\n  components: [kube-apiserver, etcd, " +
			"kube-controller-manager]\n  interval: 2s\n",
		New: func() capture.Collector {
			return &ComponentLogs{
				Components: []string{"kube-apiserver", "etcd", "kube-controller-manager"},
				Interval:   metav1.Duration{Duration: 2 * time.Second},
			}
		},
	})
}

// ComponentLogs collects the log files of the components of the arm's node.
type ComponentLogs struct {
	Components []string        `json:"components,omitempty" refers:"component,log" jsonschema:"the components, by the names of their containers in kube-system, or in the arm's own namespace if there is one; at least one"`
	Interval   metav1.Duration `json:"interval,omitzero" jsonschema:"time between two reads of the files; above 0"`
}

var componentName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Validate refuses names that no container can have, names that are there twice, an empty list, and an interval of 0 or
// less.
func (c *ComponentLogs) Validate() error {
	var errs []error
	if len(c.Components) == 0 {
		errs = append(errs, errors.New("components is empty (want at least one)"))
	}
	for i, name := range c.Components {
		switch {
		case !componentName.MatchString(name):
			errs = append(
				errs,
				fmt.Errorf(
					"components has %q (want the name of a container: a-z, 0-9 and -)",
					name,
				),
			)
		case slices.Contains(c.Components[:i], name):
			errs = append(errs, fmt.Errorf("components has %q twice", name))
		}
	}
	errs = append(errs, ValidateInterval(c.Interval))
	return errors.Join(errs...)
}

// Makes returns the kind of artifact that the collector records: logs.
func (*ComponentLogs) Makes() []bundle.Kind { return []bundle.Kind{bundle.Logs} }

// Stream reads the log files until ctx ends, into one stream for each component.
func (c *ComponentLogs) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	l := &logReader{namespace: cmp.Or(t.Namespace, metav1.NamespaceSystem), began: time.Now()}
	run, err := reader(t.Node)
	l.root, l.run = podLogs, run
	if folder := t.Node.Abilities().LogFolder; folder != nil {
		l.root = folder()
	}
	if err = errors.Join(c.Validate(), err); err != nil {
		w.Fail(t.Meta(bundle.Logs), err)
		return err
	}
	for _, name := range c.Components {
		m := t.Meta(bundle.Logs)
		m.Component = name
		st, err := w.Stream(m, "jsonl")
		if err != nil {
			return errors.Join(err, l.close())
		}
		l.logs = append(l.logs, newComponentLog(name, st))
	}
	l.follow(ctx, c.Interval.Duration)
	return l.close()
}

// logReader reads the logs of a node's components.
type logReader struct {
	run       func(ctx context.Context, argv ...string) ([]byte, error) // runs a command where the files are
	root      string                                                    // the folder of all logs
	namespace string                                                    // of the pods
	began     time.Time
	logs      []*componentLog
}

// reader returns a function that runs a reading command where a node's files are.
func reader(n cluster.Node) (func(ctx context.Context, argv ...string) ([]byte, error), error) {
	switch can := n.Abilities(); {
	case can.LogFolder != nil:
		return here, nil
	case can.Commands != nil:
		return func(ctx context.Context, argv ...string) ([]byte, error) { return can.Commands.Look(ctx, nil, argv...) }, nil
	}
	return nil, fmt.Errorf("reading files on %s: it runs no commands", n.Name())
}

// here runs a command on this host.
func here(ctx context.Context, argv ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return out, err
}

// follow polls the files at each interval, and again at once while there is more than one poll reads. A failed poll
// loses nothing, because the files stay where they are. But the streams cover no later time until a poll succeeds.
func (l *logReader) follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, AskTimeout)
		more, err := l.poll(one)
		cancel()
		if err != nil && ctx.Err() == nil {
			for _, c := range l.logs {
				c.doubt = err.Error()
			}
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// close ends the streams. If a log could not be read to its end for longer than tolerated, that time is a gap with the
// reason.
func (l *logReader) close() error {
	var errs []error
	now := time.Now()
	for _, c := range l.logs {
		c.end()
		from := c.known
		if from.IsZero() {
			from = l.began
		}
		if c.doubt != "" && now.Sub(from) > tolerated {
			c.st.Gap(from, now, c.doubt)
		}
		errs = append(errs, c.st.Close())
	}
	return errors.Join(errs...)
}
