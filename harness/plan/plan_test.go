package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

const fixture = "testdata/pleg/scenario.yaml"

func load(t *testing.T) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got (go test -update writes it anew):\n%s", path, diff)
	}
}

func TestPlansAreThoseOfTheGoldenFiles(t *testing.T) {
	s := load(t)
	p, err := plan.New(s, plan.Options{Seed: 7, Repeat: 1})
	if err != nil {
		t.Fatal(err)
	}
	p.Digest = "DIGEST" // changes with every comment in the fixture
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.json", b)
	var text, defaults bytes.Buffer
	if err := p.Text(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.txt", text.Bytes())
	if err := plan.Defaults(&defaults, s); err != nil {
		t.Fatal(err)
	}
	golden(t, "defaults.yaml", defaults.Bytes())
	if _, err := scenario.Parse("defaults.yaml", defaults.Bytes()); err != nil {
		t.Errorf("the scenario with its defaults is not valid:\n%v", err)
	}
}

func TestAPlanIsTheSameAfterEncodingAndDecoding(t *testing.T) {
	p, err := plan.New(load(t), plan.Options{Repeat: 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := plan.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Errorf("decoding what was encoded: -want +got:\n%s", diff)
	}
	again, err := plan.Encode(back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, again) {
		t.Error("encoding a decoded plan gives other bytes")
	}
}

// A time that somebody took out of a plan is 0, and the plan says so when it is written again.
func TestDecodeFillsInTimes(t *testing.T) {
	p, err := plan.New(load(t), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	without := regexp.MustCompile(`"(after|at|every|plus)": "0s",\s*`).ReplaceAll(b, nil)
	if len(without) == len(b) {
		t.Fatal("the plan has no time that is 0")
	}
	back, err := plan.Decode(without)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	p, err := plan.New(load(t), plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plan.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"schema", plan.Schema, "relapse.dev/plan/v9", `plan has schema "relapse.dev/plan/v9": want "relapse.dev/plan/v1alpha2"`},
		{"unknown field", `"seed":`, `"sead":`, `decoding a plan: json: unknown field "sead"`},
		{"unknown field in a spec", `"pods":`, `"podz":`,
			`decoding a plan: trial 001: fault "flood": decoding it as a testFlood: json: unknown field "podz"`},
		{"unknown kind", `"kind": "testFlood"`, `"kind": "testFloot"`,
			`decoding a plan: trial 001: fault "flood": unknown fault kind "testFloot": want one of`},
		{"arm without a node", `"node": "worker2"`, `"node": "worker7"`,
			`planning pleg, pair modern, trial 001: arm "fixed" has no node "worker7" of its own in any cluster`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := plan.Decode(bytes.Replace(b, []byte(c.old), []byte(c.new), 1))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := plan.Decode(append(b, "{}"...)); err == nil || err.Error() != "decoding a plan: there is more behind its end" {
		t.Errorf("a second value behind the plan: %v", err)
	}
}

func TestOptions(t *testing.T) {
	s := load(t)
	for _, c := range []struct {
		name  string
		o     plan.Options
		check func(t *testing.T, p *plan.Plan)
	}{
		{"repeat", plan.Options{Repeat: 3}, func(t *testing.T, p *plan.Plan) {
			if len(p.Trials) != 3 || p.Trials[2].ID != "003" {
				t.Errorf("%d trials, the last of id %s", len(p.Trials), p.Trials[len(p.Trials)-1].ID)
			}
		}},
		{"no faults", plan.Options{NoFaults: true}, func(t *testing.T, p *plan.Plan) {
			tr := p.Trials[0]
			if !tr.NoFaults || len(tr.Modelled) != 0 {
				t.Errorf("noFaults %t, modelled %q", tr.NoFaults, tr.Modelled)
			}
			want(t, tr.Deviates.Texts(), "no fault is injected: this is the null control")
		}},
		{"without the first fault", plan.Options{Without: []string{"slow"}}, func(t *testing.T, p *plan.Plan) {
			tr := p.Trials[0]
			if len(tr.Faults) != 1 || tr.Faults[0].After != nil || tr.Faults[0].At.Duration != 5*time.Second {
				t.Errorf("faults are %+v: want flood alone, 5s into the phase", tr.Faults)
			}
			want(t, tr.Deviates.Texts(), "fault slow is left out")
		}},
		{"one arm", plan.Options{Arms: []string{"fixed"}}, func(t *testing.T, p *plan.Plan) {
			tr := p.Trials[0]
			if len(tr.Arms) != 1 || tr.Arms[0].Node != "worker" || len(tr.Clusters[0].Topology.Nodes) != 2 {
				t.Errorf("arms %+v, nodes %+v", tr.Arms, tr.Clusters[0].Topology.Nodes)
			}
		}},
		{"candidate", plan.Options{Candidates: []plan.Candidate{{Source: &scenario.Source{Version: "v1.34.8"}}}}, func(t *testing.T, p *plan.Plan) {
			c := p.Trials[0].Arms[2]
			if c.Name != "candidate" || c.Node != "worker3" || c.Expected != plan.NotReproduced ||
				c.Source.Version != "v1.34.8" || c.Source.Package != "k8s.io/kubernetes/cmd/kubelet" {
				t.Errorf("arm of the candidate is %+v", c)
			}
		}},
		{"swap", plan.Options{Swap: map[string]string{"vulnerable": "fixed"}}, func(t *testing.T, p *plan.Plan) {
			c := p.Trials[0].Arms[0]
			if c.Expected != plan.Reproduced || len(c.Source.Mutations) != 0 || c.BuildOf != "fixed" || p.Trials[0].Arms[1].BuildOf != "" {
				t.Errorf("arm of the swapped arm is %+v", c)
			}
			want(t, p.Trials[0].Deviates.Texts(), "arm vulnerable runs the build of arm fixed")
		}},
		{"settings", plan.Options{Params: map[string]string{"faults.flood.spec.pods": "12", "phases.fault.deadline": "9m"}}, func(t *testing.T, p *plan.Plan) {
			tr := p.Trials[0]
			if tr.Faults[1].Spec.(*flood).Pods != 12 || tr.Phases.Fault.Deadline.Duration != 9*time.Minute {
				t.Errorf("flood %s, fault phase %v", tr.Faults[1].Spec, tr.Phases.Fault)
			}
			want(t, tr.Deviates.Texts(), "faults.flood.spec.pods is set to 12", "phases.fault.deadline is set to 9m")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.New(s, c.o)
			if err != nil {
				t.Fatal(err)
			}
			c.check(t, p)
		})
	}
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deviates: -want +got:\n%s", diff)
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *scenario.Spec)
		o      plan.Options
		want   []string
	}{
		{"evidence that nobody collects", func(s *scenario.Spec) { s.Collectors[0].Kind = "testSilent" }, plan.Options{},
			[]string{`check "ready" reads metrics.samples, which no collector makes`, `check "discards" reads metrics.samples, which no collector makes`}},
		{"seam", func(s *scenario.Spec) { s.Seams = nil }, plan.Options{},
			[]string{`fault "slow" needs the seam testWire, which the scenario doesn't have (seams: [])`}},
		{"node", func(s *scenario.Spec) {
			s.Exposure = append(s.Exposure, scenario.Check{CheckHeader: scenario.CheckHeader{Name: "off", Kind: "nodeReady"}, Spec: json.RawMessage(`{"status": "Unknown", "node": "worker9"}`)})
		}, plan.Options{}, []string{`check "off" is about the node "worker9", which the scenario doesn't have (want one of control-plane, `}},
		{"constants", func(s *scenario.Spec) { s.Constants = nil }, plan.Options{}, []string{
			`fault "flood" needs the constant capacity, which the scenario doesn't declare`,
			`check "stale" needs the constant "capacity", which the scenario doesn't have (none is known)`,
		}},
		{"capabilities", nil, plan.Options{Capabilities: &cluster.Capabilities{}}, []string{
			`fault "slow" must run commands in nodes, which this provider can't`,
			`fault "flood" must cut the power of nodes, which this provider can't`,
		}},
		{"a network that can't be cut", func(s *scenario.Spec) {
			s.Faults = append(s.Faults, item("split", "partition", `{"nodes": ["db"]}`))
		}, plan.Options{Capabilities: &cluster.Capabilities{}}, []string{
			`fault "split" must cut nodes off from each other, which this provider can't`,
			`fault "split" is about the node "db", which the scenario doesn't have (want one of control-plane, `,
		}},
		{"a subject that is killed", func(s *scenario.Spec) {
			s.Faults = append(s.Faults, item("kill", "process", `{"action": "kill", "component": "kubelet"}`))
		}, plan.Options{}, []string{
			`fault "kill" makes the subject another process, and check "built-in/stuck" needs the one of the baseline ` +
				`(want health: {without: [{part: stuck, why: …}]})`,
			`check "built-in/heap" needs the one`, `check "built-in/cpu" needs the one`,
		}},
		{"a subject that is killed, with a rate compared with the baseline's", func(s *scenario.Spec) {
			s.Faults = append(s.Faults, item("kill", "process", `{"action": "kill", "component": "kubelet"}`))
			s.Signature = append(s.Signature,
				scenario.Check{CheckHeader: scenario.CheckHeader{Name: "busy", Kind: "processCPU"}, Spec: json.RawMessage(`{"timesBaseline": 5, "floor": 0.1, "above": 0.5}`)},
				scenario.Check{CheckHeader: scenario.CheckHeader{Name: "counts", Kind: "metricRate"}, Spec: json.RawMessage(`{"metric": "a_total", "atMostTimesBaseline": 5, "floor": 0.1, "atMost": 0.5}`)})
		}, plan.Options{}, []string{`fault "kill" makes the subject another process, and check "busy" needs the one of the baseline (want another check)`,
			`check "counts" needs the one`}},
		{"flags that a component has anyway", func(s *scenario.Spec) {
			s.Args = map[string]map[string]string{"etcd": {"log-level": "debug", "snapshot-count": "1"}}
			s.Faults = append(s.Faults, item("quiet", "process", `{"action": "restart", "component": "etcd", "flags": {"log-level": "debug"}}`))
		}, plan.Options{}, []string{`fault "quiet" gives etcd the flags that it has anyway, by the scenario's args (want other values)`}},
		{"a build that no arm has", func(s *scenario.Spec) {
			s.Faults = append(s.Faults, item("upgrade", "process", `{"action": "replace", "component": "kubelet"}`))
		}, plan.Options{}, []string{`fault "upgrade" replaces the build of arm fixed, which has only one (want others before it: source: {before: [{version: v1.36.0}]})`,
			`fault "upgrade" makes the subject another process`}},
		{"an upgrade that is wrong in many ways", func(s *scenario.Spec) {
			upgraded(s, "v1.33.0")
			s.Faults = append(s.Faults, item("third", "process", `{"action": "replace", "component": "kubelet", "build": 3}`),
				item("other", "process", `{"action": "replace", "component": "kube-scheduler"}`), item("back", "process", `{"action": "replace", "component": "kubelet"}`))
			s.Faults[len(s.Faults)-1].Duration = &metav1.Duration{Duration: time.Second}
		}, plan.Options{}, []string{`fault "third" puts build 3 of arm fixed in place, which has 2`,
			`fault "other" replaces the build of kube-scheduler, and only the subject kubelet has builds`,
			`fault "back" has a duration, and no fault puts an earlier build back (want none)`}},
		{"an upgrade that never comes", func(s *scenario.Spec) { upgraded(s, "v1.33.0") }, plan.Options{}, []string{
			`arm fixed has 2 builds, and 0 faults put build 2 in place [] (want one: process: {action: replace, component: kubelet, build: 2})`}},
		{"an upgrade from too far", func(s *scenario.Spec) { upgraded(s, "v1.20.0") }, plan.Options{}, []string{
			`build 1 of arm fixed is kubelet v1.20.0, and its cluster v1.3`}},
		{"flags of two faults", func(s *scenario.Spec) {
			s.Faults = append(s.Faults, item("quiet", "process", `{"action": "restart", "component": "etcd", "flags": {"log-level": "warn"}}`),
				item("loud", "process", `{"action": "restart", "component": "etcd", "flags": {"log-level": "debug"}}`))
		}, plan.Options{}, []string{`fault "loud" gives etcd flags, as fault "quiet" does: lifting one would take those of the other (want one fault with all flags)`}},
		{"memory", func(s *scenario.Spec) { s.Memory = map[string]string{"etcd": "1Gi"} }, plan.Options{},
			[]string{"the memory of etcd can't be limited: want one of kube-apiserver"}},
		{"placement", func(s *scenario.Spec) { s.Placement = "rack" }, plan.Options{},
			[]string{`planning pleg, pair modern: placement "rack" can't be planned: want node, cluster or workload`}},
		{"workloads without nodes", func(s *scenario.Spec) { s.Placement = "workload" }, plan.Options{},
			[]string{`planning pleg, pair modern: the scenario says nothing of its nodes: want nodes.workers`}},
		{"pair", nil, plan.Options{Pair: "old"}, []string{`scenario pleg has no pair "old": want one of modern, or all`}},
		{"arm", nil, plan.Options{Arms: []string{"fxed"}}, []string{`selecting arms: there is no arm "fxed": want one of fixed, vulnerable; did you mean fixed?`}},
		{"fault left out", nil, plan.Options{Without: []string{"fast"}}, []string{`leaving out faults: there is no fault "fast": want one of slow, flood`}},
		{"swap", nil, plan.Options{Swap: map[string]string{"fixed": "old"}}, []string{`swapping builds: there is no arm "old": want one of fixed, vulnerable`}},
		{"setting nothing", nil, plan.Options{Params: map[string]string{"faults.fload.spec.pods": "1"}},
			[]string{`setting faults.fload.spec.pods: nothing there is called "fload" (want one of slow, flood; did you mean flood?)`}},
		{"setting nonsense", nil, plan.Options{Params: map[string]string{"faults.slow.spec.latency": "5"}},
			[]string{`pleg with settings: spec.faults[0].spec.latency: 5 is no duration`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t)
			if c.change != nil {
				c.change(&s.Spec)
			}
			_, err := plan.New(s, c.o)
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got  %v\nwant %s", err, w)
				}
			}
		})
	}
}

// A mistake that only the plan finds has its place in the scenario's file, once for all pairs that have it. A setting
// that is the mistake has none.
func TestMistakesHaveTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string]string
		want  string
	}{
		{"in the file", map[string]string{"seams": "null"},
			fixture + `:22:13: spec.faults[0].kind: fault "slow" needs the seam testWire, which the scenario doesn't have (seams: [])`},
		{"in a setting", map[string]string{"faults.flood.target.selector": "{nodes: [worker7]}"},
			`pleg with settings: spec.faults.flood.target.selector: fault "flood": the selector (nodes worker7) names the node "worker7", which the cluster doesn't have`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := plan.New(load(t), plan.Options{Params: c.given, Repeat: 2})
			var vs scenario.Violations
			if !errors.As(err, &vs) || len(vs) != 1 || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
