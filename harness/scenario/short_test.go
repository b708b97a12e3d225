package scenario_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// shortPairs has the pairs of the fixture.
const shortPairs = `    - name: modern
      arms:
        fixed: {}
        vulnerable:
          mutations: [{kind: testCut, sites: 1, versions: ">=1.14.0", spec: {ident: Relist}}]
`

// published is the source of a kubelet as it was published.
func published(version string, m ...scenario.Mutation) scenario.Source {
	return scenario.Source{Module: "k8s.io/kubernetes", Version: version, Package: "k8s.io/kubernetes/cmd/kubelet",
		Mutations: m}
}

// after is the source of a kubelet that is the third build of its arm, built with the race detector.
func after(version string, m scenario.Mutation) scenario.Source {
	out := published(version)
	out.Race = true
	out.Before = []scenario.Earlier{
		{Module: out.Module, Version: "v1.33.0", Package: out.Package, Race: true, Mutations: []scenario.Mutation{m}},
		{Module: out.Module, Version: version, Package: out.Package},
	}
	return out
}

func TestPairsInTheirShortForm(t *testing.T) {
	cut := scenario.Mutation{Kind: "testCut", Sites: 1, Spec: json.RawMessage(`{"ident":"Relist"}`)}
	raced := published("v1.34.4", cut)
	raced.Race = true
	replaced := published("", cut)
	replaced.Dir = "/src/kubernetes"
	for _, c := range []struct {
		name, pairs       string
		vulnerable, fixed scenario.Source
	}{
		{"two versions", "{name: p, vulnerable: v1.34.1, fixed: v1.34.2}", published("v1.34.1"), published("v1.34.2")},
		{"the scenario's version, with and without a mutation",
			"{name: p, arms: {fixed: {}, vulnerable: {mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}}}",
			published("v1.34.4", cut), published("v1.34.4")},
		{"a mutation under its kind's name",
			"{name: p, arms: {fixed: {}, vulnerable: {mutations: [{testCut: {ident: Relist}}]}}}",
			published("v1.34.4", cut), published("v1.34.4")},
		{"a version of its own", "{name: p, arms: {fixed: {version: v1.34.9}, vulnerable: {}}}", published("v1.34.4"), published("v1.34.9")},
		{"what both arms have",
			"{name: p, source: {race: true, version: v1.34.9}, arms: {fixed: {race: false}, vulnerable: {version: v1.34.4, mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}}}",
			raced, published("v1.34.9")},
		{"a folder", "{name: p, arms: {fixed: {binary: /bin/kubelet}, vulnerable: {dir: /src/kubernetes, mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}}}",
			replaced, scenario.Source{Binary: "/bin/kubelet"}},
		{"all of a source", "{name: p, arms: {fixed: {module: k8s.io/kubernetes, version: v1.34.9, package: k8s.io/kubernetes/cmd/kubelet}, vulnerable: {}}}",
			published("v1.34.4"), published("v1.34.9")},
		{"fixtures", "{name: p, arms: {fixed: {fixture: agent}, vulnerable: {fixture: agent, replace: {example.org/k: v1.0.0}}}}",
			scenario.Source{Fixture: "agent", Replace: map[string]string{"example.org/k": "v1.0.0"}}, scenario.Source{Fixture: "agent"}},
		{"builds before the last, which leave out what is as in the last",
			"{name: p, vulnerable: v1.34.1, fixed: v1.34.2, source: {race: true, before: [{version: v1.33.0, mutations: [{testCut: {ident: Relist}}]}, {race: false}]}}",
			after("v1.34.1", cut), after("v1.34.2", cut)},
		{"like another pair", "{name: o, arms: {fixed: {}, vulnerable: {mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}}}\n" +
			"    - {name: p, like: o, default: true, source: {mutations: [{kind: testCut, sites: 2, spec: {ident: A}}]}}",
			published("v1.34.4", cut, scenario.Mutation{Kind: "testCut", Sites: 2, Spec: json.RawMessage(`{"ident":"A"}`)}),
			published("v1.34.4", scenario.Mutation{Kind: "testCut", Sites: 2, Spec: json.RawMessage(`{"ident":"A"}`)})},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scenario.Parse("f.yaml", []byte(strings.Replace(text(t), shortPairs, "    - "+c.pairs+"\n", 1)))
			if err != nil {
				t.Fatal(err)
			}
			p := s.Spec.Pairs[len(s.Spec.Pairs)-1]
			want := scenario.Pair{Name: "p", Default: p.Default, Arms: []scenario.Arm{
				{Name: "vulnerable", Role: "vulnerable", Source: c.vulnerable}, {Name: "fixed", Role: "fixed", Source: c.fixed},
			}}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(s.Spec.Pairs) > 1 && !p.Default {
				t.Error("the pair that says so isn't the default")
			}
		})
	}
}

