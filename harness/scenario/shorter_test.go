package scenario_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// inMappings is the fixture of short forms with all that has a name in mappings, in the order of the lists.
func inMappings(t *testing.T) string {
	t.Helper()
	in := shortText(t)
	for _, r := range [][2]string{
		{shortPairs, "    modern:\n      vulnerable:\n        mutations: [{kind: testCut, sites: 1, versions: \">=1.14.0\", spec: {ident: Relist}}]\n"},
		{"  collectors: [{testCounters: {}, name: counters, every: 15s}]", "  collectors:\n    counters: {testCounters: {}, every: 15s}"},
		{"    - {name: work, ", "    work: {"},
		{"    - {name: slow, ", "    slow: {"},
		{"    - {name: flood, ", "    flood: {"},
		{"    - {name: ready, testAbove", "    ready: {testAbove"},
		{"    - name: reached\n      anyOf:\n        - {name: stale, ", "    reached:\n      anyOf:\n        stale: {"},
		{"        - {name: discards, ", "        discards: {"},
		{"    - {name: stuck, ", "    stuck: {"},
		{"    - {check: stale}", "    stale: {}"},
		{"    - {name: advancing, ", "    advancing: {"},
		{"    - {name: ready, check", "    ready: {check"},
		{"      - {name: seen, ", "      seen: {"},
		{"      - {name: other, is: suspicious, ", "      other: {"},
		{"settle: s, testAbove", "testAbove"},
		{"      - name: several\n", "      several:\n"},
		{"[{name: a, check: seen/stuck}, {name: b, check: stale}]", "{a: {check: seen/stuck}, b: {check: stale}}"},
		{"    - name: idle\n", "    idle:\n"},
		{"        - {name: still, ", "        still: {"},
		{"        - {name: late, ", "        late: {"},
		{"        - {name: later, ", "        later: {"},
		{"    - {name: first, ", "    first: {"},
		{"    - {name: second, ", "    second: {"},
	} {
		if !strings.Contains(in, r[0]) {
			t.Fatalf("the fixture has no %q", r[0])
		}
		in = strings.Replace(in, r[0], r[1], 1)
	}
	return in
}

// parsed returns the scenario of a text as JSON.
func parsed(t *testing.T, text string) string {
	t.Helper()
	s, err := scenario.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A mapping of things with names says what a list of them says, in the order of the file. A setting finds a thing by its
// name in both.
func TestThingsWithNamesMayStandInMappings(t *testing.T) {
	in := inMappings(t)
	if diff := cmp.Diff(parsed(t, shortText(t)), parsed(t, in)); diff != "" {
		t.Errorf("-lists +mappings:\n%s", diff)
	}
	if err := againstEditorSchema(t, in); err != nil {
		t.Error(err)
	}
	s, err := scenario.Parse("f.yaml", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	s, err = scenario.Override(s, map[string]string{"faults.slow.spec.latency": "70ms"})
	if err != nil || string(s.Spec.Faults[0].Spec) != `{"latency":"70ms"}` {
		t.Errorf("a setting of a fault: %v, %s", err, s.Spec.Faults[0].Spec)
	}
}

func TestMistakesInMappings(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a field", "slow: {testLatency: {latency: 40ms}}", "slow: {testLatency: {latncy: 40ms}}",
			"f.yaml:24:26: spec.faults.slow.testLatency.latncy: unknown field (want one of calls, latency; did you mean latency?)"},
		{"a name", "slow: {testLatency", "Slow: {testLatency",
			`f.yaml:24:5: spec.faults.Slow: "Slow" is not valid (want a name of lower-case letters, digits and dashes)`},
		{"the name twice", "slow: {testLatency", "slow: {name: fast, testLatency",
			"f.yaml:24:12: spec.faults.slow.name: stands below the name slow (want one of them)"},
		{"two of a name", "    flood: {", "    slow: {",
			"f.yaml:25:5: spec.faults.slow: stands here a second time (first at line 24)"},
		{"no mapping", "slow: {testLatency: {latency: 40ms}}", "slow: 40ms",
			`f.yaml:24:5: spec.faults.slow: "40ms" is no mapping (want what a list has below faults, without the name)`},
		{"what a check asks", "    second: {check: idle/late}", "    second: {metric: idle}",
			`f.yaml:61:14: spec.information.second.metric: unknown field (want one of after, anyOf, await, kind, name, pairs, phase, providers, spec)`},
		{"an alternative", "discards: {check: stale", "discards: {check: stal",
			`f.yaml:37:20: spec.exposure.reached.anyOf.discards.check: "stal" is no check of the scenario (want one of advancing, discards, first, idle, late, later, reached, ready, second, stale, still, stuck; did you mean stale?)`},
		{"an arm", "      vulnerable:\n        mutations:", "      vulnerable:\n        mutatons:",
			`f.yaml:18:9: spec.pairs.modern.vulnerable.mutatons: unknown field (want one of before, binary, commit, dir, fixture, fork, image, module, mutations, nodeImage, package, patch, patchSum, race, ref, release, replace, tree, unoptimized, version; did you mean mutations?)`},
	} {
		t.Run(c.name, func(t *testing.T) { refuses(t, inMappings(t), c.old, c.new, c.want) })
	}
}

