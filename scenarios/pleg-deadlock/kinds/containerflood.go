// Package kinds has the kinds of the scenario pleg-deadlock: the faults of a container runtime that is slow and that
// reports a flood of containers, collectors of what the kubelet made of it, and the check of how much reached it.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/fixtures/control"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/inject/faults"
	"github.com/kube-relapse/relapse/harness/kinds"
)

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "containerFlood",
		Doc: "Many containers at once: the runtime reports many more pods than before.\n\n" +
			"The containers are only reported: none of them runs, and real containers are not touched. Without pods, " +
			"the number of pods follows from two constants of the subject: one relist must take longer than the " +
			"constant outlast, and must then still have more events to send than the channel holds (the constant " +
			"overflow). A constant may be unknown for an arm, for example if the arm is an executable. The flood is " +
			"then sized for a channel of up to unknownFactor times the largest known capacity, and for a threshold " +
			"of up to unknownOutlastFactor times the longest known one. One relist of at most longest, and 22000 " +
			"containers, limit these sizes. The verdict covers no larger ones. Known constants that don't fit within " +
			"the limits are refused.",
		Example: "name: flood\nkind: containerFlood\ntarget: {mode: all, selector: {component: kubelet}}\n" +
			"spec:\n  containersPerPod: 10\n  outlast: relistThreshold\n  overflow: channelCapacity\n",
		Tested: `{"pods":7,"containersPerPod":3}`,
		New: func() fault.Fault {
			return &ContainerFlood{
				ContainersPerPod:     10,
				State:                control.StateExited,
				OverflowFactor:       1.5,
				UnknownFactor:        8,
				UnknownOutlastFactor: 12,
				Longest:              metav1.Duration{Duration: 20 * time.Minute},
			}
		},
	})
}

// ContainerFlood adds pods that the runtime only reports.
type ContainerFlood struct {
	Pods             int     `json:"pods,omitempty" jsonschema:"number of pods; default: computed from outlast and overflow"`
	ContainersPerPod int     `json:"containersPerPod,omitzero" jsonschema:"containers in each pod, without its sandbox; at least 1"`
	State            string  `json:"state,omitempty" jsonschema:"running or exited: the state in which the containers are first seen"`
	Outlast          string  `json:"outlast,omitempty" jsonschema:"name of the constant, a duration, that one relist must outlast; required without pods"`
	Overflow         string  `json:"overflow,omitempty" jsonschema:"name of the constant that says how many events the channel holds; required without pods"`
	OverflowFactor   float64 `json:"overflowFactor,omitzero" jsonschema:"events that must be left when the relist has outlasted the threshold, as a multiple of the channel's capacity; at least 1"`
	UnknownFactor    float64 `json:"unknownFactor,omitzero" jsonschema:"largest capacity assumed for an arm whose capacity is unknown, as a multiple of the largest known one; at least 1"`
	// UnknownOutlastFactor may be high: to exceed a threshold costs only time, and a relist ends early if the subject's
	// own threshold is shorter.
	UnknownOutlastFactor float64         `json:"unknownOutlastFactor,omitzero" jsonschema:"longest threshold assumed for an arm whose threshold is unknown, as a multiple of the longest known one; at least 1"`
	Longest              metav1.Duration `json:"longest,omitzero" jsonschema:"how long one relist may take at most; above 0"`

	assumed map[string]int64
}

// Validate refuses a flood without a size, and one whose size follows from too little.
func (f *ContainerFlood) Validate() error {
	switch {
	case f.Pods < 0:
		return fmt.Errorf("pods is %d (want 0 or more)", f.Pods)
	case f.ContainersPerPod < 1:
		return fmt.Errorf("containersPerPod is %d (want at least 1)", f.ContainersPerPod)
	case f.State != control.StateRunning && f.State != control.StateExited:
		return fmt.Errorf(
			"state is %q (want %s or %s)",
			f.State,
			control.StateRunning,
			control.StateExited,
		)
	case f.Pods > 0:
		return nil
	case f.Outlast == "" || f.Overflow == "":
		return errors.New("neither pods nor both of outlast and overflow are given, so that the flood has no size")
	case f.OverflowFactor < 1:
		return fmt.Errorf(
			"overflowFactor is %g (want at least 1, or the channel would hold what is left)",
			f.OverflowFactor,
		)
	case f.UnknownFactor < 1:
		return fmt.Errorf(
			"unknownFactor is %g (want at least 1, or an arm that is not known would be tried with "+
				"less than one that is)",
			f.UnknownFactor,
		)
	case f.UnknownOutlastFactor < 1:
		return fmt.Errorf(
			"unknownOutlastFactor is %g (want at least 1, or an arm that is not known would be tried "+
				"with less than one that is)",
			f.UnknownOutlastFactor,
		)
	case f.Longest.Duration <= 0:
		return fmt.Errorf("longest is %s (want above 0)", f.Longest.Duration)
	}
	return nil
}

