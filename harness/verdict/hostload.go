package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// A host is overloaded while it exceeds one of these limits. The overload is reported if it lasted minOverload in a
// phase.
const (
	maxCPUPressure    = 60.0 // percent of ten seconds in which a task waited for a CPU
	maxMemoryPressure = 20.0 // percent in which all tasks waited for memory
	maxIOPressure     = 60.0 // percent in which all tasks waited for input or output
	maxSteal          = 20.0 // percent of the time since the previous sample that the hypervisor gave to others
	maxRunning        = 4    // runnable tasks a core
	minOverload       = 10 * time.Second
)

// hostLoad says for how long and by what a host was overloaded in the fault or the recovery of any arm, "" if it wasn't
// or nobody looked. It never changes an answer.
func hostLoad(v bundle.View, t plan.Trial) string {
	samples := hostSamples(v)
	var out []string
	for _, phase := range []string{check.Fault, check.Recovery} {
		var windows []bundle.Window
		for _, c := range t.Arms {
			if w, ok := v.Phase(c.Name, phase); ok && !w.End.IsZero() && !slices.Contains(windows, w) {
				windows = append(windows, w)
			}
		}
		for _, w := range windows {
			if said := overload(samples, w); said != "" {
				out = append(
					out,
					fmt.Sprintf(
						"%s of the %s's %s",
						said,
						phase,
						w.End.Sub(w.Start).Round(time.Second),
					),
				)
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "the host was overloaded: " + strings.Join(out, "; ")
}

// hostSamples returns all samples of the host, in order of time.
func hostSamples(v bundle.View) []bundle.HostSample {
	var out []bundle.HostSample
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Host}) {
		lines(v, a, func(s bundle.HostSample) { out = append(out, s) }) // what can't be read explains nothing
	}
	slices.SortStableFunc(out, func(a, b bundle.HostSample) int { return a.Time.Compare(b.Time) })
	return out
}

// overload says by what the host was overloaded in a window, with the worst values, and for how long; "" for less than
// minOverload.
func overload(all []bundle.HostSample, w bundle.Window) string {
	var long time.Duration
	worst := map[string]float64{}
	cores := 0
	for i, s := range all {
		if i == 0 || s.Time.Before(w.Start) || s.Time.After(w.End) {
			continue
		}
		over := exceeded(all[i-1], s)
		if len(over) == 0 {
			continue
		}
		since := all[i-1].Time
		if since.Before(w.Start) {
			since = w.Start
		}
		long += s.Time.Sub(since)
		cores = s.Cores
		for name, value := range over {
			worst[name] = max(worst[name], value)
		}
	}
	if long < minOverload {
		return ""
	}
	var by []string
	for _, m := range measures {
		if value, ok := worst[m.name]; ok {
			by = append(by, m.say(value, cores))
		}
	}
	return fmt.Sprintf("%s for %s", strings.Join(by, ", "), long.Round(time.Second))
}

// measures are the numbers that a host is judged by. value returns a measure's value between two samples, and its
// limit.
var measures = []struct {
	name  string
	value func(before, s bundle.HostSample) (value, limit float64)
	say   func(value float64, cores int) string
}{
	{"cpu", func(_, s bundle.HostSample) (float64, float64) { return s.Pressure["cpu.some"], maxCPUPressure },
		percent("CPU pressure")},
	{"memory", func(_, s bundle.HostSample) (float64, float64) { return s.Pressure["memory.full"], maxMemoryPressure },
		percent("memory pressure")},
	{"io", func(_, s bundle.HostSample) (float64, float64) { return s.Pressure["io.full"], maxIOPressure },
		percent("I/O pressure")},
	{"steal", func(before, s bundle.HostSample) (float64, float64) {
		if spent := s.AllSeconds - before.AllSeconds; spent > 0 {
			return 100 * (s.StealSeconds - before.StealSeconds) / spent, maxSteal
		}
		return 0, maxSteal
	}, percent("steal")},
	{"running", func(_, s bundle.HostSample) (float64, float64) {
		return float64(s.Running), float64(maxRunning * s.Cores)
	},
		func(value float64, cores int) string {
			return fmt.Sprintf("%.0f runnable tasks on %d cores", value, cores)
		}},
}

func percent(what string) func(float64, int) string {
	return func(value float64, _ int) string { return fmt.Sprintf("%s up to %.0f %%", what, value) }
}

// exceeded returns the measures above their limits, with their values.
func exceeded(before, s bundle.HostSample) map[string]float64 {
	out := map[string]float64{}
	for _, m := range measures {
		if value, limit := m.value(before, s); value > limit {
			out[m.name] = value
		}
	}
	return out
}
