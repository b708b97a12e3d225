package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
)

// flagger returns k if its program is a component that takes flags.
func (k *Component) flagger() cluster.Flagger {
	if row, _ := component.Of(k.name); k.workload == nil && component.TakesFlags(row) {
		return k
	}
	return nil
}

// RestartWith notes down the flags, which the supervisor adds at each start, and restarts the component.
func (k *Component) RestartWith(ctx context.Context, flags map[string]string) error {
	if err := noteFlags(flagsMark(k.n.c.home, k.process), flags); err != nil {
		return fmt.Errorf("giving flags to the %s of %s: %w", k.name, k.n.c.name, err)
	}
	return k.Restart(ctx)
}

func noteFlags(mark string, flags map[string]string) error {
	if len(flags) == 0 {
		_, err := takeMark(mark)
		return err
	}
	b, err := json.Marshal(flags)
	if err != nil {
		return err
	}
	if err := os.WriteFile(mark+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(mark+".new", mark)
}

// Added returns the flags that were noted down.
func (k *Component) Added(context.Context) (map[string]string, error) {
	return addedFlags(k.n.c.home, k.process)
}

// addedFlags returns the flags that a process gets in addition to its own.
func addedFlags(home, name string) (flags map[string]string, err error) {
	if err := readJSON(flagsMark(home, name), &flags); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return flags, nil
}

// Arguments reads them from /proc.
func (k *Component) Arguments(context.Context) ([]string, error) {
	one, err := k.state()
	if err != nil || one.PID == 0 {
		return nil, err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", one.PID))
	if !one.alive() {
		return nil, nil // it ended meanwhile
	}
	return cluster.ParseArguments(b), err
}