// Needs returns what the fault requires: the cri seam, which listings pass through, and the constants that the size
// follows from.
func (f *ContainerFlood) Needs() fault.Needs {
	n := fault.Needs{Seams: []string{"cri"}, Exec: true}
	if f.Pods == 0 {
		n.Constants = []string{f.Outlast, f.Overflow}
	}
	return n
}

// maxReported is the most containers of a computed flood. Each takes about 660 bytes of a listing, which must stay
// below control.MaxAnswer with control.AnswerHeadroom and room for real ones.
const maxReported = 22_000

// Compute sizes the flood for the largest constants of all arms. With a latency L on each call and C containers in a
// pod, kubelet makes C+1 delayed calls a pod from v1.36 on (PodSandboxStatus, C times ContainerStatus). Earlier
// versions make two more (ListPodSandbox and ListContainers by the pod's uid). kubelet gets C+1 events for the pod (the
// sandbox counts). So ceil(threshold / (L*(C+1))) pods keep a relist of any version busy past its threshold, and
// ceil(factor*capacity/(C+1)) more pods leave more events than the channel holds.
//
// Without a latency among the faults the runtime's own speed decides, which nothing bounds. Then the size is that for a
// latency of 40 ms, so that a flood alone can be told from a flood with a slow runtime.
func (f *ContainerFlood) Compute(
	constants []map[string]int64,
	others []fault.Fault,
) (fault.Fault, map[string]string, error) {
	if f.Pods > 0 {
		return f, map[string]string{"pods": fmt.Sprintf("%d, as given", f.Pods)}, nil
	}
	latency := 40 * time.Millisecond
	for _, o := range others {
		if s, ok := o.(fault.RuntimeSlower); ok {
			latency = s.RuntimeDelay()
		}
	}
	threshold, allThresholds, err := largest(constants, f.Outlast)
	if err != nil {
		return nil, nil, err
	}
	capacity, allCapacities, err := largest(constants, f.Overflow)
	if err != nil {
		return nil, nil, err
	}
	sized := *f
	explained, err := sized.size(latency, threshold, capacity, allThresholds, allCapacities)
	return &sized, explained, err
}

// size sets the number of pods for the largest known constants, and for assumed ones as far as there is room. The
// capacity comes first, because a wrong fix changes it more often.
func (f *ContainerFlood) size(latency time.Duration, threshold, capacity int64, thresholdKnown,
	capacityKnown bool) (map[string]string, error) {
	calls, events := f.ContainersPerPod+1, f.ContainersPerPod+1
	perPod, longestPerPod := latency*time.Duration(calls), latency*time.Duration(calls+2)
	most := min(maxReported/f.ContainersPerPod, int(f.Longest.Duration/longestPerPod))
	pods := func(threshold, capacity float64) (busy, left int) {
		return ceil(threshold / float64(perPod)), ceil(capacity / float64(events))
	}
	busy, left := pods(float64(threshold), leastOverflow*float64(capacity))
	if busy+left > most {
		return nil, &fault.TooLargeError{Why: fmt.Sprintf("one relist that outlasts the %s of %s and still overflows the %s of "+
			"%d would take up to %s and report %d containers: at most %s and %d are possible", f.Outlast, time.Duration(threshold), f.Overflow, capacity,
			(time.Duration(busy+left) * longestPerPod).Round(time.Second), (busy+left)*f.ContainersPerPod, f.Longest.Duration, maxReported)}
	}
	f.assumed = map[string]int64{}
	said := map[string]string{}
	known := capacity
	if !capacityKnown {
		capacity = int64(ceil(f.UnknownFactor * float64(known)))
	}
	if _, left = pods(0, f.OverflowFactor*float64(capacity)); busy+left > most {
		said["limited"] = fmt.Sprintf(
			"%d pods would be needed, and at most %d are possible: it is limited to those",
			busy+left,
			most,
		)
		left = most - busy
		if fits := int64(float64(left*events) / f.OverflowFactor); !capacityKnown {
			capacity = max(fits, known)
		}
	}
	if !capacityKnown {
		f.assumed[f.Overflow] = capacity
		said["unknown"] = fmt.Sprintf(
			"%s is not known for every arm: the flood is for one of %d, up to %g times the "+
				"largest that is known (%d); a channel that holds more would look like a fix",
			f.Overflow,
			capacity,
			f.UnknownFactor,
			known,
		)
	}
	if !thresholdKnown {
		largest := threshold
		busy, _ = pods(f.UnknownOutlastFactor*float64(threshold), 0)
		busy = min(busy, most-left)
		threshold = max(int64((time.Duration(busy) * perPod).Truncate(time.Second)), largest)
		f.assumed[f.Outlast] = threshold
		said["unknownThreshold"] = fmt.Sprintf(
			"%s is not known for every arm: the flood is for one of %s, up to %g "+
				"times the largest that is known (%s); a longer one is never exceeded",
			f.Outlast,
			time.Duration(threshold),
			f.UnknownOutlastFactor,
			time.Duration(largest),
		)
	}
	f.Pods = busy + left
	said["pods"] = fmt.Sprintf(
		"%d = %d to outlast %s of %s at %d calls of %s a pod, and %d for %g times %s of %d at "+
			"%d events a pod",
		f.Pods,
		busy,
		f.Outlast,
		time.Duration(threshold),
		calls,
		latency,
		left,
		f.OverflowFactor,
		f.Overflow,
		capacity,
		events,
	)
	said["planned"] = fmt.Sprintf(
		"up to %d events, and one relist of at least %s if it is given them all",
		f.Pods*events,
		(time.Duration(f.Pods) * perPod).Round(time.Second),
	)
	return said, nil
}

