package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

func init() {
	check.Register(check.Kind{
		Name: "cpuShare",
		Doc: "Which share of the subject's CPU time was spent in functions and in what they call, by all CPU " +
			"profiles that lie wholly in the window.\n\n" +
			"The Go runtime schedules on a separate stack. So the samples of a loop that only yields fall on " +
			"runtime.gosched_m, and not on the function that has the loop: name both. A share doesn't say how busy " +
			"the process is: ask processCPU, too. Profiles without a single sample show a process at rest, in which " +
			"no function has a share.",
		Example: "name: yields\nkind: cpuShare\nphase: fault\nspec:\n  funcs: [runtime.gosched_m, " +
			"'dynamiclistener.(*listener).WrapExpiration.func1']\n  above: 50%\n  profiles: 2\n",
		Meets:   `{"funcs":["pleg.(*GenericPLEG).Relist"],"above":"50%"}`,
		Differs: `{"funcs":["runtime.gosched_m"],"above":"50%"}`,
		New:     func() check.Check { return &CPUShare{Profiles: 1} },
	})
}

// CPUShare asks what a process spends its CPU time on.
type CPUShare struct {
	Funcs    []string `json:"funcs" jsonschema:"names of functions, without arguments; the start of the import path may be left out. A sample counts if one of these functions is on its stack"`
	Above    string   `json:"above" jsonschema:"the share must be larger than this: 0% or more, and less than 100%"`
	Profiles int      `json:"profiles,omitzero" jsonschema:"how many profiles there must be, at least (1 or more)"`
}

// Reads names CPU profiles.
func (c *CPUShare) Reads() []bundle.Kind { return []bundle.Kind{bundle.CPU} }

// RestsOnCPU returns true: it is a share of CPU time.
func (*CPUShare) RestsOnCPU() bool { return true }

// Validate refuses a share that any profile would exceed, or none could.
func (c *CPUShare) Validate() error {
	share, err := question.Percent("above", c.Above)
	return errors.Join(
		question.Refuse(len(c.Funcs) == 0 || slices.Contains(c.Funcs, ""), "funcs is %q (want at least one, none of them empty)",
			c.Funcs),
		cmp.Or(err, question.Refuse(share < 0 || share >= 1, "above is %s (want 0%% or more, and less than 100%%)", c.Above)),
		question.Refuse(c.Profiles < 1, "profiles is %d (want at least 1)", c.Profiles),
	)
}

// OfTrials names the field that says how a trial shows the share: in how many profiles.
func (*CPUShare) OfTrials() []string { return []string{"profiles"} }

// Eval adds up the profiles of the window.
func (c *CPUShare) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("more than %s of the CPU time in %q, by at least %d profiles", c.Above, c.Funcs,
		c.Profiles))
	if !ok {
		return q.Finding
	}
	above, _ := question.Percent("above", c.Above) // Validate has read it
	var sum cpuTime
	var all question.Captured
	all.Each(q, bundle.CPU, "CPU profile", func(a bundle.Artifact) error {
		one, err := c.read(q.View, a)
		if err != nil {
			return err
		}
		if a.Time.Add(one.took).After(q.Window.End) { // the profile goes on after the window
			return nil
		}
		sum = cpuTime{sum.in + one.in, sum.all + one.all, sum.took + one.took, sum.n + 1}
		return nil
	})
	q.Evidence, q.Differs = all.Paths, question.FirstAndLast(all.Notes)
	share := 0.0
	if sum.all > 0 {
		share = float64(sum.in) / float64(sum.all)
	}
	q.Say(
		"%.3g%% of the %s of CPU time in %d profiles over %s",
		question.N("percent", 100*share),
		question.Rounded(
			"cpuSeconds",
			sum.all,
			10*time.Millisecond,
		),
		question.N("profiles", sum.n),
		sum.took.Round(100*time.Millisecond),
	)
	switch {
	case all.Missing != nil:
		q.Doubt(all.Missing)
	case sum.n < c.Profiles:
		q.DoubtBy(check.TooFew, ": too few to answer by")
	default:
		q.Met = check.Of(share > above)
	}
	return q.Finding
}

// cpuTime adds up what CPU profiles show.
type cpuTime struct {
	in, all time.Duration // CPU time in the functions, and of the whole process
	took    time.Duration // how long profiling lasted
	n       int           // how many profiles
}

func (c *CPUShare) read(v bundle.View, a bundle.Artifact) (cpuTime, error) {
	if a.Missing {
		return cpuTime{}, question.CaptureError(a)
	}
	return question.Remember(v, a, fmt.Sprintf("CPU time in %q", c.Funcs), func(out cpuTime, r io.Reader) (cpuTime, error) {
		p, err := profile.Parse(r)
		if err != nil {
			return out, err
		}
		at := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool {
			return t.Type == "cpu" && t.Unit == "nanoseconds"
		})
		if at < 0 || p.DurationNanos <= 0 {
			return out, errors.New("it has no samples of cpu in nanoseconds, or doesn't say how long it took")
		}
		out.took = time.Duration(p.DurationNanos)
		for _, s := range p.Sample {
			out.all += time.Duration(s.Value[at])
			if c.counts(s) {
				out.in += time.Duration(s.Value[at])
			}
		}
		return out, nil
	})
}

// counts reports whether one of the functions is in a sample's stack.
func (c *CPUShare) counts(s *profile.Sample) bool {
	var stack goroutine.Group
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function != nil {
				stack.Frames = append(stack.Frames, goroutine.Frame{Func: line.Function.Name})
			}
		}
	}
	return slices.ContainsFunc(
		c.Funcs,
		func(f string) bool { return goroutine.Match{Func: f}.Chooses(stack) },
	)
}
