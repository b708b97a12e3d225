package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

const fixture = "testdata/pleg/scenario.yaml"

func text(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLoad(t *testing.T) {
	s, err := scenario.Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if s.Metadata.Name != "pleg" || s.Spec.Phases.Recovery.AtLeast.Duration != 65*time.Second {
		t.Errorf("read name %q and recovery.atLeast %s", s.Metadata.Name, s.Spec.Phases.Recovery.AtLeast.Duration)
	}
	if got := string(s.Spec.Exposure[0].AnyOf[0].Spec); got != `{"limit":180,"metric":"age"}` {
		t.Errorf("spec of the first alternative is %s", got)
	}
	if s.Origin.File != fixture || len(s.Origin.Digest) != 64 {
		t.Errorf("origin is %+v", s.Origin)
	}
}

func TestLoadWrongFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other", "scenario.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := scenario.Load(path)
	want := path + `:3:18: metadata.name: "pleg" is not the folder's name (want other)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// look is a probe of the fault phase.
const look = "  loads: [{name: look, kind: testProbe, target: {mode: all, selector: {component: kubelet}}}]"

// Each case changes the fixture and names everything that is then wrong with it.
func TestEveryViolationIsNamedWithItsPosition(t *testing.T) {
	const line = "f.yaml:"
	for _, c := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"unknown field", "spec: {latency: 40ms}", "spec: {latency: 40ms, latncy: 1s}",
			[]string{line + "27:29: spec.faults[0].spec.latncy: unknown field (want one of calls, latency; did you mean latency?)"}},
		{"no kind of failure", ", failure: stuck", "",
			[]string{line + "3:1: metadata.failure: is missing (want one of crash, leak, loop, wrong-answer, lost-work, stuck)"}},
		{"unknown kind of failure", "failure: stuck", "failure: stack",
			[]string{line + `3:33: metadata.failure: unknown failure "stack" (want one of crash, leak, loop, wrong-answer, lost-work, stuck; did you mean stuck?)`}},
		{"duration without unit", "latency: 40ms", "latency: 5",
			[]string{line + "27:23: spec.faults[0].spec.latency: 5 is no duration (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)"}},
		{"text that is no duration", "latency: 40ms", "latency: soon",
			[]string{line + `27:23: spec.faults[0].spec.latency: "soon" is not valid (want how much later each call answers; a duration with its unit: 250ms, 40s, 1m30s)`}},
		{"unknown kind", "kind: testFlood", "kind: testFlod",
			[]string{line + `29:13: spec.faults[1].kind: unknown fault kind "testFlod" (want one of testFlood, testLatency; did you mean testFlood?)`}},
		{"anchor and alias", "spec: {latency: 40ms}", "spec: {latency: &late 40ms, calls: *late}", []string{
			line + "27:23: spec.faults[0].spec.latency: has the anchor &late (want the value alone: nothing repeats it)",
			line + "27:42: spec.faults[0].spec.calls: is the alias *late (want the value itself; a check refers to another one by check: NAME, a pair by like: NAME)",
		}},
		{"merge key", "spec: {latency: 40ms}", "spec: {<<: {latency: 40ms}}",
			[]string{line + "27:14: spec.faults[0].spec: has a merge key (want the fields themselves)"}},
		{"duplicate key", "every: 15s", "every: 15s, every: 10s",
			[]string{line + "22:56: spec.collectors[0].every: stands here a second time (first at line 22)"}},
		{"tag", "every: 15s", "every: !!str 15s", []string{line + "22:51: spec.collectors[0].every: uses the tag !!str (want a plain value)"}},
		{"second document", "readyWithin: 60s}", "readyWithin: 60s}\n---\na: 1", []string{line + "50:1: is a second document (want one scenario a file)"}},
		{"no value", "title: A kubelet that can't send its pod events deadlocks", "title:",
			[]string{line + "5:9: spec.title: an empty value is no string (want a text: one line)"}},
		{"duplicate names", "- name: flood", "- name: slow",
			[]string{line + `28:13: spec.faults[1].name: "slow" is named twice (first in spec.faults[0])`}},
		{"after nothing", "after: {name: slow,", "after: {name: slw,",
			[]string{line + `31:21: spec.faults[1].after.name: "slw" names no load or fault (want one of flood, slow; did you mean slow?)`}},
		{"after itself", "after: {name: slow,", "after: {name: flood,",
			[]string{line + "31:7: spec.faults[1].after: waits for itself: flood -> flood"}},
		{"cycle", "spec: {latency: 40ms}", "spec: {latency: 40ms}\n      after: {name: flood}", []string{
			line + "28:7: spec.faults[0].after: waits for itself: slow -> flood -> slow",
			line + "32:7: spec.faults[1].after: waits for itself: flood -> slow -> flood",
		}},
		{"at and after", "after: {name: slow,", "at: 1s\n      after: {name: slow,",
			[]string{line + "32:7: spec.faults[1].after: stands beside at (want one of them)"}},
		{"a fault as a trigger", "after: {name: slow,", "trigger: true\n      after: {name: slow,",
			[]string{line + "31:16: spec.faults[1].trigger: stands on a fault, which always is one (want it on a load)"}},
		{"after a probe", "after: {name: slow, plus: 5s}", "after: {name: look}\n" + look,
			[]string{line + `31:21: spec.faults[1].after.name: "look" is a testProbe, a probe, which never takes effect (want a fault, or a load that is no probe)`}},
		{"after what acts in another arm", "target: {mode: all, selector", "target: {mode: all, arm: fixed, selector",
			[]string{line + `31:21: spec.faults[1].after.name: "slow" takes effect in arm fixed only, and "flood" acts in every arm (want one that acts in the same arms)`}},
		{"too late", "spec: {latency: 40ms}", "spec: {latency: 40ms}\n      at: 8m", []string{
			line + "28:11: spec.faults[0].at: starts 8m0s or more into phase fault, which lasts 8m0s at most (want a time within the phase)",
			line + "32:7: spec.faults[1].after: starts 8m5s or more into phase fault, which lasts 8m0s at most (want a time within the phase)",
		}},
		{"after what comes too late", "plus: 5s}", "plus: 8m}",
			[]string{line + "31:7: spec.faults[1].after: starts 8m0s or more into phase fault, which lasts 8m0s at most (want a time within the phase)"}},
		{"a load that never gets its turn", "  phases:\n", "  loads: [{name: late, kind: testLoad, phase: baseline, at: 10s, target: {mode: all, selector: {component: kubelet}}}]\n  phases:\n",
			[]string{line + "32:61: spec.loads[0].at: starts 10s or more into phase baseline, which lasts 10s at most (want a time within the phase)"}},
		{"empty selector", "selector: {component: kubelet}", "selector: {}",
			[]string{line + "26:27: spec.faults[0].target.selector: is empty, which would select everything (want nodes, nodeSelectors, namespaces, labelSelectors or component)"}},
		{"no such arm", "mode: all, selector", "mode: all, arm: fxed, selector",
			[]string{line + `26:32: spec.faults[0].target.arm: "fxed" names no arm (want one of fixed, vulnerable; did you mean fixed?)`}},
		{"fixed without a value", "mode: all", "mode: fixed",
			[]string{line + `26:7: spec.faults[0].target.value: "" is no number of targets (want at least 1 with mode fixed)`}},
		{"no signature", "signature:\n    - {name: stuck, kind: testAbove, after: 60s, spec: {metric: blocked}}", "",
			[]string{line + "4:1: spec.signature: is missing (want a list: checks that are the incident's fingerprint)"}},
		{"empty exposure", "exposure:", "exposure: []\n  references:", []string{
			line + "39:3: spec.exposure: is an empty list (want at least 1)",
			line + "41:7: spec.references[0]: a mapping is no string (want a URL such as https://github.com/kubernetes/kubernetes/issues/115178)",
		}},
		{"two defaults", "- name: modern\n", "- {name: old, default: true, vulnerable: v1.34.1, fixed: v1.34.2}\n    - name: modern\n      default: true\n",
			[]string{line + `18:16: spec.pairs[1].default: is a second default beside "old" (want exactly one)`}},
		{"arms of other roles", "        fixed: {}\n", "        fixd: {}\n",
			[]string{line + `18:9: spec.pairs[0].arms.fixd: unknown arm "fixd" (want one of vulnerable, fixed; did you mean fixed?)`}},
		{"arms that don't differ", `          mutations: [{kind: testCut, sites: 1, versions: ">=1.14.0", spec: {ident: Relist}}]
`, "          {}\n", []string{line + "18:9: spec.pairs[0].arms.fixed: is the same source as that of arms[0]: two arms that don't differ prove nothing"}},
		{"version", "version: v1.34.4\n  seams", "version: v1.034.4\n  seams",
			[]string{line + `11:12: spec.version: "v1.034.4" is not a semantic version: minor number must not contain leading zeroes "034" (want a version such as v1.34.4)`}},
		{"version range", "versions: \">=1.14.0\"", "versions: \">=1.35.0\"",
			[]string{line + `20:59: spec.pairs[0].arms.vulnerable.mutations[0].versions: ">=1.35.0" leaves out the arm's own version v1.34.4`}},
		{"sites", "sites: 1", "sites: 0", []string{line + "20:46: spec.pairs[0].arms.vulnerable.mutations[0].sites: 0 is too small (want at least 1)"}},
		{"budget", "spec:\n", "spec:\n  budget: 0s\n",
			[]string{line + "5:11: spec.budget: is 0 (want the time that a nightly has for it: 1h30m)"}},
		{"deadline", "fault: {deadline: 8m}", "fault: {atLeast: 9m}",
			[]string{line + "35:5: spec.phases.fault: has no deadline (want deadline: how long it may last, for example 5m)"}},
		{"check too late", "after: 60s, spec", "after: 3m, spec",
			[]string{line + "45:45: spec.signature[0].after: 3m0s is not before the end of phase recovery, which lasts 3m0s at most"}},
		{"check of no kind", "{name: ready, kind: testAbove, spec: {metric: up}}", "{name: ready}",
			[]string{line + "38:7: spec.steady[0]: says neither what it asks nor which other check it is like, and no other check is called \"ready\" (want a kind, check: NAME or anyOf)"}},
		{"a byte that is no UTF-8", "name: ready", "name: re\xe9dy",
			[]string{"f.yaml:38:16: has the byte 0xE9, which is no UTF-8 (want the file saved as UTF-8)"}},
		{"a control character", "name: ready", "name: re\x00dy",
			[]string{"f.yaml:38:16: has the control character U+0000 (want it left out)"}},
		{"check without its spec", "{name: ready, kind: testAbove, spec: {metric: up}}", "{name: ready, kind: testAbove}",
			[]string{line + "38:7: spec.steady[0].spec: is missing (want a mapping: A test's testAbove.)"}},
		{"the kind's own objection", "after: {name: slow, plus: 5s}", "spec: {pods: 4000}",
			[]string{line + "31:20: spec.faults[1].spec.pods: pods is more than a node can list (want at most 1000)"}},
		{"unknown seam", "seams: [testWire]", "seams: [etcd]", []string{line + `12:11: spec.seams[0]: unknown seam "etcd" (want one of testWire)`}},
		{"workloads without what they need", "placement: node", "placement: workload", []string{
			line + "4:1: spec: has no manifest with each: arm, which would deploy the arms",
			line + "12:3: spec.seams: can't be had with placement workload: they sit in an arm's own node",
			line + "48:3: spec.restart: can't be had with placement workload: a node's subject is restarted",
		}},
		{"workloads' fields with another placement", "placement: node", "placement: node\n  nodes: {workers: 2}\n  manifests: [{file: a.yaml, each: arm}]", []string{
			line + "11:3: spec.nodes: is for placement workload (with placement node the arms say how many nodes there are)",
			line + "12:3: spec.manifests: are for placement workload (with placement node an arm is no workload)",
		}},
		{"numbers and words of workloads", "placement: node", "placement: node\n  nodes: {workers: 0}\n  manifests: [{file: a.yaml, each: node}]", []string{
			line + "11:20: spec.nodes.workers: 0 is too small (want at least 1)",
			line + `12:36: spec.manifests[0].each: unknown each "node" (want one of arm)`,
		}},
		{"workloads without workers", "placement: node", "placement: workload\n  nodes: {idle: 1, simulated: 1}\n  manifests: [{file: a.yaml, each: arm}]", []string{
			line + "11:3: spec.nodes.workers: is missing (want a value)",
			line + "11:31: spec.nodes.simulated: is for placement cluster: workloads need nodes that run them",
			line + "14:3: spec.seams: can't be had with placement workload: they sit in an arm's own node",
			line + "50:3: spec.restart: can't be had with placement workload: a node's subject is restarted",
		}},
		{"nodes that nobody simulates", "placement: node", "placement: cluster\n  nodes: {simulated: 1}",
			[]string{line + "11:22: spec.nodes.simulated: can't be had on kind, whose nodes are real (want the provider processes)"}},
		{"other nodes than simulated ones", "placement: node", "placement: cluster\n  providers: [processes]\n  nodes: {simulated: 1, workers: 1}",
			[]string{line + "12:3: spec.nodes: is for placement workload (with placement cluster the arms say how many nodes there are)"}},
		{"manifests from elsewhere", "placement: node\n  version: v1.34.4\n  seams: [testWire]",
			"placement: workload\n  version: v1.34.4\n  nodes: {workers: 2}\n  manifests: [{file: ../a.yaml, each: arm, values: {image: x}}]", []string{
				line + `13:22: spec.manifests[0].file: "../a.yaml" is not below the scenario's folder`,
				line + "13:60: spec.manifests[0].values.image: is what the harness puts in (want another name)",
				line + "49:3: spec.restart: can't be had with placement workload: a node's subject is restarted",
			}},
		{"a fixture and a module", "fixed: {}", "fixed: {fixture: agent, module: k8s.io/kubernetes}",
			[]string{line + "18:9: spec.pairs[0].arms.fixed: has a fixture and something else to build from (want one of them)"}},
		{"not YAML", "kind: Scenario", "kind: [Scenario", []string{line + "3:1: is not YAML: ',' or ']' must be specified (want the bracket closed)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(text(t), c.old, c.new, 1)
			if in == text(t) {
				t.Fatalf("the fixture has no %q", c.old)
			}
			_, err := scenario.Parse("f.yaml", []byte(in))
			var vs scenario.Violations
			if !errors.As(err, &vs) {
				t.Fatalf("got %v, want violations", err)
			}
			var got []string
			for _, v := range vs {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTooBig(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", "f.yaml:1:1: is empty (want a scenario)"},
		{"a comment", "# nothing", "f.yaml:1:1: is empty (want a scenario)"},
		{"brackets", strings.Repeat("[", 100_000), "f.yaml:1:65: is nested too deeply (want at most 64 levels)"},
		{"dashes", strings.Repeat("- ", 100_000), "f.yaml:1:513: is nested too deeply (want at most 64 levels)"},
		{"bytes", strings.Repeat("#\n", 200_000), "f.yaml:1:1: is 400000 bytes long (want at most 262144)"},
	} {
		if _, err := scenario.Parse("f.yaml", []byte(c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// FuzzParse wants of any text that it is read without a panic, and that what is refused is refused with violations.
func FuzzParse(f *testing.F) {
	b, err := os.ReadFile(fixture)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("spec: {parameters: [{name: a, type: integer, default: 1, implies: {a: 2}}], x: [$(a)], " +
		"faults: [{apiVersion: pulse.example/v1, metadata: {name: x}, spec: {pulses: [$(a)]}}, $(b)]}"))
	for _, s := range []string{"", "a: &a [*a]", "? [a]\n: b", "- - -\n", "{a: .inf, b: !!x y, <<: *c}", "spec: {faults: [[], null, 1]}", "a: |\n  b\n---\nc"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := scenario.Parse("f.yaml", in)
		var vs scenario.Violations
		if err == nil && s.Metadata.Name == "" || err != nil && (!errors.As(err, &vs) || len(vs) == 0) {
			t.Errorf("scenario %v, error %v", s, err)
		}
	})
}

// Each arm has its loads for itself, and where arms share their nodes a fault acts once for all of them.
func TestAFaultOfWorkloadsComesAfterNoLoad(t *testing.T) {
	in := strings.NewReplacer("placement: node", "placement: workload\n  nodes: {workers: 2}\n  manifests: [{file: a.yaml, each: arm}]",
		"  seams: [testWire]\n", "", "  restart: {roles: [vulnerable], readyWithin: 60s}\n", "", "after: {name: slow, plus: 5s}", "after: {name: work}",
		"  phases:\n", "  loads: [{name: work, kind: testLoad, target: {mode: all, selector: {component: kubelet}}}]\n  phases:\n").Replace(text(t))
	_, err := scenario.Parse("f.yaml", []byte(in))
	want := `f.yaml:32:21: spec.faults[1].after.name: "work" is a load, which each arm has for itself, and with placement workload a fault acts once, for all arms (want a fault, or at instead of after)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
