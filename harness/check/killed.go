package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// atOnce is the longest time between a goroutine profile and a heap profile that count as one snapshot. If they were
// further apart, the memory of calls that came in between would count as leaked.
const atOnce = 5 * time.Second

func init() {
	register(kind{
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
		New:     func() Check { return &KilledForMemory{Leak: Leak{State: "chan send"}, Snapshots: 3} },
	})
}

// KilledForMemory checks that a leak grew until its container was killed for its memory.
type KilledForMemory struct {
	Leak
	Container string `json:"container" jsonschema:"name of the subject's container, such as kube-apiserver"`
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
		refuse(c.Container == "", "container is empty"),
		refuse(c.HeapFunc == "", "heapFunc is empty, which all memory would match"),
		refuse(c.Snapshots < 2, "snapshots is %d (want at least 2: one shows no growth)", c.Snapshots),
	)
}

// Eval finds how the container that ran when the window began ended. If the container was killed for its memory, Eval
// then checks whether the leak grew before the kill.
func (c *KilledForMemory) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s,
		fmt.Sprintf("goroutines [%s] in %s and the bytes below %s growing in at least %d quiet snapshots, and then a "+
			"kill of %s (OOMKilled or 137)",
			c.State, c.Func, c.HeapFunc, c.Snapshots, c.Container))
	if !ok {
		return q.Finding
	}
	st := statuses(q)
	q.Evidence = st.paths
	e, doubt := endOf(st.records, c.Container, q.window)
	doubt = cmp.Or(doubt, st.doubt)
	switch {
	case e.at.IsZero() && doubt != "":
		return q.unknown(doubt)
	case e.at.IsZero():
		return q.answer(False, fmt.Sprintf("%s ran on as %s", c.Container, shortID(e.id)))
	case e.at.After(q.window.End) && q.phase == Baseline: // the container ran until the phase was over
		return q.answer(False, "that was after the phase: "+e.describe())
	case e.at.After(q.window.End):
		return q.unknown("that was after the phase: " + e.describe())
	}
	if !e.killed() {
		return q.answer(False, e.describe()+": that is no kill for memory")
	}
	q.Seen, q.Ended, q.window.End = e.describe(), e.at, e.at
	c.growth(q)
	return q.Finding
}

// growth completes a finding about a kill: the answer is True if the quiet snapshots before the kill show enough
// growth.
func (c *KilledForMemory) growth(q *question) {
	look := c.observe(q)
	q.Differs = look.notes
	q.Evidence = append(q.Evidence, look.paths...)
	var grown []level
	for i, s := range look.quiet {
		if i > 0 && !includes(s.ids, look.quiet[i-1].ids) {
			q.Seen += fmt.Sprintf("; goroutines of %s were gone by %s: they were not leaked", clock(look.quiet[i-1].at),
				clock(s.at))
			return
		}
		bytes, path, err := c.retained(q, s.at)
		if err != nil {
			q.Differs = append(q.Differs, fmt.Sprintf("%s: %v", clock(s.at), err))
			continue
		}
		q.Evidence = append(q.Evidence, path)
		q.Detail = s.stack
		switch last := len(grown) - 1; {
		case last < 0 || s.blocked > grown[last].blocked && bytes > grown[last].bytes:
			grown = append(grown, level{s.at, s.blocked, bytes})
		case s.blocked > grown[last].blocked:
			q.Differs = append(q.Differs,
				fmt.Sprintf("%s: %d leaked, but %s retained, no more than before", clock(s.at), s.blocked, mebi(bytes)))
		}
	}
	q.Differs = firstAndLast(q.Differs)
	q.Seen += "; " + levels(grown)
	switch {
	case look.missing != "":
		q.Seen += "; " + look.missing
	case len(grown) < c.Snapshots:
		q.Seen += fmt.Sprintf(": %d of %d quiet snapshots show growth, and a kill that the leak doesn't explain may "+
			"have any cause", len(grown), len(look.quiet))
	default:
		q.Met = True
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
		out = append(out, fmt.Sprintf("%d leaked and %s at %s", l.blocked, mebi(l.bytes), clock(l.at)))
	}
	return "before it " + strings.Join(out, ", ")
}

