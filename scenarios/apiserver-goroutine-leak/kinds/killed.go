package kinds

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/check/logs"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// atOnce is the longest time between a goroutine profile and a heap profile that count as one snapshot. If they were
// further apart, the memory of calls that came in between would count as leaked.
const atOnce = 5 * time.Second

func init() {
	check.Register(check.Kind{
		Name: "killedForMemory",
		Doc: "A leak grew until the subject's container was killed for its memory.\n\n" +
			"The kill destroys the goroutines, so the growth must be seen before the kill, in quiet snapshots of one " +
			"container: snapshots with no call in flight. Each snapshot that counts shows more leaked goroutines and " +
			"more retained bytes than the one that counted before. Then the same container must end with reason " +
			"OOMKilled or exit code 137. A kill without such growth is unknown, because the leak doesn't explain the " +
			"kill. If the container ended in another way or ran on, the check is false.",
		Example: "name: killed\nkind: killedForMemory\nphase: fault\nspec:\n  container: kube-apiserver\n  func: " +
			"registry.(*Store).DeleteCollection\n  state: chan send\n" +
			"  inFlight: [restfulDeleteCollection]\n  heapFunc: registry.(*Store).DeleteCollection\n  snapshots: 3\n",
		Differs: `{"container":"kubelet","func":"f","heapFunc":"f"}`,
		New:     func() check.Check { return &KilledForMemory{Leak: Leak{State: "chan send"}, Snapshots: 3} },
	})
}

// KilledForMemory checks that a leak grew until its container was killed for its memory.
type KilledForMemory struct {
	Leak
	Container string `json:"container" refers:"status" derives:"subject" jsonschema:"name of the subject's container, such as kube-apiserver"`
	HeapFunc  string `json:"heapFunc" jsonschema:"part of a function's name: the leaked memory was allocated below this function"`
	Snapshots int    `json:"snapshots,omitzero" jsonschema:"how many quiet snapshots must show growth, at least (2 or more)"`
}

// Reads names container statuses and profiles.
func (c *KilledForMemory) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.Statuses, bundle.Goroutines1, bundle.Goroutines2, bundle.Heap}
}

// Validate refuses a spec that any kill would satisfy.
func (c *KilledForMemory) Validate() error {
	return errors.Join(
		c.Leak.validate(),
		question.Refuse(c.Container == "", "container is empty"),
		question.Refuse(c.HeapFunc == "", "heapFunc is empty, which all memory would match"),
		question.Refuse(
			c.Snapshots < 2,
			"snapshots is %d (want at least 2: one shows no growth)",
			c.Snapshots,
		),
	)
}

// Eval finds how the container that ran when the window began ended. If the container was killed for its memory, Eval
// then checks whether the leak grew before the kill.
func (c *KilledForMemory) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s,
		fmt.Sprintf("goroutines [%s] in %s and the bytes below %s growing in at least %d quiet snapshots, and then a "+
			"kill of %s (OOMKilled or 137)",
			c.State, c.Func, c.HeapFunc, c.Snapshots, c.Container))
	if !ok {
		return q.Finding
	}
	st := logs.ReadStatuses(q)
	q.Evidence = st.Paths
	e, doubt := endOf(st.Records, c.Container, q.Window)
	doubt = cmp.Or(doubt, st.Doubt)
	switch {
	case e.At.IsZero() && doubt != nil:
		return q.Unknown(doubt)
	case e.At.IsZero():
		return q.Answer(
			check.False,
			fmt.Sprintf("%s ran on as %s", c.Container, logs.ShortID(e.ID)),
		)
	case e.At.After(q.Window.End) && q.Phase == check.Baseline: // the container ran until the phase was over
		return q.Answer(check.False, "that was after the phase: "+e.Describe())
	case e.At.After(q.Window.End):
		return q.Unknown(check.Doubt(check.NotConclusive, "that was after the phase: %s", e.Describe()))
	}
	if !killedForMemory(e) {
		return q.Answer(check.False, e.Describe()+": that is no kill for memory")
	}
	q.Seen, q.Ended, q.Window.End = e.Describe(), e.At, e.At
	c.growth(q)
	return q.Finding
}