func TestTheFirstPairIsTheDefault(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(strings.Replace(text(t), shortPairs,
		shortPairs+"    - {name: other, vulnerable: v1.34.1, fixed: v1.34.2}\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Spec.Pairs[0].Default || s.Spec.Pairs[1].Default {
		t.Errorf("the defaults are %v and %v", s.Spec.Pairs[0].Default, s.Spec.Pairs[1].Default)
	}
}

func TestPairsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, pairs string
		want        []string
	}{
		{"the old form, two versions", "{name: p, arms: [{name: a, role: vulnerable, source: {module: k8s.io/kubernetes, version: v1.34.1, package: k8s.io/kubernetes/cmd/kubelet}}, {name: b, role: fixed, source: {module: k8s.io/kubernetes, version: v1.34.4, package: k8s.io/kubernetes/cmd/kubelet}}]}",
			[]string{"f.yaml:16:17: spec.pairs[0].arms: is a list, an old form (want vulnerable: v1.34.1, fixed: v1.34.4)"}},
		{"the old form, a mutation", "{name: p, arms: [{name: a, role: fixed, source: {module: k8s.io/kubernetes, version: v1.34.4, package: k8s.io/kubernetes/cmd/kubelet}}, {name: b, role: vulnerable, source: {module: k8s.io/kubernetes, version: v1.34.4, package: k8s.io/kubernetes/cmd/kubelet, mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}}]}",
			[]string{"f.yaml:16:17: spec.pairs[0].arms: is a list, an old form (want arms: {vulnerable: {mutations: [{kind: testCut, sites: 1, spec: {ident: Relist}}]}, fixed: {version: v1.34.4}})"}},
		{"one arm only", "{name: p, vulnerable: v1.34.1}",
			[]string{"f.yaml:16:7: spec.pairs[0]: has no fixed arm (want fixed: v1.36.1, a version of the subject; or vulnerable: {mutations: […]}, what is changed)"}},
		{"arms without one", "{name: p, arms: {fixed: {}}}",
			[]string{"f.yaml:16:17: spec.pairs[0].arms: has no arm vulnerable (want vulnerable: {} for the subject as it was published)"}},
		{"both forms", "{name: p, vulnerable: v1.34.1, arms: {fixed: {}}}",
			[]string{"f.yaml:16:17: spec.pairs[0].vulnerable: stands beside arms (want one of them)"}},
		{"no version", "{name: p, vulnerable: old, fixed: v1.34.2}",
			[]string{`f.yaml:16:29: spec.pairs[0].vulnerable: "old" is not valid (want a version such as v1.34.4)`}},
		{"a field that no source has", "{name: p, arms: {fixed: {}, vulnerable: {mutatons: []}}}",
			[]string{"f.yaml:16:48: spec.pairs[0].arms.vulnerable.mutatons: unknown field (want one of before, binary, commit, dir, fixture, fork, image, module, mutations, nodeImage, package, patch, patchSum, race, ref, release, replace, tree, unoptimized, version; did you mean mutations?)"}},
		{"like nothing", "{name: p, like: modrn}\n" + strings.TrimSuffix(shortPairs, "\n"),
			[]string{`f.yaml:16:17: spec.pairs[0].like: "modrn" names no pair above this one (none is known)`}},
		{"like another and of its own", strings.TrimPrefix(strings.TrimSuffix(shortPairs, "\n"), "    - ") + "\n    - {name: p, like: modern, fixed: v1.34.2}",
			[]string{`f.yaml:21:17: spec.pairs[1].like: stands beside fixed (want one of them)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scenario.Parse("f.yaml", []byte(strings.Replace(text(t), shortPairs, "    - "+c.pairs+"\n", 1)))
			if err == nil {
				t.Fatal("it is taken")
			}
			if diff := cmp.Diff(strings.Join(c.want, "\n"), err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	b, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	in := strings.NewReplacer("subject: kubelet", "subject: agent", "placement: node", "placement: workload\n  nodes: {workers: 1}\n  manifests: [{file: a.yaml, each: arm}]",
		"  seams: [testWire]\n", "", "  restart: {roles: [vulnerable], readyWithin: 60s}\n", "",
		shortPairs, "    - {name: p, vulnerable: v1.34.1, fixed: v1.34.2}\n").Replace(string(b))
	_, err = scenario.Parse("f.yaml", []byte(in))
	want := "f.yaml:17:17: spec.pairs[0].vulnerable: is a version, and the subject is no component whose source is known by its version (want vulnerable: {…} with what is changed)"
	if err == nil || err.Error() != want {
		t.Errorf("a version of a fixture: got\n%v\nwant\n%s", err, want)
	}
}

// shortText is the fixture with items, collectors, phases and checks in their short forms.
func shortText(t *testing.T) string {
	t.Helper()
	out, _, ok := strings.Cut(text(t), "  collectors:\n")
	if !ok {
		t.Fatal("the fixture has no collectors")
	}
	return out + `  collectors: [{testCounters: {}, name: counters, every: 15s}]
  loads:
    - {name: work, testLoad: {latency: 1s}}
  faults:
    - {name: slow, testLatency: {latency: 40ms}}
    - {name: flood, testFlood: {}, target: {mode: one, selector: {nodes: [arm]}}}
  phases:
    steady: 2m
    baseline: 10s
    fault: 8m
    recovery: {atLeast: 65s, deadline: 3m}
  steady:
    - {name: ready, testAbove: {metric: up}}
  exposure:
    - name: reached
      anyOf:
        - {name: stale, phase: fault, testAbove: {metric: age, limit: 180}}
        - {name: discards, check: stale, metric: discards}
  signature:
    - {name: stuck, after: 60s, testAbove: {metric: blocked, limit: 3}}
    - {check: stale}
  healed:
    - {name: advancing, check: steady/ready, metric: relists, spec: {limit: 5}}
    - {name: ready, check: stuck, limit: null, after: 1s}
  match:
    signs:
      - {name: seen, is: decisive, ground: g, settle: s, check: stuck, limit: 7}
      - {name: other, is: suspicious, ground: g, settle: s, testAbove: {metric: x}}
      - name: several
        is: suspicious
        ground: g
        settle: s
        checks: [{name: a, check: seen/stuck}, {name: b, check: stale}]
  information:
    - name: idle
      phase: fault
      anyOf:
        - {name: still, check: advancing, metric: idle}
        - {name: late, check: information/first, metric: idle}
        - {name: later, check: information/first, phase: recovery}
    - {name: first, phase: recovery, after: 1m, testAbove: {metric: idle}}
    - {name: second, check: idle/late}
`
}

func TestShortItemsAndChecks(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(shortText(t)))
	if err != nil {
		t.Fatal(err)
	}
	sp := s.Spec
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a collector", sp.Collectors[0].Kind + " " + sp.Collectors[0].Name, "testCounters counters"},
		{"a load", sp.Loads[0].Kind + string(sp.Loads[0].Spec), `testLoad{"latency":"1s"}`},
		{"a load's target", sp.Loads[0].Target, scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}},
		{"a kind without fields", sp.Faults[1].Kind + string(sp.Faults[1].Spec), "testFlood"},
		{"a target of its own", sp.Faults[1].Target.Mode, "one"},
		{"a phase's deadline", sp.Phases.Fault.Deadline.Duration.String(), "8m0s"},
		{"the baseline's length", sp.Phases.Baseline.AtLeast.Duration.String(), "10s"},
		{"an alternative that refers to another", sp.Exposure[0].AnyOf[1].Kind + string(sp.Exposure[0].AnyOf[1].Spec) + sp.Exposure[0].AnyOf[1].Phase,
			`testAbove{"limit":180,"metric":"discards"}fault`},
		{"an alternative that refers to a check of another phase", fmt.Sprint(sp.Information[0].AnyOf[1].Phase, sp.Information[0].AnyOf[1].After == nil), "true"},
		{"a check that refers to an alternative", sp.Information[2].Phase, "fault"},
		{"an alternative with a phase of its own", sp.Information[0].AnyOf[2].Phase + sp.Information[0].AnyOf[2].After.Duration.String(), "recovery1m0s"},
		{"a check of another list", sp.Signature[1].Name + string(sp.Signature[1].Spec) + sp.Signature[1].Phase, `stale{"limit":180,"metric":"age"}fault`},
		{"by its list, with fields under spec", string(sp.Healed[0].Spec), `{"limit":5,"metric":"relists"}`},
		{"a field taken away", string(sp.Healed[1].Spec) + sp.Healed[1].After.Duration.String(), `{"metric":"blocked"}1s`},
		{"a sign that refers to a signature", sp.Match.Signs[0].Checks[0].Name + string(sp.Match.Signs[0].Checks[0].Spec), `stuck{"limit":7,"metric":"blocked"}`},
		{"a sign's check has no time within a phase", sp.Match.Signs[0].Checks[0].After == nil && sp.Match.Signs[0].Checks[0].Phase == "", true},
		{"but the other check's phase", sp.Match.Signs[2].Checks[1].Phase, "fault"},
		{"a sign with its only check", sp.Match.Signs[1].Checks[0].Name + string(sp.Match.Signs[1].Checks[0].Spec), `other{"metric":"x"}`},
		{"a sign's check that refers to another sign's", string(sp.Match.Signs[2].Checks[0].Spec), `{"limit":7,"metric":"blocked"}`},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.what, diff)
		}
	}
}

// No field of an item, a pair or a sign is taken for the name of a kind, or for unknown.
func TestShortFormsKnowAllFields(t *testing.T) {
	text := shortText(t)
	for _, c := range []struct {
		of            reflect.Type
		line, another string // FIELD stands for the field
	}{
		{reflect.TypeFor[scenario.Item](), "    - {name: work, testLoad: {latency: 1s}}", "    - {FIELD: {}}"},
		{reflect.TypeFor[scenario.Item](), "    - {name: slow, testLatency: {latency: 40ms}}", "    - {FIELD: {}}"},
		{reflect.TypeFor[scenario.Collector](), "{testCounters: {}, name: counters, every: 15s}", "{FIELD: {}}"},
		{reflect.TypeFor[scenario.Check](), "    - {name: ready, testAbove: {metric: up}}", "    - {FIELD: {}}"},
		{reflect.TypeFor[scenario.Mutation](), "{kind: testCut, sites: 1, versions: \">=1.14.0\", spec: {ident: Relist}}", "{FIELD: {}}"},
		{reflect.TypeFor[scenario.Sign](), "      - {name: seen, is: decisive", "      - {FIELD: {}, is: decisive"},
		{reflect.TypeFor[scenario.Pair](), "    - name: modern\n", "    - name: modern\n      FIELD: {}\n"},
	} {
		for _, f := range reflect.VisibleFields(c.of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" || name == "is" || name == "arms" || c.of == reflect.TypeFor[scenario.Pair]() && name == "name" {
				continue // they are there already
			}
			changed := strings.Replace(text, c.line, strings.Replace(c.another, "FIELD", name, 1), 1)
			if changed == text {
				t.Fatalf("the fixture has no %q", c.line)
			}
			if _, err := scenario.Parse("f.yaml", []byte(changed)); err != nil &&
				(strings.Contains(err.Error(), fmt.Sprintf("kind %q", name)) || strings.Contains(err.Error(), "."+name+": unknown field")) {
				t.Errorf("%s.%s: %v", c.of, name, err)
			}
		}
	}
}

// The collectors of the fixture's subject, of which this test's binary has only the kinds' names.
func TestCollectorsOfTheSubject(t *testing.T) {
	for name, in := range map[string]string{"all": "", "one by its name": "  collectors: [{name: metrics, every: 20s}]\n"} {
		_, err := scenario.Parse("f.yaml", []byte(strings.Replace(shortText(t), "  collectors: [{testCounters: {}, name: counters, every: 15s}]\n", in, 1)))
		if err == nil || !strings.Contains(err.Error(), `unknown collector kind "metrics" (want one of testCounters)`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMistakesInShortForms(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a kind that doesn't exist", "{name: slow, testLatency:", "{name: slow, testLatncy:",
			`f.yaml:25:20: spec.faults[0].testLatncy: unknown fault kind "testLatncy" (want one of testFlood, testLatency; did you mean testLatency?)`},
		{"a field of the kind", "latency: 40ms}", "latency: 40ms, latncy: 1s}",
			"f.yaml:25:49: spec.faults[0].testLatency.latncy: unknown field (want one of calls, latency; did you mean latency?)"},
		{"a reference to nothing", "check: stale, metric", "check: stal, metric",
			`f.yaml:38:28: spec.exposure[0].anyOf[1].check: "stal" is no check of the scenario (want one of advancing, discards, first, idle, late, later, reached, ready, second, stale, still, stuck; did you mean stale?)`},
		{"a reference to two", "    - {name: advancing, check: steady/ready", "    - {name: ready, testAbove: {metric: z}}\n    - {name: advancing, check: ready",
			`f.yaml:44:25: spec.healed[1].check: "ready" names 2 checks: spec.steady[0], spec.healed[0] (want the name of the list or group before it: LIST/ready)` +
				"\n" + `f.yaml:45:14: spec.healed[2].name: check "ready" is named twice (first in spec.healed[0])`},
		{"a reference to a group", "check: stale, metric: discards", "check: reached, metric: discards",
			`f.yaml:38:28: spec.exposure[0].anyOf[1].check: "reached" is a group of checks (want one of its alternatives)`},
		{"a reference to itself", "check: stuck, limit: null", "check: healed/ready, limit: null",
			`f.yaml:44:21: spec.healed[1].check: "healed/ready" is the check itself`},
		{"a field that the other kind hasn't", "check: stale, metric", "check: stale, metrc",
			"f.yaml:38:42: spec.exposure[0].anyOf[1].metrc: unknown field (want one of after, await, limit, metric, pairs, phase, providers; did you mean metric?)"},
		{"a collector's name alone", "collectors: [{testCounters: {}, name: counters, every: 15s}]", "collectors: [journl]",
			`f.yaml:21:16: spec.collectors[0]: "journl" is no collector of the subject, and no kind of collector (want one of events, goroutines, health, journal, metrics, node, testCounters; did you mean journal?)`},
		{"a collector without a kind", "{testCounters: {}, name: counters, every: 15s}", "{name: counter, every: 15s}",
			`f.yaml:21:17: spec.collectors[0].name: "counter" is no collector of the subject, and no kind of collector (want one of events, goroutines, health, journal, metrics, node, testCounters)`},
		{"a phase's length", "steady: 2m", "steady: soon",
			`f.yaml:28:13: spec.phases.steady: "soon" is not valid (want the longest time that the phase lasts; steady, fault and recovery need it; a duration with its unit: 250ms, 40s, 1m30s)`},
	} {
		t.Run(c.name, func(t *testing.T) { refuses(t, shortText(t), c.old, c.new, c.want) })
	}
}

func TestTheEditorSchemaTakesShortForms(t *testing.T) {
	if err := againstEditorSchema(t, shortText(t)); err != nil {
		t.Error(err)
	}
	if err := againstEditorSchema(t, strings.Replace(shortText(t), "latency: 40ms", "latncy: 40ms", 1)); err == nil {
		t.Error("it takes a field that no kind has")
	}
}

// refuses has Parse refuse a text in which a part is replaced, with the complaint that is wanted.
func refuses(t *testing.T, text, part, by, want string) {
	t.Helper()
	in := strings.Replace(text, part, by, 1)
	if in == text {
		t.Fatalf("the text has no %q", part)
	}
	_, err := scenario.Parse("f.yaml", []byte(in))
	if err == nil {
		t.Fatal("it is taken")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
