// Package conformance_test holds each registered kind to the contract of its category, on a cluster in memory.
//
// The suites (faults_test.go, loads_test.go, probes_test.go, collectors_test.go, checks_test.go) name no kind. What
// they have to know about one is a value that the file of its case adds: faultpodstate_test.go has the case of the
// fault podState. A kind without a case fails.
package conformance_test

import (
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// cases holds the conformance cases of one category, in the order in which they were added. A file with a case adds it
// in init, under the kinds that it is of.
type cases[C any] struct {
	category string
	all      []caseOf[C]
}

type caseOf[C any] struct {
	kinds []string
	value C
}

func (c *cases[C]) add(value C, kinds ...string) { c.all = append(c.all, caseOf[C]{kinds, value}) }

// of returns the cases of a kind.
func (c *cases[C]) of(kind string) (out []C) {
	for _, one := range c.all {
		if slices.Contains(one.kinds, kind) {
			out = append(out, one.value)
		}
	}
	return out
}

// only returns the one case of a kind. The test fails if there is none: nothing would test the kind.
func (c *cases[C]) only(t *testing.T, kind string) C {
	t.Helper()
	found := c.of(kind)
	if len(found) != 1 {
		t.Fatalf("%s %s has %d conformance cases, want one", c.category, kind, len(found))
	}
	return found[0]
}

// strangers checks that each case is of registered kinds.
func (c *cases[C]) strangers(t *testing.T) {
	t.Helper()
	for _, one := range c.all {
		if len(one.kinds) == 0 {
			t.Errorf("a case of a %s is of no kind", c.category)
		}
		for _, kind := range one.kinds {
			if _, ok := kinds.Lookup(c.category, kind); !ok {
				t.Errorf("there is a case of %s, which is no %s", kind, c.category)
			}
		}
	}
}

// The cases of all categories.
var (
	faults     = cases[faultCase]{category: kinds.Fault}
	loads      = cases[loadCase]{category: kinds.Load}
	probes     = cases[probeCase]{category: kinds.Load}
	collectors = cases[collectorCase]{category: kinds.Collector}
	checks     = cases[checkCase]{category: kinds.Check}
)

func TestEveryCaseIsOfAKind(t *testing.T) {
	faults.strangers(t)
	loads.strangers(t)
	probes.strangers(t)
	collectors.strangers(t)
	checks.strangers(t)
}
