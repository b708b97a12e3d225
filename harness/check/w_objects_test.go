package check_test

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

const (
	bundles   = "bundledeployments.fleet.cattle.io"
	monitored = "status.conditions[type=Monitored].lastUpdateTime"
)

// objects is a record of objects that a test fills.
type objects struct {
	*trial
	st      *bundle.Stream
	version int
}

// objects opens a record that follows resources from second 0 on; nothing is covered yet.
func (tr *trial) objects(arm string, resources ...string) *objects {
	tr.t.Helper()
	st, err := tr.w.Stream(bundle.Meta{Kind: bundle.Objects, Arm: arm, Time: tr.start}, "jsonl"+bundle.Packed)
	tr.must(err)
	o := &objects{trial: tr, st: st}
	for _, r := range resources {
		tr.must(st.Append(churn.Version{Time: tr.at(0), Type: churn.Synced, Resource: r}))
	}
	return o
}

// say records a version; its manager's time is the second's.
func (o *objects) say(second float64, typ, resource, name, manager, status string) {
	o.t.Helper()
	o.version++
	at := o.at(second).Format(time.RFC3339Nano)
	object := fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d","managedFields":[{"manager":%q,"operation":"Update","subresource":"status","time":%q}]},"status":%s}`,
		name, o.version, manager, at, status)
	o.must(o.st.Append(churn.Version{Time: o.at(second), Type: typ, Resource: resource, Namespace: "ns", Name: name, UID: "uid-" + name,
		ResourceVersion: fmt.Sprint(o.version), Object: []byte(object)}))
}

func (o *objects) covers(from, to float64) {
	o.st.Alive(o.at(from))
	o.st.Alive(o.at(to))
}

// bundleStatus has the condition that the loop stamps.
func bundleStatus(second float64, ready bool) string {
	return fmt.Sprintf(`{"ready":%t,"conditions":[{"type":"Ready","status":"%t"},{"type":"Monitored","lastUpdateTime":"%.1f"}]}`, ready, ready, second)
}

// outside is the world of a power-off: a node that is lost at second 80, a pod that is terminating at 100, a heartbeat at 150.
func outside(tr *trial) *objects {
	o := tr.objects(bundle.Shared, "nodes", "pods", "deployments.apps", "daemonsets.apps")
	node := func(second float64, ready string, beat int) {
		o.say(second, churn.Modified, "nodes", "worker", "kubelet", fmt.Sprintf(`{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":"%d"}]}`, ready, beat))
	}
	o.say(0, churn.Listed, "nodes", "worker", "kubelet", `{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"1"}]}`)
	o.say(0, churn.Listed, "pods", "agent", "kubelet", `{"phase":"Running"}`)
	o.say(0, churn.Listed, "daemonsets.apps", "agent", "controller", `{"numberAvailable":2}`)
	node(80, "Unknown", 1)
	o.say(81, churn.Modified, "daemonsets.apps", "agent", "controller", `{"numberAvailable":1}`)
	o.must(o.st.Append(churn.Version{Time: o.at(100), Type: churn.Modified, Resource: "pods", Namespace: "ns", Name: "agent", UID: "uid-agent",
		Object: []byte(`{"metadata":{"deletionTimestamp":"2026-03-01T10:01:40Z"},"status":{"phase":"Running"}}`)}))
	node(150, "Unknown", 2)
	return o
}

// loop writes as the vulnerable agent does, each two seconds of from..to.
func loop(o *objects, from, to float64) {
	for s := from; s <= to; s += 2 {
		o.say(s, churn.Modified, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(s, false))
	}
}

// churning is the whole trial of the vulnerable arm; more may add to it.
func churning(more func(*objects)) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		outside(tr).covers(0, 400)
		own := tr.objects(arm, bundles)
		own.say(0, churn.Listed, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(0, true))
		if more != nil {
			more(own)
		}
		own.covers(0, 400)
	}
}

// audit is an API server's audit log that a test fills.
type audit struct {
	*trial
	st *bundle.Stream
	n  int
}

// audit opens the audit log of a cluster that all arms share. Before anything else each of two agents deploys its bundle.
func (tr *trial) audit() *audit {
	tr.t.Helper()
	a := &audit{trial: tr, st: tr.stream(bundle.Audit, bundle.Shared)}
	for _, arm := range []string{arm, other} {
		a.asks(1, arm, "create", "secrets", 201)
		a.asks(2, arm, "update", bundles, 200)
	}
	return a
}

// asks has an arm's agent ask for a write of an object, or of its status, and get an answer 100 ms later.
func (a *audit) asks(second float64, arm, verb, resource string, code int) {
	a.t.Helper()
	a.n++
	e := bundle.AuditEvent{Time: a.at(second), ID: fmt.Sprint(a.n), Stage: "RequestReceived", Verb: verb, User: "agent-" + arm,
		Resource: resource, Namespace: "ns", Name: "bundle"}
	if resource == bundles {
		e.Subresource = "status"
	}
	a.must(a.st.JSON(e))
	e.Time, e.Stage, e.Code = a.at(second+0.1), "ResponseComplete", code
	a.must(a.st.JSON(e))
}

func (a *audit) covers(from, to float64) {
	a.st.Alive(a.at(from))
	a.st.Alive(a.at(to))
}
