package metrics

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "cpuBack",
		Doc: "At the end of the window the subject's process uses about as much of the CPU as in the baseline, " +
			"whatever the incident is.\n\n" +
			"The process must use less CPU than twice the baseline's rate plus a tenth of a CPU, and less than the " +
			"baseline's rate plus half a CPU. A loop that never waits adds a whole CPU, even to a busy baseline. If " +
			"the host was so busy that such a loop might have got no more CPU than the limit, the answer is unknown. " +
			"There is one exception. If no single goroutine was running or runnable in all three of the last dumps, " +
			"it is enough that the process used at most half of what a loop would have got. This check is part of " +
			"the common health that every arm is asked for. A scenario can leave it out with health.without.",
		Example: "name: cpu-as-before\nkind: cpuBack\nphase: recovery\nspec:\n  for: 20s\n",
		New:     func() check.Check { return &CPUBack{For: "20s"} },
	})
}

// CPUBack asks that the subject uses about as much CPU as in the baseline: that no loop was left behind.
type CPUBack struct {
	For string `json:"for,omitempty" refers:"stretch" jsonschema:"how long the stretch before the end of the window is: a duration with its unit, at least 10s"`
}

// Reads names identities for the CPU time, samples of the host for its load, and dumps, which show a loop.
func (c *CPUBack) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.Identity, bundle.Host, bundle.Goroutines2}
}

// NeedsBaselineProcess returns that the subject must be the process of the baseline, with which it is compared.
func (*CPUBack) NeedsBaselineProcess() bool { return true }

// Validate refuses a stretch that is too short to measure.
func (c *CPUBack) Validate() error {
	if err := question.Positive("for", c.For); err != nil {
		return err
	}
	return question.Refuse(
		question.Duration(c.For) < 10*time.Second,
		"for is %s (want at least 10s)",
		c.For,
	)
}

// Eval compares the rate of the last stretch with that of the whole baseline.
func (c *CPUBack) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("in the last %s no more than a tenth of a CPU above twice the baseline's rate, and less than half a CPU "+
		"above it", c.For))
	if !ok {
		return q.Finding
	}
	before, doubt := q.Baseline()
	if doubt != nil {
		return q.Unknown(doubt)
	}
	hold := question.Duration(c.For)
	if so := question.Length(q.Window); so < hold {
		return q.Unknown(
			check.Doubt(
				check.TooShort,
				"%s lasted for %s only",
				q.Phase,
				so.Round(100*time.Millisecond),
			),
		)
	}
	phase := q
	q = q.Over(question.LastOf(q.Window, hold))
	was, now := ReadCPU(q.Over(before)), ReadCPU(q)
	q.Evidence = now.Paths
	for _, part := range []struct {
		of   Series
		when string
	}{{now, ""}, {was, "in the baseline "}} {
		if doubt := part.of.WhyNoRate(); doubt != nil {
			return q.Unknown(fmt.Errorf("%s%w", part.when, doubt))
		}
	}
	if was.Last().process != now.First().process {
		return q.Unknown(check.Doubt(check.OtherProcess, "in the baseline it was another process"))
	}
	limit := was.rate() + min(0.5, 0.1+was.rate())
	q.Say("%.3g CPUs in %s, where the baseline had %.3g and less than %.3g is asked for",
		question.N("cpus", now.rate()), question.Span(now.Extent()), question.N("baselineCPUs", was.rate()), limit)
	if q.Met = check.Of(now.rate() < limit); q.Met == check.True {
		least := limit
		if still, dumps := nobodySpins(phase); still { // so no loop starves in a control group of little weight
			least = min(limit, 2*now.rate())
			q.Evidence = append(q.Evidence, dumps...)
		}
		starved(q, now.rate(), least)
	}
	return q.Finding
}

// spinDumps is how many of the last dumps must all show a goroutine at work for it to count as a loop.
const spinDumps = 3

// nobodySpins reports whether no goroutine is at work in every one of the last dumps, and returns
// the paths of these dumps. Goroutines that serve the profile itself don't count. Dumps after which
// a capture failed are not the last.
func nobodySpins(q *question.Question) (still bool, paths []string) {
	all := goroutines.ReadDumps(q)
	if all.Missing != nil || all.Failed.After(all.Last) || len(all.In) < spinDumps {
		return false, nil
	}
	last := all.In[len(all.In)-spinDumps:]
	for id, g := range last[0] {
		if !g.Ready() || slices.ContainsFunc(g.Frames, func(f goroutine.Frame) bool { return strings.Contains(f.Func, "pprof.") }) {
			continue
		}
		if !slices.ContainsFunc(last[1:], func(d goroutines.ByID) bool { return d[id] == nil || !d[id].Ready() }) {
			return false, nil
		}
	}
	return true, all.Paths[len(all.Paths)-spinDumps:]
}