// leastOverflow is the least that a flood must leave for the channel, as a multiple of its capacity, so that a check
// can see that more events were delivered than the channel holds.
const leastOverflow = 1.25

// Assumed returns the values that the flood was sized for in place of unknown constants.
func (f *ContainerFlood) Assumed() map[string]int64 { return f.assumed }

// Modelled returns a sentence on what is imitated.
func (f *ContainerFlood) Modelled() []string {
	return []string{
		"the containers of the flood are only reported by the CRI interposer, none of them ran; real " +
			"containers run beside them",
	}
}

// Inject adds the pods on every node and returns once the harness's own listings show all of them.
func (f *ContainerFlood) Inject(ctx context.Context, t fault.Target) error {
	spec := control.Flood{Pods: f.Pods, ContainersPerPod: f.ContainersPerPod, State: f.State}
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		spec := spec
		spec.Seed = t.Run + "/" + n.Name()
		if _, err := c.ArmFlood(ctx, faults.Arm(t), spec); err != nil {
			return err
		}
		_, err := observe(ctx, c, func(p control.Probe) bool {
			return p.ReportedPods == f.Pods && p.ReportedContainers == f.Pods*f.ContainersPerPod
		})
		if err != nil {
			return fmt.Errorf("%s on %s armed and not seen: %w", t.Name, n.Name(), err)
		}
		faults.Emit(
			t,
			event.FaultSeen,
			n,
			"the runtime reports %d more pods with %d containers",
			f.Pods,
			f.Pods*f.ContainersPerPod,
		)
		return nil
	})
}

// Recover removes the pods and returns once the harness's own listings show none.
func (f *ContainerFlood) Recover(ctx context.Context, t fault.Target) error {
	return onNodes(ctx, t, func(ctx context.Context, n cluster.Node, c *control.Client) error {
		if _, err := c.Disarm(ctx, control.Disarm{ID: t.Name, Owner: t.Run, Fault: control.FaultFlood}); err != nil {
			return err
		}
		p, err := observe(
			ctx,
			c,
			func(p control.Probe) bool { return p.ReportedPods == 0 && p.ReportedContainers == 0 },
		)
		if err != nil {
			return fmt.Errorf(
				"%s on %s disarmed and pods are still reported: %w",
				t.Name,
				n.Name(),
				err,
			)
		}
		faults.Emit(
			t,
			event.FaultGone,
			n,
			"the runtime reports its %d real pods only",
			p.RealPods,
		)
		return nil
	})
}

// largest returns the largest known value of a constant, and whether the constant is known in every arm.
func largest(constants []map[string]int64, name string) (out int64, all bool, err error) {
	known := 0
	for _, c := range constants {
		if v, ok := c[name]; ok {
			known++
			out = max(out, v)
		}
	}
	if known == 0 {
		return 0, false, fmt.Errorf(
			"the constant %q, which the fault's size follows from, is not known for any arm",
			name,
		)
	}
	if out <= 0 {
		return 0, false, fmt.Errorf("the constant %q is %d", name, out)
	}
	return out, known == len(constants), nil
}

func ceil(x float64) int { return int(math.Ceil(x)) }
