package faults_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/kinds"
)

const pasted = `
apiVersion: chaos-mesh.org/v1alpha1
kind: NetworkChaos
metadata: {name: slow-etcd, namespace: chaos-mesh}
spec:
  action: delay
  mode: all
  selector:
    namespaces: [kube-system]
    labelSelectors: {component: kube-apiserver, tier: control-plane}
  direction: to
  target:
    mode: all
    selector:
      namespaces: [kube-system]
      labelSelectors: {component: etcd}
  delay:
    latency: 300ms
    correlation: "0"
    jitter: 20ms
  duration: 90s
`

// converted gives the item as JSON, or the objections one a line.
func converted(t *testing.T, text string) string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var manifest map[string]any
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	c, ok := kinds.ConverterOf("chaos-mesh.org/v1alpha1")
	if !ok {
		t.Fatal("nothing converts Chaos Mesh's manifests")
	}
	out, objections := c.Convert(manifest)
	if out != nil && len(objections) == 0 {
		item, err := json.Marshal(out.Item)
		if err != nil {
			t.Fatal(err)
		}
		return string(item)
	}
	if out != nil {
		t.Errorf("there is an item beside objections: %v", out.Item)
	}
	var lines []string
	for _, o := range objections {
		lines = append(lines, fmt.Sprintf("%s: %s", o.Field, o.Message))
	}
	return strings.Join(lines, "\n")
}

