// Package conformance_test holds each registered kind to the contract of its category, on a cluster in memory.
//
// The suites (faults_test.go, loads_test.go, probes_test.go, collectors_test.go, checks_test.go) name no kind. What
// they have to know about one is a value that the file of its case adds: faultpodstate_test.go has the case of the
// fault podState. A kind without a case fails.
package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/kinds"
)

// cases holds the conformance cases of one category, in the order in which they were added. A file with a case adds it
// in init, under the kinds that it is of.
type cases[C any] struct {
	category string
	// refuses says why a case can't be one of a kind, or "" if it can. It is nil if every case can.
	refuses func(C, kinds.Entry) string
	all     []caseOf[C]
}

type caseOf[C any] struct {
	kinds []string
	value C
}

// add panics if the suite could not use the case: it would never run, and nobody would notice.
func (c *cases[C]) add(value C, kinds ...string) {
	if wrong := c.wrong(value, kinds); wrong != "" {
		panic("conformance case: " + wrong)
	}
	c.all = append(c.all, caseOf[C]{kinds, value})
}

// wrong says what is wrong with a case, or "".
func (c *cases[C]) wrong(value C, names []string) string {
	if len(names) == 0 {
		return fmt.Sprintf("a case of a %s is of no kind: %+v", c.category, value)
	}
	for _, name := range names {
		e, ok := kinds.Lookup(c.category, name)
		if !ok {
			return fmt.Sprintf("%s is no %s", name, c.category)
		}
		if c.refuses == nil {
			continue
		}
		if why := c.refuses(value, e); why != "" {
			return fmt.Sprintf("%s %s: %s", c.category, name, why)
		}
	}
	return ""
}

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

// The cases of all categories.
var (
	faults     = cases[faultCase]{category: kinds.Fault}
	loads      = cases[loadCase]{category: kinds.Load, refuses: loadCase.refuses}
	probes     = cases[probeCase]{category: kinds.Load, refuses: probeCase.refuses}
	collectors = cases[collectorCase]{category: kinds.Collector}
	checks     = cases[checkCase]{category: kinds.Check}
)

// A case that no suite would run is refused when it is added, by the name of its kind.
func TestACaseThatNoSuiteWouldRunIsRefused(t *testing.T) {
	full := loadCase{spec: "{}", calls: 1}
	for _, tt := range []struct {
		name, wrong, want string
	}{
		{"of a kind that doesn't exist", faults.wrong(faultCase{}, []string{"podState", "noSuchFault"}), "noSuchFault is no fault"},
		{"of no kind", checks.wrong(checkCase{lacks: "a baseline"}, nil), "a case of a check is of no kind"},
		{"a load's, of a probe", loads.wrong(full, []string{"podProbe"}), "load podProbe: it is a probe"},
		{"a probe's, of a load", probes.wrong(probeCase{}, []string{"requests"}), "load requests: it is no probe"},
		{"a load's without a spec", loads.wrong(loadCase{calls: 1}, []string{"requests"}), "load requests: its case has no spec"},
		{"a load's without calls", loads.wrong(loadCase{spec: "{}"}, []string{"requests"}), "load requests: its case has 0 calls"},
		{"a load's that can run", loads.wrong(full, []string{"requests"}), ""},
	} {
		if !strings.HasPrefix(tt.wrong, tt.want) || (tt.wrong == "") != (tt.want == "") {
			t.Errorf("a case %s: %q, want %q", tt.name, tt.wrong, tt.want)
		}
	}
}
