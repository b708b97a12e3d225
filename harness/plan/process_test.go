package plan_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

const plainDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: agent}
spec:
  replicas: 1
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      automountServiceAccountToken: false
      serviceAccountName: agents
      containers:
        - name: agent
          image: $(image)
          env:
            - {name: MODE, value: quiet}
            - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          args: ["--listen=$(IP):8080"]
          ports: [{name: https, containerPort: 8443}, {name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {path: /healthz, port: http}}
`

func TestProcess(t *testing.T) {
	of := func(text string) (cluster.Process, error) {
		trial := plan.Trial{Subject: "agent", Manifests: []plan.Manifest{{File: "crd.yaml", Content: "kind: CustomResourceDefinition"},
			{File: "agent.yaml", Arm: "fixed", Content: text}}}
		return trial.Process("fixed")
	}
	got, err := of(plainDeployment)
	if err != nil {
		t.Fatal(err)
	}
	want := cluster.Process{Args: []string{"--listen=$(IP):8080"}, Env: map[string]string{"MODE": "quiet"}, Address: []string{"IP"}, Port: 8080, Ready: "/healthz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for account, want := range map[string]string{"serviceAccountName: agents": "agents", "enableServiceLinks: false": "default"} {
		text := strings.NewReplacer("automountServiceAccountToken: false", account, "serviceAccountName: agents\n      containers", "containers",
			"{name: MODE, value: quiet}", "{name: KUBECONFIG}").Replace(plainDeployment)
		got, err := of("kind: ServiceAccount\nmetadata: {name: agents}\n---\n" + text)
		if err != nil || got.ServiceAccount != want || got.Env["KUBECONFIG"] != "" {
			t.Errorf("with %s: %+v, %v", account, got, err)
		}
		if _, err := of(strings.Replace(text, "{name: KUBECONFIG}", "{name: KUBECONFIG, value: mine}", 1)); err == nil ||
			!strings.Contains(err.Error(), "the variable KUBECONFIG: want no value, as it names the kubeconfig of the service account "+want) {
			t.Errorf("with %s and a kubeconfig: %v", account, err)
		}
	}
	if _, err := of(plainDeployment + "---\n" + plainDeployment); err == nil || !strings.Contains(err.Error(), "arm fixed has 2 Deployments") {
		t.Errorf("with two Deployments: %v", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"replicas: 1", "replicas: 2", "agent.yaml can't be a plain process: want a Deployment of one replica, whose only container agent has the image $(image)"},
		{"kind: Deployment", "kind: DaemonSet", "agent.yaml has a DaemonSet, whose containers a kubelet would have to run: want one Deployment, whose only container is agent"},
		{"apiVersion: apps/v1", "kind: Pod\nspec: {containers: [{name: c}]}\n---\napiVersion: apps/v1", "agent.yaml has a Pod, whose containers"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true\n      volumes: [{name: v}]", "it asks for volumes"},
		{"image: $(image)", "image: other", "whose only container agent"},
		{"args:", "command:", "it asks for a command"},
		{"value: quiet", `value: "$(IP)"`, "the variable MODE: want a value that names no other variable, or a reference to the field status.podIP"},
		{"fieldPath: status.podIP", "fieldPath: spec.nodeName", "the variable IP: want a value"},
		{"port: http}", "port: https}", "want a port named http, and a readiness probe that asks there"},
		{"replicas:", "replica:", `agent.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "replica"`},
	} {
		if _, err := of(strings.Replace(plainDeployment, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %s: %v, want %q", c.new, err, c.want)
		}
	}
	if _, err := (&plan.Trial{}).Process("fixed"); err == nil || !strings.Contains(err.Error(), "arm fixed has 0 Deployments in its manifests: want one where it is a plain process") {
		t.Errorf("without manifests: %v", err)
	}
}

// plain is a cluster that runs workloads as plain processes.
type plain struct{ clustertest.Cluster }

func (*plain) Abilities() cluster.ClusterAbilities {
	return cluster.ClusterAbilities{Processes: struct{ cluster.Runner }{}}
}

func processes(context.Context, string, cluster.Topology) (*plain, error) { return nil, nil }

// The scenario that is meant for both providers runs its arms as plain processes on one, which stands for its workers.
func TestListenerOnProcesses(t *testing.T) {
	s, err := scenario.Load(filepath.Join("..", "..", "scenarios", "listener-busy-wait", "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{Provider: providers.Processes})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ValidateFor(cluster.CapabilitiesOf(processes)); err != nil {
		t.Error(err)
	}
	trial := p.Trials[0]
	got, err := trial.Process("fixed")
	if err != nil || got.Port != 8080 || got.Ready != "/healthz" || got.Args[0] != "--listen=$(POD_IP):8080" {
		t.Errorf("%+v, %v", got, err)
	}
	nodes := trial.Clusters[0].Topology.Nodes
	if len(nodes) != 1 || nodes[0].Role != cluster.ControlPlane || !strings.Contains(strings.Join(trial.Modelled, "\n"), "each arm was a plain process") {
		t.Errorf("nodes %+v; modelled %q", nodes, trial.Modelled)
	}
	if err := p.ValidateFor(cluster.Capabilities{}); err == nil || !strings.Contains(err.Error(), "this provider has no kubelets") {
		t.Errorf("where no workload can be run: %v", err)
	}
}
