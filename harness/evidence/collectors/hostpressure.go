package collectors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "hostPressure",
		Doc: "The load of the host that runs the nodes: busy and stolen CPU time, runnable tasks, load average, and " +
			"pressure where the kernel reports it.\n\n" +
			"Every trial has this collector, even if the scenario doesn't list it. The check processCPU learns from " +
			"it how much of the CPUs a process could have had. If a trial gave no clean answer and the host was " +
			"overloaded, the verdict says so. The collector reads the /proc of the machine that relapse runs on, " +
			"which also runs the nodes.",
		Example: "name: host\nkind: hostPressure\n",
		New: func() capture.Collector {
			return &HostPressure{
				Interval: metav1.Duration{Duration: 5 * time.Second},
				Proc:     "/proc",
			}
		},
	})
}

// HostPressure collects the load of the host.
type HostPressure struct {
	Interval metav1.Duration `json:"interval,omitzero" jsonschema:"time between two samples; above 0"`
	Proc     string          `json:"proc,omitempty" jsonschema:"absolute path of the host's /proc"`
}

// Validate refuses an interval of 0 or less, and a path that isn't absolute.
func (c *HostPressure) Validate() error {
	var errs []error
	errs = append(errs, ValidateInterval(c.Interval))
	if !filepath.IsAbs(c.Proc) {
		errs = append(errs, fmt.Errorf("proc is %q (want an absolute path)", c.Proc))
	}
	return errors.Join(errs...)
}

// Makes returns the kind of artifact that the collector records: samples of the host.
func (*HostPressure) Makes() []bundle.Kind { return []bundle.Kind{bundle.Host} }

// ClusterWide returns true: all arms share the host.
func (*HostPressure) ClusterWide() bool { return true }

// Stream samples the host until ctx ends.
func (c *HostPressure) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	st, err := w.Stream(t.Meta(bundle.Host), "jsonl")
	if err != nil {
		return err
	}
	Follow(ctx, c.Interval.Duration, st, func(context.Context) error {
		s, err := readHost(c.Proc)
		if err != nil {
			return err
		}
		return st.JSON(s)
	})
	return st.Close()
}

// readHost returns one sample. A kernel without pressure files gives no pressure; any other missing file is an error.
func readHost(proc string) (bundle.HostSample, error) {
	s := bundle.HostSample{Time: time.Now().UTC()}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return s, err
	}
	if err := parseStat(string(stat), &s); err != nil {
		return s, fmt.Errorf("reading %s/stat: %w", proc, err)
	}
	load, err := os.ReadFile(filepath.Join(proc, "loadavg"))
	if err != nil {
		return s, err
	}
	first, _, _ := strings.Cut(string(load), " ")
	if s.Load1, err = strconv.ParseFloat(first, 64); err != nil {
		return s, fmt.Errorf("reading %s/loadavg: %w", proc, err)
	}
	for _, of := range []string{"cpu", "memory", "io"} {
		text, err := os.ReadFile(filepath.Join(proc, "pressure", of))
		if err != nil { // the kernel has no pressure, or has it switched off
			continue
		}
		if err := parsePressure(of, string(text), &s); err != nil {
			return s, fmt.Errorf("reading %s/pressure/%s: %w", proc, of, err)
		}
	}
	return s, nil
}

// parseStat reads the times over all cores, the number of cores, and the number of tasks that can run.
func parseStat(text string, s *bundle.HostSample) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 9 && f[0] == "cpu":
			var ticks [8]float64 // user nice system idle iowait irq softirq steal; guest time is part of user's
			for i := range ticks {
				n, err := strconv.ParseFloat(f[i+1], 64)
				if err != nil {
					return err
				}
				ticks[i] = n / cluster.TicksPerSecond
				s.AllSeconds += ticks[i]
			}
			s.StealSeconds = ticks[7]
			s.BusySeconds = s.AllSeconds - ticks[3] - ticks[4] - ticks[7]
		case len(f) > 0 && strings.HasPrefix(f[0], "cpu"):
			s.Cores++
		case len(f) == 2 && f[0] == "procs_running":
			n, err := strconv.Atoi(f[1])
			if err != nil {
				return err
			}
			s.Running = n
		}
	}
	if s.Cores == 0 || s.AllSeconds == 0 {
		return errors.New("it tells of no core")
	}
	return nil
}

// parsePressure reads lines such as "some avg10=1.53 avg60=0.87 avg300=0.73 total=1509".
func parsePressure(of, text string, s *bundle.HostSample) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		share, err := strconv.ParseFloat(strings.TrimPrefix(f[1], "avg10="), 64)
		if err != nil {
			return fmt.Errorf("line %q: %w", strings.TrimSpace(line), err)
		}
		if s.Pressure == nil {
			s.Pressure = map[string]float64{}
		}
		s.Pressure[of+"."+f[0]] = share
	}
	return nil
}
