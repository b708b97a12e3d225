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

// source is something that can be drawn: one figure, and how an arm's values are had.
type source struct {
	Figure
	read   func(e *evidence, arm string) (values []value, lacks string)
	beside func(series) []value // how a component that isn't the subject has it, for context; nil draws none
}

type value struct {
	at time.Time
	n  float64
}

// sources is what can be drawn of a trial: first what its checks are about, then what tells how any component is. What
// no collector recorded isn't drawn.
func sources(t plan.Trial) []source {
	of := cmp.Or(t.Subject, "the subject")
	checks := slices.Concat(t.Signature, t.Healed, t.Exposure, t.Steady, t.Info)
	var all []source
	for _, resource := range drawn(checks, func(f check.Figure) string { return f.Writes }) {
		all = append(all, source{
			Figure: Figure{Title: "writes to " + resource + " that took effect", Unit: "writes per second"},
			read:   writes(resource, namespaces(t)),
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
		return source{Figure: Figure{Title: title, Unit: unit}, read: func(e *evidence, arm string) ([]value, string) {
			return e.sampled(bundle.Query{Arm: arm, Component: t.Subject}, f)
		}}
	}
	for _, counter := range drawn(checks, func(f check.Figure) string { return f.Counter }) {
		all = append(all, metric("growth of "+counter, "per second", growth(counter)))
	}
	cpu := metric("CPU of "+of, "cores", growth("process_cpu_seconds_total"))
	cpu.beside = growth("process_cpu_seconds_total")
	return append(all,
		metric("all goroutines of "+of, "goroutines", as("go_goroutines", 1)),
		cpu,
		metric("resident memory of "+of, "MiB", as("process_resident_memory_bytes", mebi)),
		metric("heap in use of "+of, "MiB", as("go_memstats_heap_inuse_bytes", mebi)),
		metric("age of the last relist (PLEG)", "seconds", age("kubelet_pleg_last_seen_seconds")),
		source{Figure: Figure{Title: "slowest answer of etcd to a probe", Unit: "milliseconds"}, read: probes},
		metric("requests to etcd as "+of+" timed them, mean", "milliseconds",
			mean("etcd_request_duration_seconds", 1000)),
	)
}

const mebi = 1.0 / (1 << 20)

// series are the samples of a component by metric, all label sets of one added up, in order of time.
type series map[string][]value

// as are a metric's values as they are, times a factor.
func as(metric string, factor float64) func(series) []value {
	return func(s series) []value {
		out := slices.Clone(s[metric])
		for i := range out {
			out[i].n *= factor
		}
		return out
	}
}

// growth is how much a counter grew per second between two samples. Over a hole, and where it fell, nothing is known.
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

// mean is a histogram's sum over its count between two samples, times a factor. Where nothing was counted there is
// none.
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

// step is what lies between a sample and the one before it.
func step(all []value, i int) (seconds, grown float64, ok bool) {
	if i == 0 {
		return 0, 0, false
	}
	seconds, grown = all[i].at.Sub(all[i-1].at).Seconds(), all[i].n-all[i-1].n
	return seconds, grown, seconds > 0 && seconds <= hole && grown >= 0
}

// age is how long ago a time in seconds since the epoch was when it was asked for. One that was never set has no age.
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

// asked lists which goroutines a trial's signature asks for, each once.
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

// drawn lists what a field holds of the figures of checks, each once.
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

// namespaces are the arms' own, where they have any.
func namespaces(t plan.Trial) map[string]string {
	out := map[string]string{}
	for _, c := range t.Arms {
		out[c.Name] = c.Namespace
	}
	return out
}
