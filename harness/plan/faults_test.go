package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// item is a fault on every kubelet's node.
func item(name, kind, spec string) scenario.Item {
	return scenario.Item{Spec: json.RawMessage(spec), ItemHeader: scenario.ItemHeader{Name: name, Kind: kind,
		Target: scenario.Target{Mode: "all", Selector: scenario.Selector{Component: "kubelet"}}}}
}

// A subject may be killed where nothing is asked of the process before, and another component anywhere.
func TestWhatMayBeKilled(t *testing.T) {
	for _, c := range []struct {
		spec, selector string
		without        []string
		o              plan.Options
	}{
		{`{"action": "kill", "component": "kubelet"}`, "kubelet", []string{"stuck", "heap", "cpu"}, plan.Options{}},
		{`{"action": "restart", "component": "kubelet"}`, "kubelet", nil, plan.Options{NoFaults: true}},
		{`{"action": "stop", "component": "kubelet"}`, "kubelet", nil, plan.Options{}},
		{`{"action": "kill", "component": "kube-proxy"}`, "kube-proxy", nil, plan.Options{}},
		{`{"action": "restart", "component": "kubelet", "flags": {"v": 4}}`, "kubelet", []string{"stuck", "heap", "cpu"}, plan.Options{}},
	} {
		s := load(t)
		f := item("end", "process", c.spec)
		f.Target.Selector.Component = c.selector
		s.Spec.Faults = append(s.Spec.Faults, f)
		for _, part := range c.without {
			s.Spec.Health.Without = append(s.Spec.Health.Without, scenario.Omission{Part: part, Why: "it is killed"})
		}
		if _, err := plan.New(s, c.o); err != nil {
			t.Errorf("%s: %v", c.spec, err)
		}
	}
}

// A fault in which every build of the subject ends itself, or that leads a component past its seam, is refused.
func TestFaultsOnConnections(t *testing.T) {
	for _, c := range []struct{ name, kind, spec, args, want string }{
		{"a long outage", "outage", `{"connection":"scheduler-apiserver","atMost":"7s"}`, "true",
			`keeps the subject kube-scheduler from renewing its lease for so long that it may end itself, in every build (want a lower atMost or latency, or a higher rate, or args: {kube-scheduler: {leader-elect: "false"}})`},
		{"a short outage", "outage", `{"connection":"scheduler-apiserver","atMost":"6s"}`, "true", ""},
		{"a long outage without an election", "outage", `{"connection":"scheduler-apiserver","atMost":"1m"}`, "false", ""},
		{"a late answer", "latency", `{"connection":"scheduler-apiserver","latency":"3s","jitter":"1s"}`, "true", "keeps the subject kube-scheduler from renewing"},
		{"an answer that is soon enough", "latency", `{"connection":"scheduler-apiserver","latency":"3s"}`, "true", ""},
		{"a slow connection", "bandwidth", `{"connection":"scheduler-apiserver","rate":"10k"}`, "true", "keeps the subject kube-scheduler from renewing"},
		{"flags that lead past the seam", "process", `{"action":"restart","component":"kube-scheduler","flags":{"master":"https://127.0.0.1:6443"}}`, "true",
			"gives kube-scheduler --master, which leads it through the seam scheduler-apiserver (want the flag left out)"},
	} {
		s, err := scenario.Load("../../scenarios/scheduler-nil-pointer/scenario.yaml")
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Seams = []string{"scheduler-apiserver"}
		s.Spec.Args["kube-scheduler"]["leader-elect"] = c.args
		f := item("cut", c.kind, c.spec)
		f.Target.Selector.Component = "kube-scheduler"
		s.Spec.Faults = append(s.Spec.Faults, f)
		for _, part := range []string{"stuck", "heap", "cpu"} {
			if c.kind == "process" {
				s.Spec.Health.Without = append(s.Spec.Health.Without, scenario.Omission{Part: part, Why: "it is restarted"})
			}
		}
		_, err = plan.New(s, plan.Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v (want %q)", c.name, err, c.want)
		}
	}
}

