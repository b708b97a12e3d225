package goroutines

import (
	"fmt"
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	check.Register(check.Kind{
		Name: "heapBack",
		Doc: "The subject keeps no more memory than in the baseline, whatever the incident is: less than 8 MiB more, " +
			"or less than a quarter more, whichever is larger.\n\n" +
			"The check compares heap profiles, each taken after a garbage collection, place by place, like " +
			"overBaseline of retainedHeap. A place counts by how much every one of the last profiles has above the " +
			"most in the baseline, if that is a mebibyte or more. Two things don't count: what profiling itself " +
			"holds, and caches of watched objects, which grow with the objects. This check is part of the common " +
			"health that every arm is asked for. A scenario can leave it out with health.without.",
		Example: "name: heap-as-before\nkind: heapBack\nphase: recovery\nspec:\n  profiles: 2\n",
		New:     func() check.Check { return &HeapBack{Profiles: 2} },
	})
}

// HeapBack asks that no memory was left behind, by whichever function.
type HeapBack struct {
	Profiles int `json:"profiles,omitzero" jsonschema:"how many of the last profiles are compared with the baseline. There must be this many (2 or more)"`
}

// small is how many bytes may always be added to the baseline, for example for a cache that was empty in the baseline.
const small = 8 << 20

// bounded lists parts of the names of functions below which memory is no leak: what profiling holds, and caches that
// grow with the objects there are.
var bounded = []string{
	"net/http/pprof.",
	"runtime/pprof.",
	"etcd3.(*watchChan)",
	"cache.(*Reflector)",
}

// Reads names heap profiles.
func (c *HeapBack) Reads() []bundle.Kind { return []bundle.Kind{bundle.Heap} }

// NeedsBaselineProcess returns that the subject must be the process of the baseline, with which it is compared.
func (*HeapBack) NeedsBaselineProcess() bool { return true }

// Validate refuses fewer than two profiles: the memory that one profile shows may be in use only for a moment.
func (c *HeapBack) Validate() error {
	return question.Refuse(
		c.Profiles < 2,
		"profiles is %d (want at least 2: one can't tell what stays)",
		c.Profiles,
	)
}

// Eval compares the last profiles of the window with all of the baseline's.
func (c *HeapBack) Eval(v bundle.View, s check.Scope) check.Finding {
	q, ok := question.Open(c, v, s, fmt.Sprintf("in each of the last %d heap profiles less than %s more than in the baseline, or than a quarter of it",
		c.Profiles, question.Mebibytes(small)))
	if !ok {
		return q.Finding
	}
	in := func(q *question.Question) question.Snapshots[Retention] { return ReadProfiles(q, "") }
	return question.CompareWithBaseline(q, "profiles", c.Profiles, "", in, func(before, last []Retention) check.Truth {
		had := slices.MaxFunc(before, byBytes).Bytes
		more, most, place := GrowthSince(before, last, bounded)
		q.Add("; each of the last %d has %s more than the baseline, which had up to %s", len(last), question.Bytes("moreBytes", more),
			question.Bytes("baselineBytes", had))
		if more > 0 {
			q.Detail = fmt.Sprintf("%s more, of which %s were allocated in\n\t%s", question.Mebibytes(more), question.Mebibytes(most), place)
		}
		return check.Of(more < max(small, had/4))
	})
}