// What a scenario leaves out is derived: here the long and the short text say the same.
func TestWhatIsDerived(t *testing.T) {
	for _, c := range []struct{ name, long, short string }{
		{"the version and the placement", "  placement: node\n  version: v1.36.3\n", ""},
		{"usual phases", "steady: {deadline: 3m}\n    baseline: {atLeast: 20s}\n    fault: {deadline: 6m}\n    recovery: {atLeast: 20s, deadline: 5m}", "{}"},
		{"a phase's usual deadline", "fault: {atLeast: 2m, deadline: 6m}", "fault: {atLeast: 2m}"},
		{"a spec of one field", "{name: ready, testAbove: {metric: up}}", "{name: ready, testAbove: up}"},
		{"a check of another's name", "{name: ready, check: steady/ready, await: the end, limit: 7}", "{name: ready, limit: 7}"},
		{"a check of another's name, in its own words", "{name: ready, check: steady/ready, await: the rest, limit: 7}", "{name: ready, await: the rest, limit: 7}"},
		{"a sign of a check's name", "- {name: stuck, is: suspicious, ground: g, settle: s, check: signature/stuck}", "- {name: stuck, is: suspicious, ground: g, settle: s}"},
		{"a sign like the one above", "settle: s}\n      - {name: two, is: suspicious, ground: g, settle: s, testAbove: {metric: x}}",
			"settle: s}\n      - {name: two, ground: g, testAbove: {metric: x}}"},
		{"the versions with the fix", "affected: <1.14.0\n    fixed: v1.14.0 and later", "affected: <1.14.0"},
		{"a probe's phase", "{name: works, phase: fault, testWorks: {probe: look}}", "{name: works, testWorks: look}"},
		{"the subject's name", "{name: says, testSays: {component: kubelet, pattern: x, times: 1}}", "{name: says, testSays: x}"},
		{"no limit that the check referred to didn't say", "{name: says, testSays: x}\n    - {name: quiet, testSays: {pattern: x, atMost: 3}}",
			"{name: says, testSays: x}\n    - {name: quiet, check: says, atMost: 3}"},
		{"another probe's phase", "{name: works, testWorks: look}\n    - {name: later, testWorks: again}", "{name: works, testWorks: look}\n    - {name: later, check: works, probe: again}"},
		{"the subject's name, deeper", "{name: says, testSays: {component: kubelet, pattern: x, times: 3, but: {component: kubelet, pattern: y}}}",
			"{name: says, testSays: {pattern: x, times: 3, but: {pattern: y}}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			long := derivable(t, c.long)
			short := strings.Replace(long, c.long, c.short, 1)
			if c.short == "{}" { // all of a mapping
				short = strings.Replace(long, "  phases:\n    "+c.long+"\n", "", 1)
			}
			if short == long {
				t.Fatalf("the text has no %q", c.long)
			}
			if diff := cmp.Diff(parsed(t, long), parsed(t, short)); diff != "" {
				t.Errorf("-long +short:\n%s", diff)
			}
			if err := againstEditorSchema(t, short); err != nil {
				t.Error(err)
			}
			s, err := scenario.Parse("f.yaml", []byte(short))
			if err != nil || len(s.Derived()) == 0 {
				t.Errorf("nothing of it is said to be derived: %v", err)
			}
		})
	}
}