// retained reads the heap profile nearest to a snapshot, which must lie within atOnce of the snapshot. It returns the
// bytes in use that were allocated below HeapFunc, and the path of the profile.
func (c *KilledForMemory) retained(q *question, at time.Time) (bytes int64, path string, err error) {
	var nearest *bundle.Artifact
	for _, a := range q.view.Artifacts(bundle.Query{Kind: bundle.Heap, Arm: q.arm, From: q.window.Start,
		To: q.window.End}) {
		away := a.Time.Sub(at).Abs()
		if a.Error == "" && away <= atOnce && (nearest == nil || away < nearest.Time.Sub(at).Abs()) {
			nearest = &a
		}
	}
	if nearest == nil {
		return 0, "", fmt.Errorf("there is no heap profile within %s of it", atOnce)
	}
	kept, err := retainedIn(q.view, *nearest, c.HeapFunc)
	return kept.bytes, nearest.Path, err
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

func mebi(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// end describes how a container ended. Its time is zero while the container runs.
type end struct {
	container string
	id        string
	at        time.Time
	reason    string
	code      int32

	unseen bool     // the restart count shows one more end, but nobody saw how the container ended
	log    *leftLog // for an unseen end: the log that the container may have left, else nil
}

// killed reports whether the container was killed for its memory, or by the same signal. The kubelet doesn't always
// learn that memory was the reason.
func (e end) killed() bool { return e.reason == "OOMKilled" || e.code == 137 }

func (e end) describe() string {
	if e.unseen {
		return fmt.Sprintf("%s ended by %s, as the count of restarts tells", e.container, clock(e.at))
	}
	return fmt.Sprintf("%s (%s) ended at %s with reason %s, exit code %d", e.container, shortID(e.id), clock(e.at),
		e.reason, e.code)
}

// endOf finds how the container that ran when a window began ended, even if the end was only seen after the window: an
// API server can't report its own end. doubt says why the answer isn't known.
func endOf(all []bundle.ContainerStatus, container string, w bundle.Window) (e end, doubt string) {
	all = slices.DeleteFunc(slices.Clone(all), func(r bundle.ContainerStatus) bool { return r.Container != container })
	slices.SortStableFunc(all, func(a, b bundle.ContainerStatus) int { return a.Time.Compare(b.Time) })
	var ran *bundle.ContainerStatus // the newest status when the window began, or the first one soon after
	for i, r := range all {
		if r.Time.After(w.Start) && (ran != nil || r.Time.After(w.Start.Add(slack(w)))) {
			break
		}
		ran = &all[i]
	}
	switch {
	case ran == nil:
		return e, fmt.Sprintf("no status of %s was recorded by %s", container, clock(w.Start))
	case ran.State != "running":
		return e, fmt.Sprintf("%s was %s at %s", container, ran.State, clock(w.Start))
	}
	e = end{container: container, id: ran.ID}
	for _, r := range all {
		if !r.Time.After(ran.Time) || r.Pod != ran.Pod {
			continue
		}
		switch {
		case r.LastID == e.id: // only the next container's status says when this one ended
			e.reason, e.code = r.LastReason, r.LastExitCode
			if e.at = r.LastFinished; e.at.IsZero() {
				e.at = r.Time
			}
			return e, ""
		case r.ID == e.id && r.State == "terminated":
			e.at, e.reason, e.code = r.Time, r.Reason, r.ExitCode
		case r.ID != e.id && e.at.IsZero():
			return e, fmt.Sprintf("%s was another container at %s, and how the one before ended was not seen",
				container, clock(r.Time))
		}
	}
	return e, ""
}

// shortID returns the first 12 characters of a container's id, without the scheme of its runtime.
func shortID(id string) string {
	if _, bare, found := strings.Cut(id, "://"); found {
		id = bare
	}
	return fmt.Sprintf("%.12s", id)
}

// statuses reads the records of container statuses. A container can't come back once it is gone. So a container that is
// still there at the end of a window was there all along, and a gap in the records before that doesn't matter.
func statuses(q *question) stream[bundle.ContainerStatus] {
	w := q.window
	word := lastWord(q.view.Artifacts(bundle.Query{Kind: bundle.Statuses, Arm: q.arm}))
	if !word.Before(w.End.Add(-slack(w))) {
		w = bundle.Window{Start: word, End: word}
	}
	return read[bundle.ContainerStatus](q.over(w), bundle.Statuses)
}

// lastWord returns the latest time that the streams cover, or zero if they cover none. A gap at the end of a stream
// isn't covered.
func lastWord(arts []bundle.Artifact) time.Time {
	var out time.Time
	for _, a := range arts {
		if a.Missing || a.Error != "" || a.Coverage == nil {
			continue
		}
		last := a.Coverage.Last
		for _, g := range a.Coverage.Gaps {
			if !g.To.Before(last) && g.From.Before(last) {
				last = g.From
			}
		}
		out = laterOf(out, last)
	}
	return out
}
