package faults

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaos-mesh/chaos-mesh/api/v1alpha1"

	"github.com/kube-relapse/relapse/fixtures/control"
)

// The label by which kubeadm tells its static pods apart, and the two ends of the etcd seam.
const (
	componentLabel = "component"
	systemSpace    = "kube-system"
	apiserverPods  = "kube-apiserver"
	etcdPods       = "etcd"
)

// target returns the item's target. It objects unless one end of the etcd seam is the source and the other end the
// target. Their order doesn't matter to the proxy.
func (c *networkChaos) target() map[string]any {
	s := c.chaos.Spec
	source := c.end("spec", s.PodSelector)
	if s.Target == nil {
		c.refuse(
			"spec.target",
			"is missing: it would slow down all that %s sends, and the proxy stands between kube-apiserver and etcd "+
				"only",
			cmp.Or(source, "the pods"),
		)
	} else if other := c.end("spec.target", *s.Target); source != "" && other != "" && source == other {
		c.refuse(
			"spec.target.selector",
			"means %s again (want the other one of kube-apiserver and etcd)",
			other,
		)
	}
	mode := v1alpha1.AllMode
	if s.Mode == v1alpha1.OneMode || s.Target != nil && s.Target.Mode == v1alpha1.OneMode {
		mode = v1alpha1.OneMode
	}
	for _, f := range []struct{ name, value, why string }{
		{"device", s.Device, "the proxy stands in the connections, on no device"},
		{"targetDevice", s.TargetDevice, "the proxy stands in the connections, on no device"},
		{"externalTargets", strings.Join(s.ExternalTargets, ", "),
			"the proxy stands between kube-apiserver and etcd only"},
		{"remoteCluster", s.RemoteCluster, "a fault hits the run's own clusters only"},
	} {
		if f.value != "" {
			c.refuse("spec."+f.name, "%s: %s", f.value, f.why)
		}
	}
	c.from["target"] = "spec.selector"
	return map[string]any{"mode": string(mode), "selector": map[string]any{"component": etcdPods}}
}

// end returns the component that a selector means; "", with an objection, if that is no end of the etcd seam.
func (c *networkChaos) end(field string, p v1alpha1.PodSelector) string {
	if p.Mode != v1alpha1.AllMode && p.Mode != v1alpha1.OneMode {
		c.refuse(
			field+".mode",
			"%q can't be converted: there is one etcd in a cluster (want all or one)",
			p.Mode,
		)
	}
	if p.Value != "" {
		c.refuse(field+".value", "stands beside mode %s (want none)", p.Mode)
	}
	s, selector := p.Selector, field+".selector"
	// Chaos Mesh takes the chaos's own namespace where none is named.
	if len(s.Namespaces) == 0 {
		s.DefaultNamespace(c.chaos.Namespace)
	}
	component := s.LabelSelectors[componentLabel]
	for _, part := range []struct {
		name string
		more bool
	}{
		{"nodes", len(s.Nodes) > 0}, {"pods", len(s.Pods) > 0}, {"nodeSelectors", len(s.NodeSelectors) > 0},
		{"podPhaseSelectors", len(s.PodPhaseSelectors) > 0}, {"fieldSelectors", len(s.FieldSelectors) > 0},
		{"expressionSelectors", len(s.ExpressionSelectors) > 0},
		{"annotationSelectors", len(s.AnnotationSelectors) > 0},
	} {
		if part.more {
			c.refuse(
				selector+"."+part.name,
				"can't be converted (want namespaces and labelSelectors alone: which pods it means must not depend "+
					"on the cluster)",
			)
		}
	}
	if !slices.Equal(s.Namespaces, []string{systemSpace}) {
		c.refuse(
			selector,
			"means the namespaces [%s] (want %s, where kube-apiserver and etcd are)",
			strings.Join(s.Namespaces, ", "),
			systemSpace,
		)
	}
	if component != apiserverPods && component != etcdPods {
		c.refuse(
			selector,
			"doesn't mean kube-apiserver or etcd, between which the proxy stands (want labelSelectors: {%s: %s} or "+
				"{%s: %s})",
			componentLabel,
			apiserverPods,
			componentLabel,
			etcdPods,
		)
		return ""
	}
	for _, label := range slices.Sorted(maps.Keys(s.LabelSelectors)) {
		value := s.LabelSelectors[label]
		if label != componentLabel && (label != "tier" || value != "control-plane") {
			c.refuse(
				selector+".labelSelectors",
				"wants %s: %s, too, which is not among the labels that kubeadm gives (want %s alone)",
				label,
				value,
				componentLabel,
			)
		}
	}
	return component
}

// action returns the kind of fault that does the same as the manifest's action, with its spec.
func (c *networkChaos) action() (string, map[string]any) {
	s := c.chaos.Spec
	c.parameters()
	if !slices.Contains([]v1alpha1.Direction{"", v1alpha1.To, v1alpha1.From, v1alpha1.Both}, s.Direction) {
		c.refuse("spec.direction", "%q is no direction (want to, from or both)", s.Direction)
	}
	switch s.Action {
	case v1alpha1.DelayAction:
		return "latency", onEtcd(c.delay())
	case v1alpha1.LossAction:
		return "outage", onEtcd(c.loss())
	case v1alpha1.PartitionAction:
		return "outage", onEtcd(c.partition())
	case v1alpha1.NetemAction:
		c.refuse(
			"spec.action",
			"netem can't be converted: it is several actions in one (want delay)",
		)
	case v1alpha1.BandwidthAction:
		c.refuse(
			"spec.action",
			"bandwidth can't be converted: its limit and buffer make a queue that loses packets, and the proxy only slows "+
				"a stream down (want a fault of the kind bandwidth)",
		)
	case v1alpha1.DuplicateAction, v1alpha1.CorruptAction:
		c.refuse(
			"spec.action",
			"%s can't be converted: the proxy passes on the bytes of TLS connections, and there are no packets to %s "+
				"(want delay)",
			s.Action,
			s.Action,
		)
	default:
		c.refuse(
			"spec.action",
			"%q is no action of a NetworkChaos (want delay; loss of 100 or partition for an outage)",
			s.Action,
		)
	}
	return "", nil
}

