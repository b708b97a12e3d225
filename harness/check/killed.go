package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// atOnce is how far apart a goroutine profile and a heap profile may lie that were taken on the same occasion. Further apart, calls that came
// in between would count as leaked memory.
const atOnce = 5 * time.Second

func init() {
	kinds.Register(kinds.Check, kinds.Kind[Check]{
		Name: "killedForMemory",
		Doc: "A leak grew until the subject's container was killed for its memory.\n\n" +
			"The kill destroys the goroutines, so the growth has to be seen before it: quiet snapshots of one container, no call in flight in them, with " +
			"more leaked goroutines and more bytes retained from each to the next. Then the same container ends with reason OOMKilled or exit code 137. " +
			"A container that ended without such growth is unknown: the leak doesn't explain it.",
		Example: "name: killed\nkind: killedForMemory\nphase: fault\nspec:\n  container: kube-apiserver\n  func: registry.(*Store).DeleteCollection\n  state: chan send\n" +
			"  inFlight: [restfulDeleteCollection]\n  heapFunc: registry.(*Store).DeleteCollection\n  snapshots: 3\n",
		New: func() Check { return &KilledForMemory{Leak: Leak{State: "chan send"}, Snapshots: 3} },
	})
}

// KilledForMemory asks for the kill that a leak leads to.
type KilledForMemory struct {
	Leak
	Container string `json:"container" jsonschema:"the subject's container: kube-apiserver"`
	HeapFunc  string `json:"heapFunc" jsonschema:"part of the name of the function below which the leaked memory was allocated"`
	Snapshots int    `json:"snapshots,omitzero" jsonschema:"how many quiet snapshots must show growth, at least"`
}

// Reads names container statuses and profiles.
func (c *KilledForMemory) Reads() []bundle.Kind {
	return []bundle.Kind{bundle.Statuses, bundle.Goroutines1, bundle.Goroutines2, bundle.Heap}
}

// Validate refuses what any kill would meet.
func (c *KilledForMemory) Validate() error {
	errs := []error{c.Leak.validate()}
	if c.Container == "" {
		errs = append(errs, errors.New("container is empty"))
	}
	if c.HeapFunc == "" {
		errs = append(errs, errors.New("heapFunc is empty, which all memory would match"))
	}
	if c.Snapshots < 2 {
		errs = append(errs, fmt.Errorf("snapshots is %d (want at least 2: one shows no growth)", c.Snapshots))
	}
	return errors.Join(errs...)
}

// Eval looks for the end of the container that ran when the window began, and then at what came before it.
func (c *KilledForMemory) Eval(v bundle.View, s Scope) Finding {
	wanted := fmt.Sprintf("goroutines [%s] in %s and the bytes below %s growing in at least %d quiet snapshots, and then a kill of %s (OOMKilled or 137)",
		c.State, c.Func, c.HeapFunc, c.Snapshots, c.Container)
	if err := c.Validate(); err != nil {
		return unknown(wanted, err.Error(), nil)
	}
	w, never := s.open(v)
	if never != "" {
		return unknown(wanted, never, nil)
	}
	st := standing[bundle.ContainerStatus](v, bundle.Statuses, s.Cell, w)
	f := Finding{Wanted: wanted, Evidence: st.paths}
	e, doubt := endOf(st.records, c.Container, w)
	doubt = cmp.Or(doubt, st.doubt)
	switch {
	case e.at.IsZero() && doubt != "":
		return unknown(wanted, doubt, st.paths)
	case e.at.IsZero():
		f.Met, f.Seen = NotMet, fmt.Sprintf("%s ran on as %s", c.Container, brief(e.id))
		return f
	case e.at.After(w.End) && s.Phase == Baseline: // until then it ran
		f.Met, f.Seen = NotMet, "that was after the phase: "+e.said()
		return f
	case e.at.After(w.End):
		return unknown(wanted, "that was after the phase: "+e.said(), st.paths)
	}
	f.Seen, f.Ended = e.said(), e.at
	if !e.killed() {
		f.Seen += ": that is no kill for memory"
		return f
	}
	c.growth(&f, v, s.Cell, bundle.Window{Start: w.Start, End: e.at})
	return f
}

// growth completes a finding about a kill with what the snapshots before it show.
func (c *KilledForMemory) growth(f *Finding, v bundle.View, cell string, w bundle.Window) {
	look := c.look(v, cell, w)
	f.Differs = look.notes
	f.Evidence = append(f.Evidence, look.evidence...)
	var grown []level
	for i, s := range look.quiet {
		if i > 0 && !includes(s.ids, look.quiet[i-1].ids) {
			f.Seen += fmt.Sprintf("; goroutines of %s were gone by %s: they were not leaked", clock(look.quiet[i-1].at), clock(s.at))
			return
		}
		bytes, path, err := c.retained(v, cell, s.at, w)
		if err != nil {
			f.Differs = append(f.Differs, fmt.Sprintf("%s: %v", clock(s.at), err))
			continue
		}
		f.Evidence = append(f.Evidence, path)
		f.Detail = s.stack
		switch last := len(grown) - 1; {
		case last < 0 || s.blocked > grown[last].blocked && bytes > grown[last].bytes:
			grown = append(grown, level{s.at, s.blocked, bytes})
		case s.blocked > grown[last].blocked:
			f.Differs = append(f.Differs, fmt.Sprintf("%s: %d leaked, but %s retained, no more than before", clock(s.at), s.blocked, mebi(bytes)))
		}
	}
	f.Differs = few(f.Differs)
	f.Seen += "; " + levels(grown)
	switch {
	case look.missing != "":
		f.Seen += "; " + look.missing
	case len(grown) < c.Snapshots:
		f.Seen += fmt.Sprintf(": %d of %d quiet snapshots show growth, and a kill that the leak doesn't explain may have any cause", len(grown), len(look.quiet))
	default:
		f.Met = Met
	}
}

// level is how far a leak had come at a time.
type level struct {
	at      time.Time
	blocked int
	bytes   int64
}

func levels(all []level) string {
	out := "before it"
	for i, l := range all {
		out += map[bool]string{true: " ", false: ", "}[i == 0] + fmt.Sprintf("%d leaked and %s at %s", l.blocked, mebi(l.bytes), clock(l.at))
	}
	if len(all) == 0 {
		out += " no snapshot with a heap profile"
	}
	return out
}

// retained reads the heap profile that was taken on the same occasion as a snapshot.
func (c *KilledForMemory) retained(v bundle.View, cell string, at time.Time, w bundle.Window) (bytes int64, path string, err error) {
	var nearest *bundle.Artifact
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Heap, Cell: cell, From: w.Start, To: w.End}) {
		away := a.Time.Sub(at).Abs()
		if a.Error == "" && away <= atOnce && (nearest == nil || away < nearest.Time.Sub(at).Abs()) {
			nearest = &a
		}
	}
	if nearest == nil {
		return 0, "", fmt.Errorf("there is no heap profile within %s of it", atOnce)
	}
	kept, err := retainedIn(v, *nearest, c.HeapFunc)
	return kept.bytes, nearest.Path, err
}

// includes reports whether a sorted list of ids holds all of another.
func includes(all, some []uint64) bool {
	for _, id := range some {
		if _, ok := slices.BinarySearch(all, id); !ok {
			return false
		}
	}
	return true
}

func mebi(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