// endOf finds how the container that ran when a window began ended, even if the end was only seen after the window: an
// API server can't report its own end. doubt says why the answer isn't known.
func endOf(
	all []bundle.ContainerStatus,
	container string,
	w bundle.Window,
) (e logs.ContainerEnd, doubt error) {
	all = slices.DeleteFunc(
		slices.Clone(all),
		func(r bundle.ContainerStatus) bool { return r.Container != container },
	)
	slices.SortStableFunc(
		all,
		func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) },
	)
	var ran *bundle.ContainerStatus // the newest status when the window began, or the first one soon after
	for i, r := range all {
		if r.Time.After(w.Start) && (ran != nil || r.Time.After(w.Start.Add(question.Slack(w)))) {
			break
		}
		ran = &all[i]
	}
	switch {
	case ran == nil:
		return e, check.Doubt(
			check.NotRecorded,
			"no status of %s was recorded by %s",
			container,
			question.Clock(w.Start),
		)
	case ran.State != "running":
		return e, check.Doubt(
			check.NotConclusive,
			"%s was %s at %s",
			container,
			ran.State,
			question.Clock(w.Start),
		)
	}
	e = logs.ContainerEnd{Container: container, ID: ran.ID}
	for _, r := range all {
		if !r.Time.After(ran.Time) || r.Pod != ran.Pod {
			continue
		}
		switch {
		case r.LastID == e.ID: // only the next container's status says when this one ended
			e.Reason, e.Code = r.LastReason, r.LastExitCode
			if e.At = r.LastFinished; e.At.IsZero() {
				e.At = r.Time
			}
			return e, nil
		case r.ID == e.ID && r.State == "terminated":
			e.At, e.Reason, e.Code = r.Time, r.Reason, r.ExitCode
		case r.ID != e.ID && e.At.IsZero():
			return e, check.Doubt(
				check.Gap,
				"%s was another container at %s, and how the one before ended was not seen",
				container,
				question.Clock(r.Time),
			)
		}
	}
	return e, nil
}

// killedForMemory reports whether a container was killed for its memory, or by the same signal. The kubelet doesn't
// always learn that memory was the reason.
func killedForMemory(e logs.ContainerEnd) bool { return e.Reason == "OOMKilled" || e.Code == 137 }

// growth completes a finding about a kill: the answer is True if the quiet snapshots before the kill show enough
// growth.
func (c *KilledForMemory) growth(q *question.Question) {
	look := c.observe(q)
	q.Differs = look.Notes
	q.Evidence = append(q.Evidence, look.Paths...)
	var grown []level
	for i, s := range look.quiet {
		if i > 0 && !includes(s.ids, look.quiet[i-1].ids) {
			q.DoubtBy(
				check.NotConclusive,
				"; goroutines of %s were gone by %s: they were not leaked",
				question.Clock(look.quiet[i-1].at),
				question.Clock(s.at),
			)
			return
		}
		bytes, path, err := c.retained(q, s.at)
		if err != nil {
			q.Differs = append(q.Differs, fmt.Sprintf("%s: %v", question.Clock(s.at), err))
			continue
		}
		q.Evidence = append(q.Evidence, path)
		q.Detail = s.stack
		switch last := len(grown) - 1; {
		case last < 0 || s.blocked > grown[last].blocked && bytes > grown[last].bytes:
			grown = append(grown, level{s.at, s.blocked, bytes})
		case s.blocked > grown[last].blocked:
			q.Differs = append(
				q.Differs,
				fmt.Sprintf(
					"%s: %d leaked, but %s retained, no more than before",
					question.Clock(s.at),
					s.blocked,
					question.Mebibytes(bytes),
				),
			)
		}
	}
	q.Differs = question.FirstAndLast(q.Differs)
	q.Add("; %s", levels(grown))
	switch {
	case look.Missing != nil:
		q.Doubt(look.Missing)
	case len(grown) < c.Snapshots:
		q.DoubtBy(
			check.TooFew,
			": %d of %d quiet snapshots show growth, and a kill that the leak doesn't explain may "+
				"have any cause",
			len(grown),
			len(look.quiet),
		)
	default:
		q.Met = check.True
	}
}

// level is the size of a leak at one time.
type level struct {
	at      time.Time
	blocked int
	bytes   int64
}

func levels(all []level) string {
	if len(all) == 0 {
		return "before it no snapshot with a heap profile"
	}
	var out []string
	for _, l := range all {
		out = append(
			out,
			fmt.Sprintf(
				"%d leaked and %s at %s",
				l.blocked,
				question.Mebibytes(l.bytes),
				question.Clock(l.at),
			),
		)
	}
	return "before it " + strings.Join(out, ", ")
}

// retained reads the heap profile nearest to a snapshot, which must lie within atOnce of the snapshot. It returns the
// bytes in use that were allocated below HeapFunc, and the path of the profile.
func (c *KilledForMemory) retained(
	q *question.Question,
	at time.Time,
) (bytes int64, path string, err error) {
	var nearest *bundle.Artifact
	for _, a := range q.View.Artifacts(bundle.Query{Kind: bundle.Heap, Arm: q.Arm, From: q.Window.Start,
		To: q.Window.End}) {
		away := a.Time.Sub(at).Abs()
		if a.Error == "" && away <= atOnce && (nearest == nil || away < nearest.Time.Sub(at).Abs()) {
			nearest = &a
		}
	}
	if nearest == nil {
		return 0, "", fmt.Errorf("there is no heap profile within %s of it", atOnce)
	}
	kept, err := goroutines.ReadRetention(q.View, *nearest, c.HeapFunc)
	return kept.Bytes, nearest.Path, err
}

// includes reports whether all, which is sorted, contains every id in some.
func includes(all, some []uint64) bool {
	for _, id := range some {
		if _, ok := slices.BinarySearch(all, id); !ok {
			return false
		}
	}
	return true
}
