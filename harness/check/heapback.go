package check

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "heapBack",
		Doc: "No more memory is kept than in the baseline, whatever the incident is: less than 8 MiB more, or than a quarter more, whichever is larger.\n\n" +
			"By the heap profiles, each taken after a garbage collection, place by place as retainedHeap's overBaseline: of " +
			"a place counts what every one of the last profiles has above the baseline's most, if it is a mebibyte or " +
			"more. What profiling itself holds, and caches of what is watched, which grow with the objects, are left out. " +
			"It is part of what is asked of every arm; see health.without.",
		Example: "name: heap-as-before\nkind: heapBack\nphase: recovery\nspec:\n  profiles: 2\n",
		New:     func() Check { return &HeapBack{Profiles: 2} },
	})
}

// HeapBack asks that no memory was left behind, by whichever function.
type HeapBack struct {
	Profiles int `json:"profiles,omitzero" jsonschema:"how many of the last profiles must show what is kept, and how many there must be"`
}

// small is how many bytes may always be added to the baseline, for example for a cache that was empty in the baseline.
const small = 8 << 20

// bounded lists parts of the names of functions below which memory is no leak: what profiling holds, and caches that
// grow with the objects there are.
var bounded = []string{"net/http/pprof.", "runtime/pprof.", "etcd3.(*watchChan)", "cache.(*Reflector)"}

// Reads names heap profiles.
func (c *HeapBack) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// Validate refuses fewer than two profiles: the memory that one profile shows may be in use only for a moment.
func (c *HeapBack) Validate() error {
	return refuse(c.Profiles < 2, "profiles is %d (want at least 2: one can't tell what stays)", c.Profiles)
}

// Eval compares the last profiles of the window with all of the baseline's.
func (c *HeapBack) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, fmt.Sprintf("in each of the last %d heap profiles less than %s more than in the baseline, or than a quarter of it",
		c.Profiles, mebi(small)))
	if !ok {
		return q.Finding
	}
	all := &RetainedHeap{} // of every function
	in := func(q *question) taken[retention] { return taken[retention](all.profiles(q)) }
	return against(q, "profiles", c.Profiles, "", in, func(before, last []retention) Truth {
		had := slices.MaxFunc(before, byBytes).bytes
		more, most, place := growthSince(before, last, bounded)
		q.Seen += fmt.Sprintf("; each of the last %d has %s more than the baseline, which had up to %s", len(last), mebi(more), mebi(had))
		if more > 0 {
			q.Detail = fmt.Sprintf("%s more, of which %s were allocated in\n\t%s", mebi(more), mebi(most), place)
		}
		return Of(more < max(small, had/4))
	})
}
