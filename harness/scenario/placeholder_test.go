package scenario_test

import (
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/scenario"
)

// withLoad is the fixture with a load of a kind that has placeholders of its own.
func withLoad(t *testing.T, spec string) string {
	t.Helper()
	return strings.Replace(paramsText(t), "  faults:\n", "  loads:\n    - name: calls\n      kind: testCalls\n"+
		"      target: {mode: all, selector: {component: etcd}}\n      spec: "+spec+"\n  faults:\n", 1)
}

// What a kind replaces itself stays, beside what the scenario's parameters replace.
func TestAPlaceholderOfAKindStays(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(withLoad(t,
		`{path: /$(metric)/$(n)/$(arm), body: {n: $(n), pods: $(pods), texts: [a-$(n), "$$(n)", "$$(HOME)"]}, many: [{text: $(n)}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"body":{"n":"$(n)","pods":400,"texts":["a-$(n)","$$(n)","$(HOME)"]},"many":[{"text":"$(n)"}],"path":"/blocked/$(n)/$(arm)"}`
	if got := string(s.Spec.Loads[0].Spec); got != want {
		t.Errorf("the load's spec is %s, want %s", got, want)
	}
}

func TestPlaceholdersThatNobodyReplaces(t *testing.T) {
	const known = "(want one of apiserver.memory, call, latency, metric, pods, rate)"
	for name, c := range map[string]struct{ text, want string }{
		"a field that has it not": {withLoad(t, "{many: [{text: $(arm)}]}"),
			"f.yaml:39:28: spec.loads[0].spec.many[0].text: $(arm) names no parameter (want one of apiserver.memory, call, latency, metric, n, pods, rate); $$(arm) is the text itself"},
		"a misspelt one": {withLoad(t, "{path: /$(m)}"),
			"f.yaml:39:20: spec.loads[0].spec.path: $(m) names no parameter (want one of apiserver.memory, arm, call, latency, metric, n, pods, rate"},
		"no field": {withLoad(t, "{paths: $(n)}"),
			"f.yaml:39:21: spec.loads[0].spec.paths: $(n) names no parameter " + known},
		"another kind": {strings.Replace(withLoad(t, "{}"), "kind: testCalls", "kind: testLoad", 1) + "# $(n)", ""},
		"a check":      {strings.Replace(paramsText(t), "metric: up", "metric: $(n)", 1), "spec.steady[0].spec.metric: $(n) names no parameter " + known},
		"beside the spec": {strings.Replace(withLoad(t, "{path: /}"), "component: etcd", "component: $(n)", 1),
			"f.yaml:38:49: spec.loads[0].target.selector.component: $(n) names no parameter " + known},
		"a parameter of that name": {strings.Replace(withLoad(t, "{path: /$(n)}"), "name: call,", "name: n,", 1),
			"f.yaml:39:20: spec.loads[0].spec.path: $(n) stands for what the kind replaces here, and for a parameter (want another name for the parameter)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse("f.yaml", []byte(c.text))
			if got := ""; (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				if err != nil {
					got = err.Error()
				}
				t.Errorf("it says %s\nwant    %s", got, c.want)
			}
		})
	}
}
