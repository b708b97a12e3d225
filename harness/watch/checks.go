package watch

import (
	"cmp"
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/objects"
	"github.com/kube-relapse/relapse/harness/check/probes"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
)

// Check is a question that Stop asks of the evidence, and what records that evidence. Its phases are check.Baseline,
// Suite, and check.Recovery, about which it is asked.
type Check struct {
	Name       string
	Ask        check.Check
	Collectors []capture.Collector
	// Work is done when Stop begins, if it isn't nil. Its record, of the kind bundle.WorkProbe, has the name What.
	Work func(context.Context) error
	What string
}

// compared is how many of the last goroutine dumps and heap profiles are compared with the baseline, which has as many.
const compared = 3

// NothingStuck asks that no goroutines were left behind since Start, in whichever function: fewer than three that wait to
// send or for a lock, and no group of others that grew by eight or more and by a quarter. It is the check goroutinesBack.
func NothingStuck() Check {
	return Check{Name: "nothingStuck", Ask: &goroutines.GoroutinesBack{Dumps: compared},
		Collectors: []capture.Collector{&collectors.Goroutines{}}}
}

// MemoryBack asks that the program keeps less than 8 MiB, or less than a quarter, more memory than at Start. It is the
// check heapBack. Caches of watched objects don't count.
func MemoryBack() Check {
	return Check{
		Name:       "memoryBack",
		Ask:        &goroutines.HeapBack{Profiles: compared},
		Collectors: []capture.Collector{&collectors.Heap{}},
	}
}

// Quiet says which objects must stand still.
type Quiet struct {
	Resources  []string      // plural names with their API groups, without one for the core group: widgets.example.org
	Namespaces []string      // none for all
	For        time.Duration // how long; a loop that writes less often is not seen. 0 for 20s
	// Ignore has paths whose changes count for nothing, such as status.conditions[*].lastHeartbeatTime.
	Ignore []string
}

// QuietWorld asks that nobody writes to the objects once the tests are over: then whoever still writes is a loop. At
// least one object of each resource must be left, or the answer is unknown. It is the check quietWorld.
func QuietWorld(q Quiet) Check {
	c := &quiet{objects.QuietWorld{Quiet: objects.Quiet{Resources: q.Resources, Still: "1s",
		For: cmp.Or(q.For, 20*time.Second).String(), Ignore: append([]string{}, q.Ignore...)}}}
	chosen := collectors.Chosen{Resources: q.Resources, Shared: true, Namespaces: q.Namespaces}
	return Check{
		Name: "quietWorld",
		Ask:  c,
		Collectors: []capture.Collector{
			&collectors.Objects{Chosen: chosen, Interval: metav1.Duration{Duration: time.Second}},
		},
	}
}

// Recovered asks that the program still does its work: that work returns nil once the tests are over. work asks for
// something and waits for it, such as an object and its status; what says in words what that is. It is the check
// probeDone.
func Recovered(what string, work func(context.Context) error) Check {
	return Check{Name: "recovered", Ask: &probes.ProbeDone{Probe: what}, Work: work, What: what}
}

// quiet is the check quietWorld for objects that are there.
type quiet struct{ objects.QuietWorld }

// Validate refuses an empty list, which would stand for the world of a scenario.
func (c *quiet) Validate() error {
	return errors.Join(
		question.Refuse(
			len(c.Resources) == 0,
			"quietWorld has no resources (want at least one: widgets.example.org)",
		),
		c.QuietWorld.Validate(),
	)
}

// Eval searches for a quiet window. If there was no object in it that could have been written, the answer is unknown.
// If there is no quiet window, the finding shows the last write.
func (c *quiet) Eval(v bundle.View, s check.Scope) check.Finding {
	f := c.QuietWorld.Eval(v, s)
	q, ok := question.Open(c, v, s, f.Wanted)
	if !ok || f.Met == check.Unknown {
		return f
	}
	in := q.Window
	if f.Met == check.True {
		in = c.Find(q).Window
	}
	q.Evidence = f.Evidence
	var last objects.Written
	for _, resource := range c.Resources {
		of, doubt := objects.RecordsFollowing(v, s.Arm, resource)
		if len(of) == 0 {
			return q.Unknown(doubt)
		}
		got := objects.ActivityOf(of, resource, "", in)
		if f.Met == check.True && got.Existing == 0 {
			return q.Unknown(
				check.Doubt(
					check.NotRecorded,
					"there was no object of %s left to be written in %s",
					resource,
					question.Span(in),
				),
			)
		}
		if n := len(got.All); f.Met == check.False && n > 0 && got.All[n-1].At.After(last.At) {
			last = got.All[n-1]
			f.Detail = objects.ExampleOf(of, got.All[n-1:])
		}
	}
	return f
}

// oneProcess asks that the subject was one process from the baseline on: it didn't crash, and what is compared is of
// one program.
type oneProcess struct{}

func (oneProcess) Reads() []bundle.Kind { return []bundle.Kind{bundle.Identity} }

func (oneProcess) Eval(v bundle.View, s check.Scope) check.Finding {
	w, ended := s.Window(v)
	base, began := v.Phase(s.Arm, check.Baseline)
	w.Start = base.Start
	f := question.OneProcess(v, s.Arm, w, question.MaxIdentityGap)
	if !began || !ended {
		f.Met, f.Code, f.Seen = check.Unknown, check.NoPhase, "the watch did not get to its end"
	}
	if f.Met != check.True {
		return f
	}
	if why, paths := question.OtherProcess(v, s.Arm, w); why != "" {
		f.Met, f.Seen, f.Evidence = check.False, why, append(f.Evidence, paths...)
	}
	return f
}
