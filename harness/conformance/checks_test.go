package conformance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/fixtures/control/controltest"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/load"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// checkCase is what the suite has to know about a check beyond the specs that its kind registers. A check needs none if
// the scripted subject, as it is, both meets one spec and doesn't meet the other.
type checkCase struct {
	// evidence makes happen what the checks of the case ask for. It is called once, in the fault phase, while
	// collectors record.
	evidence func(*testing.T, *staged)
	// flags are those with which the arm was built.
	flags []string
	// ofTheCluster is set for checks that are about a cluster, and give the same answer for every arm in it.
	ofTheCluster bool
	// lacks says what checks need that the scripted subject can't have. The suite asks them on nothing only.
	lacks string
}

// testable checks that a kind says what meets it or what doesn't, or else that its case says what the subject lacks.
func testable(t *testing.T, e kinds.Entry) {
	t.Helper()
	lacks := slices.ContainsFunc(checks.of(e.Name), func(c checkCase) bool { return c.lacks != "" })
	switch said := e.Meets != "" || e.Differs != ""; {
	case !said && !lacks:
		t.Errorf("check %s says neither what meets it nor what doesn't: it is not tested", e.Name)
	case said && lacks:
		t.Errorf("check %s says what meets it or what doesn't, so its conformance case has no reason why that can't be tested", e.Name)
	}
}

func ofTheCluster(kind string) bool {
	return slices.ContainsFunc(checks.of(kind), func(c checkCase) bool { return c.ofTheCluster })
}

// TestChecksAreMetAndNotMetByWhatCollectorsMake runs every collector on the scripted subject, and evaluates every check
// live and afterwards.
func TestChecksAreMetAndNotMetByWhatCollectorsMake(t *testing.T) {
	s := newStaged(t)
	scope := check.Scope{Arm: arm, Phase: check.Fault}
	want := map[string]check.Truth{}
	asked := map[string]check.Check{}
	for _, e := range kinds.Of(kinds.Check) {
		testable(t, e)
		for spec, tri := range map[string]check.Truth{e.Meets: check.True, e.Differs: check.False} {
			if spec == "" {
				continue
			}
			c, err := kinds.Decode[check.Check](kinds.Check, e.Name, json.RawMessage(spec))
			if err != nil {
				t.Fatal(err)
			}
			asked[e.Name+" "+spec], want[e.Name+" "+spec] = c, tri
		}
	}
	for name, c := range asked {
		controltest.Eventually(t, name, func() string {
			if f := c.Eval(s.w.View(), scope); f.Met != want[name] {
				return fmt.Sprintf("%+v, want %s", f, want[name])
			}
			return ""
		})
	}
	s.lookedAt(t)
	sealed := s.sealed(t)
	for name, c := range asked {
		if f := c.Eval(sealed, scope); f.Met != want[name] || len(f.Evidence) == 0 {
			t.Errorf("%s, sealed: %+v, want %s with its evidence", name, f, want[name])
		}
		alone := check.Unknown
		if kind, _, _ := strings.Cut(name, " "); ofTheCluster(kind) {
			alone = want[name]
		}
		if f := c.Eval(sealed, check.Scope{Arm: other, Phase: check.Fault}); f.Met != alone {
			t.Errorf("%s, asked of the arm that nobody looked at: %+v, want %s", name, f, alone)
		}
	}
}

// made lists the kinds of artifacts that some registered collector or probe makes.
func made() []bundle.Kind {
	var out []bundle.Kind
	for _, e := range kinds.Of(kinds.Collector) {
		out = append(out, e.New().(capture.Collector).Makes()...)
	}
	for _, e := range kinds.Of(kinds.Load) {
		if isProbe(e) {
			out = append(out, e.New().(load.Load).Makes()...)
		}
	}
	return out
}

// A check without any evidence answers Unknown, and a check reads only what some collector or probe makes.
func TestEveryCheckOnNothing(t *testing.T) {
	for _, e := range kinds.Of(kinds.Check) {
		t.Run(e.Name, func(t *testing.T) {
			c, err := kinds.Decode[check.Check](kinds.Check, e.Name, specOf(t, e))
			if err != nil {
				t.Fatal(err)
			}
			ofLoad := slices.ContainsFunc(kinds.References(c), func(r kinds.Reference) bool { return r.To == kinds.ToLoad })
			if len(c.Reads()) == 0 && !ofLoad { // a load's summary comes with the load
				t.Error("it reads nothing")
			}
			for _, k := range c.Reads() {
				if !slices.Contains(made(), k) {
					t.Errorf("it reads %s, which no collector or probe makes", k)
				}
			}
			w := newBundle(t)
			for _, phase := range []string{"", check.Steady, check.Baseline, check.Fault, check.Recovery} {
				if phase != "" {
					w.Emit(phaseEvent(phase))
				}
				for _, arm := range []string{arm, bundle.Shared, "nobody"} {
					for _, scope := range []check.Scope{{Arm: arm, Phase: check.Fault}, {Arm: arm, Phase: phase}, {Arm: arm, Phase: phase, After: 1 << 40}} {
						f := c.Eval(w.View(), scope)
						if f.Met != check.Unknown || !slices.Contains(check.Codes, f.Code) || f.Seen == "" || f.Wanted == "" || len(f.Evidence) > 0 {
							t.Errorf("over an empty bundle in phase %q, asked %+v, it says %+v; want unknown, a code, and what is missing", phase, scope, f)
						}
					}
				}
			}
		})
	}
}