// A fault on the connection to webhooks wants a webhook, and a kubelet elects nobody: it may be cut off for long. A proxy is
// looked for only where it is laid.
func TestFaultsOnConnectionsOfNodesAndWebhooks(t *testing.T) {
	const out = `{"connection":"%s","atMost":"1m"}`
	hook := item("hook", "webhook", `{"resources":["pods"],"rules":[{"never":true}]}`)
	extender := item("picky", "webhook", `{"extender":{"verbs":["filter"]},"rules":[{"never":true}]}`)
	for _, c := range []struct {
		name, file, connection, component string
		seams                             []string
		before                            []scenario.Item
		want                              string
	}{
		{"no webhook", "scheduler-nil-pointer", "apiserver-webhook", "kube-apiserver", []string{"apiserver-webhook"}, nil,
			`fault "cut" acts on the connection to a webhook, and no fault of the scenario makes one (want a fault of the kind webhook, other than an extender)`},
		{"an extender alone", "scheduler-nil-pointer", "apiserver-webhook", "kube-apiserver", []string{"apiserver-webhook", "scheduler-extender"},
			[]scenario.Item{extender}, "no fault of the scenario makes one"},
		{"a webhook", "scheduler-nil-pointer", "apiserver-webhook", "kube-apiserver", []string{"apiserver-webhook"}, []scenario.Item{hook}, ""},
		{"a kubelet", "pleg-deadlock", "kubelet-apiserver", "kubelet", []string{"cri", "kubelet-apiserver"}, nil, ""},
		{"a kube-proxy", "pleg-deadlock", "kube-proxy-apiserver", "kube-proxy", []string{"cri", "kube-proxy-apiserver"}, nil, ""},
		{"etcd on a worker", "pleg-deadlock", "etcd", "kubelet", []string{"cri", "etcd"}, nil,
			`fault "cut": the selector takes in the node worker, a worker, and the seam etcd is on each control-plane only`},
	} {
		s, err := scenario.Load("../../scenarios/" + c.file + "/scenario.yaml")
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Seams = c.seams
		f := item("cut", "outage", fmt.Sprintf(out, c.connection))
		f.Target.Selector.Component = c.component
		for _, one := range c.before {
			one.Target.Selector.Component = "kube-scheduler"
			s.Spec.Faults = append(s.Spec.Faults, one)
		}
		s.Spec.Faults = append(s.Spec.Faults, f)
		_, err = plan.New(s, plan.Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v (want %q)", c.name, err, c.want)
		}
	}
}

// That an extender answers the harness by the rules says nothing of the scheduler: that it was asked, and that a rule took
// it, belongs to the exposure, whatever a scenario says of its own.
func TestAnExtendersExposureHasThatASchedulerAskedIt(t *testing.T) {
	for seam, want := range map[string]string{
		"scheduler-extender": "", "": `fault "picky" needs the seam scheduler-extender, which the scenario doesn't have (seams: [])`,
	} {
		s, err := scenario.Load("../../scenarios/scheduler-nil-pointer/scenario.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if seam != "" {
			s.Spec.Seams = []string{seam}
		}
		f := item("picky", "webhook", `{"extender":{"verbs":["filter"]},"rules":[{"never":true}]}`)
		f.Target.Selector.Component = "kube-scheduler"
		s.Spec.Faults = append(s.Spec.Faults, f)
		p, err := plan.New(s, plan.Options{})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("without its seam: %v, want %q", err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		last := p.Trials[0].Exposure[len(p.Trials[0].Exposure)-1]
		spec, err := json.Marshal(last.Spec)
		if err != nil || last.Name != "built-in/picky-met" || last.Phase != "fault" ||
			!strings.Contains(string(spec), "r.webhook == 'picky' \\u0026\\u0026 r.rule \\u003e 0") {
			t.Errorf("the exposure ends in %s %s: %s, %v", last.Name, last.Phase, spec, err)
		}
	}
}

// A partition from a node that no cluster has is refused with the place of the name.
func TestPartitionFromAnUnknownNode(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pleg", "scenario.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	const slow, split = "kind: testLatency\n", "kind: partition\n"
	changed := strings.NewReplacer(slow, split, "{latency: 40ms}", "{nodes: [control-plane, db]}").Replace(string(text))
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	want := file + `:24:37: spec.faults[0].spec.nodes[1]: fault "slow" is about the node "db", which the scenario doesn't have (want one of control-plane, `
	if _, err := plan.New(s, plan.Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