func TestChaosMesh(t *testing.T) {
	const (
		head   = `{"duration":"90s","kind":"`
		middle = `","name":"slow-etcd","spec":`
		tail   = `,"target":{"mode":"all","selector":{"component":"etcd"}}}`
	)
	for _, c := range []struct {
		name     string
		old, new string
		want     string
	}{
		{"as it is", "", "", head + "latency" + middle + `{"connection":"etcd","jitter":"20ms","latency":"300ms"}` + tail},
		{"from", "direction: to", "direction: from", head + "latency" + middle + `{"connection":"etcd","jitter":"20ms","latency":"300ms"}` + tail},
		{"both delays twice", "direction: to", "direction: both", head + "latency" + middle + `{"connection":"etcd","jitter":"40ms","latency":"600ms"}` + tail},
		{"no jitter", "    jitter: 20ms\n", "", head + "latency" + middle + `{"connection":"etcd","latency":"300ms"}` + tail},
		{"no end", "  duration: 90s\n", "", `{"kind":"latency","name":"slow-etcd","spec":{"connection":"etcd","jitter":"20ms","latency":"300ms"}` + tail},
		{"its own namespace", "namespace: chaos-mesh}\nspec:\n  action: delay\n  mode: all\n  selector:\n    namespaces: [kube-system]\n", "namespace: kube-system}\nspec:\n  action: delay\n  mode: one\n  selector:\n",
			head + "latency" + middle + `{"connection":"etcd","jitter":"20ms","latency":"300ms"}` + strings.Replace(tail, "all", "one", 1)},
		{"the other way round", "kube-apiserver, tier: control-plane}\n  direction: to\n  target:\n    mode: all\n    selector:\n      namespaces: [kube-system]\n      labelSelectors: {component: etcd}",
			"etcd}\n  target:\n    mode: all\n    selector:\n      namespaces: [kube-system]\n      labelSelectors: {component: kube-apiserver}",
			head + "latency" + middle + `{"connection":"etcd","jitter":"20ms","latency":"300ms"}` + tail},
		{"a delay beside a loss", "action: delay", "action: loss\n  loss: {loss: \"100\"}", "spec.delay: has no effect beside action loss\n" +
			"spec.duration: 90s is too long for an outage (want less than 1m10s, or kube-apiserver's liveness probe restarts it)"},

		{"a loss beside a delay", `delay:
    latency: 300ms
    correlation: "0"
    jitter: 20ms`, `loss: {loss: "30"}`, "spec.loss: has no effect beside action delay\nspec.delay: is missing (want delay: {latency: 300ms})"},
		{"no unit", "latency: 300ms", `latency: "300"`, `spec.delay.latency: "300" is no duration (want one with its unit: 250ms, 40s)`},
		{"numbers", "latency: 300ms\n    correlation: \"0\"\n    jitter: 20ms", "latency: 300\n    correlation: 0\n    jiter: 20ms",
			"spec.delay.correlation: is a number (want a text; a duration has its unit: 250ms, 40s)\n" +
				"spec.delay.latency: is a number (want a text; a duration has its unit: 250ms, 40s)\n" +
				"spec.delay.jiter: unknown field: Chaos Mesh's NetworkChaos has none of this name there"},
		{"correlation", `correlation: "0"`, `correlation: "25"`, `spec.delay.correlation: "25" can't be converted: the proxy draws each delay by itself (want 0, or none)`},
		{"reorder", "    jitter: 20ms", "    reorder: {reorder: \"5\", gap: 2}", "spec.delay.reorder: can't be converted: the proxy passes on the bytes of TCP connections, which arrive in their order"},
		{"duplicates", "action: delay", "action: duplicate", "spec.delay: has no effect beside action duplicate\n" +
			"spec.action: duplicate can't be converted: the proxy passes on the bytes of TLS connections, and there are no packets to duplicate (want delay)"},
		{"no action of its", "action: delay", "action: slow", "spec.delay: has no effect beside action slow\n" +
			`spec.action: "slow" is no action of a NetworkChaos (want delay; loss of 100 or partition for an outage)`},
		{"other pods", "component: etcd", "component: kube-scheduler",
			"spec.target.selector: doesn't mean kube-apiserver or etcd, between which the proxy stands (want labelSelectors: {component: kube-apiserver} or {component: etcd})"},
		{"the same pods", "component: etcd", "component: kube-apiserver", "spec.target.selector: means kube-apiserver again (want the other one of kube-apiserver and etcd)"},
		{"another label", "{component: etcd}", "{component: etcd, app: x}", "spec.target.selector.labelSelectors: wants app: x, too, which is not among the labels that kubeadm gives (want component alone)"},
		{"another namespace", "[kube-system]", "[default]", "spec.selector: means the namespaces [default] (want kube-system, where kube-apiserver and etcd are)"},
		{"by node", "    namespaces: [kube-system]", "    nodes: [worker]\n    namespaces: [kube-system]",
			"spec.selector.nodes: can't be converted (want namespaces and labelSelectors alone: which pods it means must not depend on the cluster)"},
		{"no target", `  target:
    mode: all
    selector:
      namespaces: [kube-system]
      labelSelectors: {component: etcd}
`, "", "spec.target: is missing: it would slow down all that kube-apiserver sends, and the proxy stands between kube-apiserver and etcd only"},
		{"some percent", "  mode: all", "  mode: fixed-percent\n  value: \"50\"", "spec.mode: \"fixed-percent\" can't be converted: there is one etcd in a cluster (want all or one)\n" +
			"spec.value: stands beside mode fixed-percent (want none)"},
		{"elsewhere", "  duration: 90s", "  remoteCluster: prod\n  device: eth0\n  externalTargets: [example.com]", "spec.device: eth0: the proxy stands in the connections, on no device\n" +
			"spec.externalTargets: example.com: the proxy stands between kube-apiserver and etcd only\nspec.remoteCluster: prod: a fault hits the run's own clusters only"},
		{"an old scheduler", "  duration: 90s", "  scheduler: {cron: '@every 2m'}", "spec.scheduler: is of an older Chaos Mesh; phases, at and after say here when a fault comes"},
		{"paused", "namespace: chaos-mesh}", "annotations: {experiment.chaos-mesh.org/pause: \"true\"}}",
			"metadata.annotations: pauses the chaos, so that it does nothing (want it without experiment.chaos-mesh.org/pause)"},
		{"no name", "{name: slow-etcd, ", "{", "metadata.name: is missing (want what the fault is called)"},
		{"a disk", "kind: NetworkChaos", "kind: IOChaos",
			"kind: IOChaos can't be converted: the proxy before etcd is no disk, and files are read and written past it (want a NetworkChaos between kube-apiserver and etcd)"},
		{"a schedule", "kind: NetworkChaos", "kind: Schedule", "kind: Schedule can't be converted: phases, at and after say here when a fault comes (want the chaos that it starts)"},
		{"a machine", "kind: NetworkChaos", "kind: PhysicalMachineChaos", "kind: PhysicalMachineChaos can't be converted: it names machines outside of the cluster " +
			"(want a NetworkChaos between kube-apiserver and etcd; to cut a node's power, a fault of the kind nodePowerOff)"},
		{"a cloud's machine", "kind: NetworkChaos", "kind: AWSChaos", "kind: AWSChaos can't be converted: it names machines outside of the cluster " +
			"(want a NetworkChaos between kube-apiserver and etcd; to cut a node's power, a fault of the kind nodePowerOff)"},
		{"a pod", "kind: NetworkChaos", "kind: PodChaos", "kind: PodChaos can't be converted: it means pods, and faults act on nodes (want a NetworkChaos between kube-apiserver and etcd; " +
			"to stop, kill or restart a component's process, a fault of the kind process)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := strings.Replace(pasted, c.old, c.new, 1)
			if in == pasted && c.old != "" {
				t.Fatalf("the manifest has no %q", c.old)
			}
			if diff := cmp.Diff(c.want, converted(t, in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What lets nothing through is an outage: packets that vanish leave connections open, a rejecting partition resets
// them.
func TestChaosMeshOutage(t *testing.T) {
	delay := "  delay:\n    latency: 300ms\n    correlation: \"0\"\n    jitter: 20ms\n"
	for _, c := range []struct{ action, more, want string }{
		{"loss", "  loss: {loss: \"100\"}\n", `"spec":{"atMost":"60s","connection":"etcd","connections":"keep"}`},
		{"partition", "", `"spec":{"atMost":"60s","connection":"etcd","connections":"keep"}`},
		{"partition", "  partitionBehavior: reject\n", `"spec":{"atMost":"60s","connection":"etcd","connections":"reset"}`},
		{"loss", "  loss: {loss: \"99\"}\n", `spec.loss.loss: "99" can't be converted: the proxy loses no single packets (want 100, which is an outage)`},
		{"partition", "  duration: 70s\n", "spec.duration: 70s is too long for an outage (want less than 1m10s, or kube-apiserver's liveness probe restarts it)"},
		{"partition", "  duration:\n", "spec.duration: is missing (want less than 1m10s, or kube-apiserver's liveness probe restarts it)"},
		{"loss", "", `spec.loss: is missing (want loss: {loss: "100"})`},
		{"partition", "  partitionBehavior: reset\n", `spec.partitionBehavior: "reset" is no behaviour of a partition (want drop or reject)`},
		{"loss", "  partitionBehavior: drop\n  loss: {loss: \"100\"}\n", "spec.partitionBehavior: has no effect beside action loss"},
	} {
		in := strings.Replace(strings.Replace(pasted, delay, c.more, 1), "action: delay", "action: "+c.action, 1)
		if in = strings.Replace(in, "  duration: 90s\n", "", 1); !strings.Contains(in, "duration:") {
			in += "  duration: 60s\n"
		}
		got := converted(t, in)
		if strings.HasPrefix(got, "{") && !strings.Contains(got, `"kind":"outage"`) || !strings.Contains(got, c.want) {
			t.Errorf("%s%s gives %s\nwant %s", c.action, c.more, got, c.want)
		}
	}
}

// FuzzChaosMesh wants of any manifest that it is either converted or refused with a reason.
func FuzzChaosMesh(f *testing.F) {
	raw, err := yaml.YAMLToJSON([]byte(pasted))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	for _, s := range []string{`{}`, `{"kind":"NetworkChaos","spec":[]}`, `{"kind":"NetworkChaos","spec":{"delay":{"latency":{}},"target":3}}`, `{"kind":7}`} {
		f.Add([]byte(s))
	}
	c, _ := kinds.ConverterOf("chaos-mesh.org/v1alpha1")
	f.Fuzz(func(t *testing.T, in []byte) {
		var manifest map[string]any
		if json.Unmarshal(in, &manifest) != nil {
			return
		}
		out, objections := c.Convert(manifest)
		if (out == nil) == (len(objections) == 0) {
			t.Errorf("item %v, objections %v", out, objections)
		}
	})
}