// onEtcd adds the connection to a fault's spec, unless there is none.
func onEtcd(spec map[string]any) map[string]any {
	if spec != nil {
		spec["connection"] = "etcd"
	}
	return spec
}

// parameters objects to the parameters of other actions. Chaos Mesh ignores these, and an ignored parameter misleads.
func (c *networkChaos) parameters() {
	s := c.chaos.Spec
	for _, p := range []struct {
		of  v1alpha1.NetworkChaosAction
		set bool
	}{
		{v1alpha1.DelayAction, s.Delay != nil}, {v1alpha1.LossAction, s.Loss != nil},
		{v1alpha1.DuplicateAction, s.Duplicate != nil},
		{v1alpha1.CorruptAction, s.Corrupt != nil}, {v1alpha1.BandwidthAction, s.Bandwidth != nil},
		{"rate", s.Rate != nil},
	} {
		if p.set && p.of != s.Action {
			c.refuse("spec."+string(p.of), "has no effect beside action %s", s.Action)
		}
	}
	if s.PartitionBehavior != "" && s.Action != v1alpha1.PartitionAction {
		c.refuse("spec.partitionBehavior", "has no effect beside action %s", s.Action)
	}
}

// delay returns the spec of a delay. It is the same for either direction: the answer to a call comes later by the
// latency, which is what the proxy does. With both directions Chaos Mesh delays request and answer, so latency and
// jitter are doubled.
func (c *networkChaos) delay() map[string]any {
	d := c.chaos.Spec.Delay
	if d == nil {
		c.refuse("spec.delay", "is missing (want delay: {latency: 300ms})")
		return nil
	}
	if d.Reorder != nil {
		c.refuse(
			"spec.delay.reorder",
			"can't be converted: the proxy passes on the bytes of TCP connections, which arrive in their order",
		)
	}
	c.uncorrelated("spec.delay.correlation", d.Correlation)
	out := map[string]any{}
	for _, f := range []struct{ name, text string }{{"latency", d.Latency}, {"jitter", d.Jitter}} {
		if f.text == "" && f.name == "jitter" {
			continue
		}
		v, err := time.ParseDuration(f.text)
		if err != nil {
			c.refuse(
				"spec.delay."+f.name,
				"%q is no duration (want one with its unit: 250ms, 40s)",
				f.text,
			)
			continue
		}
		if c.chaos.Spec.Direction == v1alpha1.Both {
			f.text = (2 * v).String()
		}
		out[f.name], c.from["spec."+f.name] = f.text, "spec.delay."+f.name
	}
	c.from["spec"] = "spec.delay"
	return out
}

func (c *networkChaos) loss() map[string]any {
	l := c.chaos.Spec.Loss
	if l == nil {
		c.refuse("spec.loss", `is missing (want loss: {loss: "100"})`)
		return nil
	}
	if v, err := strconv.ParseFloat(l.Loss, 64); err != nil || v != 100 {
		c.refuse(
			"spec.loss.loss",
			"%q can't be converted: the proxy loses no single packets (want 100, which is an outage)",
			l.Loss,
		)
	}
	c.uncorrelated("spec.loss.correlation", l.Correlation)
	c.from["spec"] = "spec.loss"
	return c.outage(control.OutageKeep)
}

func (c *networkChaos) partition() map[string]any {
	c.from["spec"] = "spec.partitionBehavior"
	switch b := c.chaos.Spec.PartitionBehavior; b {
	case "", v1alpha1.DropPartitionBehavior:
		return c.outage(control.OutageKeep)
	case v1alpha1.RejectPartitionBehavior:
		return c.outage(control.OutageReset)
	default:
		c.refuse(
			"spec.partitionBehavior",
			"%q is no behaviour of a partition (want drop or reject)",
			b,
		)
	}
	return nil
}

// outage returns the spec of an outage, which needs a duration: Chaos Mesh's outage lasts until it is deleted, and a
// longer one than longestOutage is another incident.
func (c *networkChaos) outage(connections string) map[string]any {
	d := c.chaos.Spec.Duration
	if d == nil {
		c.refuse(
			"spec.duration",
			"is missing (want less than %s, or kube-apiserver's liveness probe restarts it)",
			longestOutage,
		)
		return nil
	}
	if v, err := time.ParseDuration(*d); err == nil && v >= longestOutage {
		c.refuse(
			"spec.duration",
			"%s is too long for an outage (want less than %s, or kube-apiserver's liveness probe restarts it)",
			*d,
			longestOutage,
		)
	}
	c.from["spec.atMost"] = "spec.duration"
	return map[string]any{"connections": connections, "atMost": *d}
}

// uncorrelated refuses a correlation other than Chaos Mesh's default of none.
func (c *networkChaos) uncorrelated(field, correlation string) {
	if correlation == "" {
		return
	}
	if v, err := strconv.ParseFloat(correlation, 64); err != nil || v != 0 {
		c.refuse(
			field,
			"%q can't be converted: the proxy draws each delay by itself (want 0, or none)",
			correlation,
		)
	}
}
