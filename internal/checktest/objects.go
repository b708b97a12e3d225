package checktest

import (
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

// The objects of fleet's agent, and the field that it writes.
const (
	Bundles   = "bundledeployments.fleet.cattle.io"
	Monitored = "status.conditions[type=Monitored].lastUpdateTime"
)

// Objects is a record of objects that a test fills.
type Objects struct {
	*Trial
	St      *bundle.Stream
	version int
}

// Objects opens a record that follows resources from second 0 on; nothing is covered yet.
func (tr *Trial) Objects(arm string, resources ...string) *Objects {
	tr.T.Helper()
	st, err := tr.W.Stream(
		bundle.Meta{Kind: bundle.Objects, Arm: arm, Time: tr.Start},
		"jsonl"+bundle.Packed,
	)
	tr.Must(err)
	o := &Objects{Trial: tr, St: st}
	for _, r := range resources {
		tr.Must(st.Append(churn.Version{Time: tr.At(0), Type: churn.Synced, Resource: r}))
	}
	return o
}

// Say records a version; its manager's time is the second's.
func (o *Objects) Say(second float64, typ, resource, name, manager, status string) {
	o.T.Helper()
	o.version++
	at := o.At(second).Format(time.RFC3339Nano)
	object := fmt.Sprintf(
		`{"metadata":{"name":%q,"resourceVersion":"%d","managedFields":[{"manager":%q,"operation":"Update","subresource":"status","time":%q}]},"status":%s}`,
		name,
		o.version,
		manager,
		at,
		status,
	)
	o.Must(
		o.St.Append(churn.Version{
			Time:            o.At(second),
			Type:            typ,
			Resource:        resource,
			Namespace:       "ns",
			Name:            name,
			UID:             "uid-" + name,
			ResourceVersion: fmt.Sprint(o.version),
			Object:          []byte(object),
		}),
	)
}

// Covers says that the record covers a stretch.
func (o *Objects) Covers(from, to float64) {
	o.St.Alive(o.At(from))
	o.St.Alive(o.At(to))
}

// BundleStatus has the condition that the loop stamps.
func BundleStatus(second float64, ready bool) string {
	return fmt.Sprintf(
		`{"ready":%t,"conditions":[{"type":"Ready","status":"%t"},{"type":"Monitored","lastUpdateTime":"%.1f"}]}`,
		ready,
		ready,
		second,
	)
}

// Outside is the world of a power-off: a node that is lost at second 80, a pod that is terminating at 100, a heartbeat
// at 150.
func Outside(tr *Trial) *Objects {
	o := tr.Objects(bundle.Shared, "nodes", "pods", "deployments.apps", "daemonsets.apps")
	node := func(second float64, ready string, beat int) {
		o.Say(second, churn.Modified, "nodes", "worker", "kubelet", fmt.Sprintf(`{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":"%d"}]}`, ready, beat))
	}
	o.Say(
		0,
		churn.Listed,
		"nodes",
		"worker",
		"kubelet",
		`{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"1"}]}`,
	)
	o.Say(0, churn.Listed, "pods", "agent", "kubelet", `{"phase":"Running"}`)
	o.Say(0, churn.Listed, "daemonsets.apps", "agent", "controller", `{"numberAvailable":2}`)
	node(80, "Unknown", 1)
	o.Say(81, churn.Modified, "daemonsets.apps", "agent", "controller", `{"numberAvailable":1}`)
	o.Must(o.St.Append(churn.Version{Time: o.At(100), Type: churn.Modified, Resource: "pods", Namespace: "ns", Name: "agent", UID: "uid-agent",
		Object: []byte(`{"metadata":{"deletionTimestamp":"2026-03-01T10:01:40Z"},"status":{"phase":"Running"}}`)}))
	node(150, "Unknown", 2)
	return o
}

// Loop writes as the vulnerable agent does, each two seconds of from..to.
func Loop(o *Objects, from, to float64) {
	for s := from; s <= to; s += 2 {
		o.Say(s, churn.Modified, Bundles, "bundle", "fleet-agent-"+Arm, BundleStatus(s, false))
	}
}

// Churning is the whole trial of the vulnerable arm; more may add to it.
func Churning(more func(*Objects)) func(*Trial) {
	return func(tr *Trial) {
		tr.Phases()
		Outside(tr).Covers(0, 400)
		own := tr.Objects(Arm, Bundles)
		own.Say(0, churn.Listed, Bundles, "bundle", "fleet-agent-"+Arm, BundleStatus(0, true))
		if more != nil {
			more(own)
		}
		own.Covers(0, 400)
	}
}

// Audit is an API server's audit log that a test fills.
type Audit struct {
	*Trial
	St *bundle.Stream
	n  int
}

// Audit opens the audit log of a cluster that all arms share. Before anything else each of two agents deploys its
// bundle.
func (tr *Trial) Audit() *Audit {
	tr.T.Helper()
	a := &Audit{Trial: tr, St: tr.Stream(bundle.Audit, bundle.Shared)}
	for _, arm := range []string{Arm, Other} {
		a.Asks(1, arm, "create", "secrets", 201)
		a.Asks(2, arm, "update", Bundles, 200)
	}
	return a
}

// Asks has an arm's agent ask for a write of an object, or of its status, and get an answer 100 ms later.
func (a *Audit) Asks(second float64, arm, verb, resource string, code int) {
	a.T.Helper()
	a.n++
	e := bundle.AuditEvent{
		Time:      a.At(second),
		ID:        fmt.Sprint(a.n),
		Stage:     "RequestReceived",
		Verb:      verb,
		User:      "agent-" + arm,
		Resource:  resource,
		Namespace: "ns",
		Name:      "bundle",
	}
	if resource == Bundles {
		e.Subresource = "status"
	}
	a.Must(a.St.JSON(e))
	e.Time, e.Stage, e.Code = a.At(second+0.1), "ResponseComplete", code
	a.Must(a.St.JSON(e))
}

// Covers says that the record covers a stretch.
func (a *Audit) Covers(from, to float64) {
	a.St.Alive(a.At(from))
	a.St.Alive(a.At(to))
}
