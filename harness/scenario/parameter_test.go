package scenario_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/scenario"
)

const parametrised = "testdata/params/scenario.yaml"

func loadParams(t *testing.T) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(parametrised)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func paramsText(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(parametrised)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A reference that is the whole scalar has the parameter's type; one within a text is text; one to a parameter without
// a value leaves its member out, and what held nothing else with it.
func TestAReferenceTakesTheTypeOfItsParameter(t *testing.T) {
	s := loadParams(t)
	if got, want := s.Spec.Title, "Answers that come late, as late as 40ms"; got != want {
		t.Errorf("title is %q, want %q", got, want)
	}
	if got, want := s.Spec.Description, "A shell's $(latency) stays what it is."; got != want {
		t.Errorf("description is %q, want %q", got, want)
	}
	if got, want := string(s.Spec.Faults[0].Spec), `{"calls":["List","Get"],"latency":"40ms"}`; got != want {
		t.Errorf("spec of slow is %s, want %s", got, want)
	}
	if got, want := string(s.Spec.Faults[1].Spec), `{"inner":{"rate":0.5},"pods":400}`; got != want {
		t.Errorf("spec of flood is %s, want %s", got, want)
	}
	if got, want := string(s.Spec.Signature[0].Spec), `{"metric":"blocked_400"}`; got != want {
		t.Errorf("spec of stuck is %s, want %s", got, want)
	}
	if d := s.Spec.Faults[0].Duration; d == nil || d.Duration != 30*time.Second {
		t.Errorf("slow lasts %v", d)
	}
	if diff := cmp.Diff(map[string]map[string]string{"kube-apiserver": {"v": "4", "slow": "40ms"}}, s.Spec.Args); diff != "" {
		t.Errorf("args: -want +got:\n%s", diff)
	}
	if s.Spec.Memory != nil {
		t.Errorf("memory is %v although its parameter has no value", s.Spec.Memory)
	}
	want := map[string]string{"latency": "40ms", "pods": "400", "rate": "0.5", "metric": "blocked", "call": "", "apiserver.memory": ""}
	if diff := cmp.Diff(want, s.Values); diff != "" {
		t.Errorf("values: -want +got:\n%s", diff)
	}
}

// Each case changes the fixture and names everything that is then wrong with it.
func TestParameterViolations(t *testing.T) {
	const line = "f.yaml:"
	for _, c := range []struct {
		name     string
		old, new string
		want     []string
	}{
		{"undeclared", "pods: $(pods)", "pods: $(pds)", []string{
			line + "44:20: spec.faults[1].spec.pods: $(pds) names no parameter (want one of apiserver.memory, call, latency, metric, pods, rate; did you mean pods?); $$(pds) is the text itself"}},
		{"undeclared in a text, behind a member that is left out", "[$(call), List, Get]", `[$(call), "List$(al)"]`, []string{
			line + "40:52: spec.faults[0].spec.calls[1]: $(al) names no parameter (want one of apiserver.memory, call, latency, metric, pods, rate); $$(al) is the text itself"}},
		{"wrong behind a member that is left out", "[$(call), List, Get]", `[$(call), List, 3]`, []string{
			line + "40:58: spec.faults[0].spec.calls[2]: 3 is no string (want a text)"}},
		{"unused", "rate: $(rate)", "rate: 1", []string{
			line + `13:14: spec.parameters[2].name: parameter "rate" is used nowhere (want $(rate) somewhere in spec)`}},
		{"default of another type", "default: 400", "default: many", []string{
			line + `12:44: spec.parameters[1].default: "many" is no integer`}},
		{"fraction", "default: 400", "default: 1.5", []string{line + `12:44: spec.parameters[1].default: "1.5" is no integer`}},
		{"default without a unit", "default: 40ms", "default: 40", []string{
			line + `11:48: spec.parameters[0].default: "40" is no duration (want one with its unit: 250ms, 40s, 1m30s)`}},
		{"no default", "default: 400, ", "", []string{line + `12:7: spec.parameters[1].default: is missing (want the integer it has unless it is set)`}},
		{"above the greatest", "default: 400", "default: 1001", []string{line + `12:44: spec.parameters[1].default: 1001 is too large (want at most 1000)`}},
		{"below the least", "default: 40ms", "default: 10us", []string{line + `11:48: spec.parameters[0].default: 10us is too small (want at least 1ms)`}},
		{"none of the values", "default: blocked", "default: blockd", []string{
			line + `14:45: spec.parameters[3].default: "blockd" is not one of its values (want one of blocked, stuck; did you mean blocked?)`}},
		{"a bound of another type", "max: 10s", "max: ten", []string{
			line + `11:97: spec.parameters[0].max: "ten" is no duration (want one with its unit: 250ms, 40s, 1m30s)`}},
		{"a bound of what has no order", "oneOf: [blocked, stuck]", "min: a", []string{
			line + `14:96: spec.parameters[3].min: bounds a string, which has no order (want oneOf)`}},
		{"number for a text", "default: blocked, doc: which counter must stand still, oneOf: [blocked, stuck]", "default: 1.10, doc: which", []string{
			line + `14:45: spec.parameters[3].default: 1.1 is no string (want a text: its value unless it is set; a string, quantity or duration may go without)`}},
		{"no such type", "type: integer", "type: int", []string{
			line + `12:26: spec.parameters[1].type: unknown type "int" (want one of integer, number, duration, quantity, boolean, string)`}},
		{"a name for no command line", "name: call", "name: a call", []string{
			line + `15:14: spec.parameters[4].name: "a call" is not valid (want a text: what --set calls it; may contain dots: apiserver.memory)`,
			line + `15:14: spec.parameters[4].name: parameter "a call" is used nowhere (want $(a call) somewhere in spec)`,
			line + `40:43: spec.faults[0].spec.calls[0]: $(call) names no parameter (want one of a call, apiserver.memory, latency, metric, pods, rate); $$(call) is the text itself`}},
		{"twice", "name: call", "name: pods", []string{
			line + `15:14: spec.parameters[4].name: parameter "pods" is named twice (first in spec.parameters[1])`,
			line + `40:43: spec.faults[0].spec.calls[0]: $(call) names no parameter (want one of apiserver.memory, latency, metric, pods, rate); $$(call) is the text itself`}},
		{"implies nothing that is", "implies: {pods: 900", "implies: {pod: 900", []string{
			line + `20:17: spec.parameters[5].implies.pod: "pod" names no parameter (want one of apiserver.memory, call, latency, metric, pods, rate; did you mean pods?)`}},
		{"implies what doesn't fit", "implies: {pods: 900", "implies: {pods: 9000", []string{
			line + `20:23: spec.parameters[5].implies.pods: 9000 is too large (want at most 1000)`}},
		{"the value breaks a rule of the kind", "default: 400, doc: how many pods are reported, max: 1000", "default: 4000, doc: how many", []string{
			line + `44:20: spec.faults[1].spec.pods: pods is more than a node can list (want at most 1000)`}},
		{"flag with dashes", "{v: 4,", "{--v: 4,", []string{
			line + `22:22: spec.args.kube-apiserver.--v: "--v" is no flag's name (want it without dashes in front and without a value: v)`}},
		{"a pair's flag with dashes", "    - name: modern\n", "    - name: modern\n      args: {kube-apiserver: {--v: 4}}\n", []string{
			line + `31:31: spec.pairs[1].args.kube-apiserver.--v: "--v" is no flag's name (want it without dashes in front and without a value: v)`}},
		{"a pair's flags of nothing", "    - name: modern\n", "    - name: modern\n      args: {kube-apisrver: {v: 4}}\n", []string{
			line + `31:14: spec.pairs[1].args.kube-apisrver: "kube-apisrver" takes no flags (want one of cloud-controller-manager, etcd, kube-apiserver, kube-controller-manager, kube-proxy, kube-scheduler, kubelet; did you mean kube-apiserver?)`}},
		{"a file that nothing uses", "  memory:\n", "  files:\n    kube-apiserver: {a.yaml: x, ../b: x}\n  memory:\n", []string{
			line + `24:22: spec.files.kube-apiserver.a.yaml: no flag of kube-apiserver has the value "a.yaml", so nothing would use the file`,
			line + `24:33: spec.files.kube-apiserver.../b: "../b" is no file's name (want letters, digits, dots and dashes: audit-policy.yaml)`}},
		{"the kubeconfig of what has none", "  memory:\n", "  files:\n    kube-apiserver: {a.yaml: $$(kubeconfig)}\n  memory:\n", []string{
			line + `24:22: spec.files.kube-apiserver.a.yaml: kube-apiserver has no kubeconfig that $(kubeconfig) could stand for`,
			line + `24:22: spec.files.kube-apiserver.a.yaml: no flag of kube-apiserver has the value "a.yaml", so nothing would use the file`}},
		{"a file of what has none", "  memory:\n", "  files:\n    kubelet: {}\n  memory:\n", []string{
			line + `24:5: spec.files.kubelet: "kubelet" has no files of its own (want one of kube-apiserver, kube-controller-manager, kube-scheduler)`}},
		{"no field of a configuration", "kube-apiserver: {v", "kube-proxy: {conntrack.max-per-core", []string{
			line + `22:18: spec.args.kube-proxy.conntrack.max-per-core: "conntrack.max-per-core" is no field's name ` +
				`(want one of kube-proxy's configuration: conntrack.maxPerCore)`}},
		{"flags of nothing", "kube-apiserver: {v", "kube-apisrver: {v", []string{
			line + `22:5: spec.args.kube-apisrver: "kube-apisrver" takes no flags (want one of cloud-controller-manager, etcd, kube-apiserver, kube-controller-manager, kube-proxy, kube-scheduler, kubelet; did you mean kube-apiserver?)`}},
		{"memory of what is no pod", "kube-apiserver: $(apiserver.memory)", "kubelet: 1Gi", []string{
			line + `24:5: spec.memory.kubelet: the memory of "kubelet" can't be limited (want one of kube-apiserver, kube-controller-manager, kube-scheduler)`}},
		{"memory of what can't be asked", "kube-apiserver: $(apiserver.memory)", "etcd: 1Gi", []string{
			line + `24:5: spec.memory.etcd: the memory of "etcd" can't be limited (want one of kube-apiserver, kube-controller-manager, kube-scheduler)`}},
		{"no amount", "kube-apiserver: $(apiserver.memory)", "kube-apiserver: much", []string{
			line + `24:21: spec.memory.kube-apiserver: "much" is no amount of memory (want a quantity above 0: 512Mi)`}},
		{"no such pair", "pairs: [genuine], spec", "pairs: [genuin, modern, modern], spec", []string{
			line + `59:45: spec.signature[1].pairs[0]: "genuin" names no pair (want one of genuine, modern; did you mean genuine?)`,
			line + `59:61: spec.signature[1].pairs[2]: "modern" stands here a second time`}},
		{"no such provider", "pairs: [genuine], spec", "providers: [processes, kind, kind], spec", []string{
			line + `59:49: spec.signature[1].providers[0]: "processes" names no provider (want one of kind)`,
			line + `59:66: spec.signature[1].providers[2]: "kind" stands here a second time`}},
		{"pairs of an alternative", "{name: stale, kind: testAbove,", "{name: stale, kind: testAbove, pairs: [modern],", []string{
			line + `55:42: spec.exposure[0].anyOf[0].pairs: stands on an alternative (want it on the group)`}},
		{"no duration", "duration: 30s", "duration: 0s", []string{line + `39:17: spec.faults[0].duration: is 0 (want how long the fault lasts)`}},
		{"a load's duration", "  faults:\n", "  loads: [{name: l, kind: testLoad, target: {mode: all, selector: {component: etcd}}, duration: 1s}]\n  faults:\n", []string{
			line + `35:97: spec.loads[0].duration: stands on a load, which ends by itself (want it on a fault)`}},
		{"a fault's phase", "duration: 30s", "phase: recovery", []string{
			line + `39:14: spec.faults[0].phase: stands on a fault, which is the fault phase's own (want it on a load)`}},
		{"a load of no such phase", "  faults:\n", "  loads: [{name: l, kind: testLoad, phase: steady, target: {mode: all, selector: {component: etcd}}}]\n  faults:\n", []string{
			line + `35:44: spec.loads[0].phase: unknown phase "steady" (want one of baseline, fault, recovery)`}},
		{"after what is of another phase", "  faults:\n",
			"  loads: [{name: l, kind: testLoad, phase: recovery, after: {name: slow}, target: {mode: all, selector: {component: etcd}}}]\n  faults:\n", []string{
				line + `35:68: spec.loads[0].after.name: "slow" is of another phase (want one of the phase recovery)`}},
		{"a foreign duration", "  faults:\n", "  loads: [{name: l, kind: testLoad, target: {mode: all, selector: {component: etcd}}, spec: {latency: 5, unit: x}}]\n  faults:\n", []string{
			line + `35:103: spec.loads[0].spec.latency: 5 is no duration (want a duration with its unit: 250ms, 40s, 1m30s)`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(paramsText(t), c.old, c.new, 1)
			if in == paramsText(t) {
				t.Fatalf("the fixture has no %q", c.old)
			}
			_, err := scenario.Parse("f.yaml", []byte(in))
			var vs scenario.Violations
			if !errors.As(err, &vs) {
				t.Fatalf("got %v, want violations", err)
			}
			if diff := cmp.Diff(strings.Join(c.want, "\n"), vs.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