// derivable returns a scenario that has text in the place where it belongs.
func derivable(t *testing.T, text string) string {
	t.Helper()
	in := shortText(t)
	put := func(old, new string) {
		if !strings.Contains(in, old) {
			t.Fatalf("the fixture has no %q", old)
		}
		in = strings.Replace(in, old, new, 1)
	}
	put("    - {name: ready, testAbove: {metric: up}}", "    - {name: ready, await: the end, testAbove: {metric: up}}")
	switch {
	case strings.Contains(text, "version:"):
		put("  placement: node\n  version: v1.34.4\n", text)
	case strings.Contains(text, "phases") || strings.Contains(text, "baseline:"):
		put("steady: 2m\n    baseline: 10s\n    fault: 8m\n    recovery: {atLeast: 65s, deadline: 3m}", text)
	case strings.HasPrefix(text, "fault:"):
		put("fault: 8m", text)
	case strings.HasPrefix(text, "affected"):
		put("  match:\n", "  match:\n    "+text+"\n")
	case strings.HasPrefix(text, "- "), strings.HasPrefix(text, "settle"):
		if strings.HasPrefix(text, "settle") {
			text = "- {name: one, is: suspicious, ground: g, testAbove: {metric: y}, " + text
		}
		put("    signs:\n", "    signs:\n      "+text+"\n")
	case strings.Contains(text, "name: ready, testAbove"):
		put("{name: ready, await: the end, testAbove: {metric: up}}", text)
	case strings.Contains(text, "look"):
		put("  loads:\n", "  loads:\n    - {name: look, testProbe: {}}\n    - {name: again, phase: recovery, testProbe: {}}\n")
		put("    - {name: ready, check: stuck, limit: null, after: 1s}\n", "    - "+text+"\n")
	default:
		put("    - {name: ready, check: stuck, limit: null, after: 1s}\n", "    - "+text+"\n")
	}
	return in
}

// Of a workload the manifests tell which of them is each arm's and which parameters it takes, loads ask the cluster's API
// server, and faults act where it runs.
func TestWhatIsDerivedOfAWorkload(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("image: $(image)\nargs: [$(pace), $$(other)]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("kind: Namespace\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in := strings.NewReplacer(
		"subject: kubelet\n  placement: node\n", "subject: agent\n  manifests: [a.yaml, {file: b.yaml}]\n  parameters: {pace: {default: 1s, doc: d}, other: {default: 2s, doc: d}}\n",
		"  seams: [testWire]\n", "", "  restart: {roles: [vulnerable], readyWithin: 60s}\n", "",
		shortPairs, "    - {name: p, vulnerable: {replace: {example.org/k: v1.0.0}}}\n",
		"latency: 40ms", "latency: $(other)",
	).Replace(shortText(t))
	if _, after, found := strings.Cut(in, "  constants:\n"); found {
		_, after, _ = strings.Cut(after, "\n")
		before, _, _ := strings.Cut(in, "  constants:\n")
		in = before + after
	}
	s, err := scenario.Parse(filepath.Join(dir, "f.yaml"), []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"placement", s.Spec.Placement, "workload"},
		{"nodes", *s.Spec.Nodes, scenario.Nodes{Workers: 1}},
		{"manifests", s.Spec.Manifests, []scenario.Manifest{
			{File: "a.yaml", Each: "arm", Values: map[string]scenario.Scalar{"pace": "1s"}}, {File: "b.yaml"}}},
		{"a load's target", s.Spec.Loads[0].Target.Selector, scenario.Selector{Component: "kube-apiserver"}},
		{"a fault's target", s.Spec.Faults[0].Target.Selector, scenario.Selector{NodeSelectors: map[string]string{"relapse.dev/role": "worker"}}},
		{"the fixed arm", s.Spec.Pairs[0].Arms[1].Source, scenario.Source{Fixture: "agent"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.what, diff)
		}
	}
}

// Candidates run with the pair whose arms differ as they do, in mutations.
func TestThePairOfCandidates(t *testing.T) {
	in := strings.Replace(shortText(t), shortPairs, "    - {name: genuine, vulnerable: v1.34.1, fixed: v1.34.2}\n"+shortPairs, 1)
	s, err := scenario.Parse("f.yaml", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if s.Spec.Oracle == nil || s.Spec.Oracle.Pair != "modern" {
		t.Errorf("got %+v, want the pair modern", s.Spec.Oracle)
	}
	s, err = scenario.Parse("f.yaml", []byte(in+"  oracle: {pair: genuine}\n"))
	if err != nil || s.Spec.Oracle.Pair != "genuine" {
		t.Errorf("the file's own: %v, %+v", err, s)
	}
}
