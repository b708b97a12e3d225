package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
	"github.com/kube-relapse/relapse/harness/plan"
)

// source is a figure that can be drawn, and the function that reads an arm's values for it.
type source struct {
	Figure
	read   func(e *evidence, arm string) (values []value, lacks string)
	beside func(series) []value // reads the values of other components, for context; nil draws none
}

type value struct {
	at time.Time
	n  float64
}

// sources returns what can be drawn of a trial: first what its checks are about, then what shows how any component is.
// A quantity that no collector recorded isn't drawn.
func sources(t plan.Trial) []source {
	of := cmp.Or(t.Subject, "the subject")
	checks := slices.Concat(t.Signature, t.Healed, t.Exposure, t.Steady, t.Info)
	var all []source
	for _, resource := range drawn(checks, func(f check.Figure) string { return f.Writes }) {
		all = append(all, source{
			Figure: Figure{
				Title: "writes to " + resource + " that took effect",
				Unit:  "writes per second",
			},
			read: writes(resource, namespaces(t)),
		})
	}
	for _, m := range asked(t) {
		all = append(all, source{
			Figure: Figure{Title: "goroutines in " + what(m), Unit: "goroutines", Dumps: true},
			read: func(e *evidence, arm string) ([]value, string) {
				return e.counted(bundle.Query{Arm: arm, Component: t.Subject}, m)
			},
		})
	}
	metric := func(title, unit string, f func(series) []value) source {
		return source{
			Figure: Figure{Title: title, Unit: unit},
			read: func(e *evidence, arm string) ([]value, string) {
				return e.sampled(bundle.Query{Arm: arm, Component: t.Subject}, f)
			},
		}
	}
	for _, counter := range drawn(checks, func(f check.Figure) string { return f.Counter }) {
		all = append(all, metric("growth of "+counter, "per second", growth(counter)))
	}
	cpu := metric("CPU of "+of, "cores", growth("process_cpu_seconds_total"))
	cpu.beside = growth("process_cpu_seconds_total")
	return append(
		all,
		metric("all goroutines of "+of, "goroutines", as("go_goroutines", 1)),
		cpu,
		metric("resident memory of "+of, "MiB", as("process_resident_memory_bytes", mebi)),
		metric("heap in use of "+of, "MiB", as("go_memstats_heap_inuse_bytes", mebi)),
		metric("age of the last relist (PLEG)", "seconds", age("kubelet_pleg_last_seen_seconds")),
		source{
			Figure: Figure{Title: "slowest answer of etcd to a probe", Unit: "milliseconds"},
			read:   probes,
		},
		metric("requests to etcd as "+of+" timed them, mean", "milliseconds",
			mean("etcd_request_duration_seconds", 1000)),
	)
}

const mebi = 1.0 / (1 << 20)

// series holds the samples of a component by metric, in order of time. The values of all label sets are added up.
type series map[string][]value

// as returns a metric's values, times a factor.
func as(metric string, factor float64) func(series) []value {
	return func(s series) []value {
		out := slices.Clone(s[metric])
		for i := range out {
			out[i].n *= factor
		}
		return out
	}
}

// growth returns how much a counter grew per second between two samples. It has no value over a hole, or where the
// counter fell.
func growth(metric string) func(series) []value {
	return func(s series) []value {
		var out []value
		for i, v := range s[metric] {
			if took, grown, ok := step(s[metric], i); ok {
				out = append(out, value{v.at, grown / took})
			}
		}
		return out
	}
}

// mean returns a histogram's sum over its count between two samples, times a factor. It has no value where nothing was
// counted.
func mean(histogram string, factor float64) func(series) []value {
	return func(s series) []value {
		sum, count := s[histogram+"_sum"], s[histogram+"_count"]
		var out []value
		if len(sum) != len(count) {
			return nil
		}
		for i, v := range sum {
			_, spent, ok := step(sum, i)
			_, n, also := step(count, i)
			if ok && also && n > 0 && v.at.Equal(count[i].at) {
				out = append(out, value{v.at, factor * spent / n})
			}
		}
		return out
	}
}

// step returns the difference between a sample and the one before it. ok is false over a hole, or where the value fell.
func step(all []value, i int) (seconds, grown float64, ok bool) {
	if i == 0 {
		return 0, 0, false
	}
	seconds, grown = all[i].at.Sub(all[i-1].at).Seconds(), all[i].n-all[i-1].n
	return seconds, grown, seconds > 0 && seconds <= hole && grown >= 0
}

// age returns how long ago the time that a metric holds was when the metric was read. The metric holds seconds since
// the epoch. A time that was never set has no age.
func age(metric string) func(series) []value {
	return func(s series) []value {
		var out []value
		for _, v := range s[metric] {
			if v.n > 0 {
				out = append(out, value{v.at, float64(v.at.UnixNano())/1e9 - v.n})
			}
		}
		return out
	}
}

// asked returns the goroutines that a trial's signature asks for, each once.
func asked(t plan.Trial) []goroutine.Match {
	return drawn(t.Signature, func(f check.Figure) goroutine.Match { return f.Goroutines })
}

// what names the goroutines that a match chooses: "pleg.(*GenericPLEG).Relist [chan send]".
func what(m goroutine.Match) string {
	if m.State == "" {
		return m.Func
	}
	return m.Func + " [" + m.State + "]"
}

// drawn returns the values that a field has in the figures of checks, each once.
func drawn[T comparable](list []plan.Check, field func(check.Figure) T) []T {
	var out []T
	for _, c := range list {
		found := drawn(c.AnyOf, field)
		if f, ok := c.Spec.(check.Figured); ok {
			found = append(found, field(f.Figure()))
		}
		for _, one := range found {
			if one != *new(T) && !slices.Contains(out, one) {
				out = append(out, one)
			}
		}
	}
	return out
}

// namespaces returns the namespace of each arm, "" for an arm that has none.
func namespaces(t plan.Trial) map[string]string {
	out := map[string]string{}
	for _, c := range t.Arms {
		out[c.Name] = c.Namespace
	}
	return out
}
