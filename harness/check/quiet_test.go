package check_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func TestQuietWorld(t *testing.T) {
	one := []bundle.Kind{bundle.Objects}
	world := func(more func(*objects)) func(*trial) {
		return func(tr *trial) {
			tr.phases()
			o := outside(tr)
			if more != nil {
				more(o)
			}
			o.covers(0, 400)
		}
	}
	run(t, []question{
		{name: "still from the last write on", fill: world(nil), met: check.True, evidence: one, seen: "the window is 10:01:55.0 to 10:02:55.0"},
		{
			name: "a pod must be terminating", spec: `{"terminating":1,"still":"5s","for":"30s"}`, wanted: "still for 5s, and then for 30s more, with at least 1 pods terminating",
			fill: world(nil), met: check.True, evidence: one, seen: "the window is 10:01:45.0 to 10:02:15.0",
		},
		{
			name: "else it may come before", spec: `{"still":"5s","for":"30s"}`, wanted: "still for 5s, and then for 30s more",
			fill: world(nil), met: check.True, evidence: one, seen: "the window is 10:00:45.0 to 10:01:15.0",
		},
		{
			name: "two pods are not", spec: `{"terminating":2}`, fill: world(nil), met: check.False, evidence: one,
			seen: "with 1 pods terminating",
		},
		{
			name: "one that is gone is none", spec: `{"terminating":1}`, met: check.False, evidence: one, seen: "with 0 pods terminating",
			fill: world(func(o *objects) { o.say(101, churn.Deleted, "pods", "agent", "kubelet", `{"phase":"Running"}`) }),
		},
		{
			name: "heartbeats count unless they are ignored", spec: `{"ignore":["status.none"]}`, fill: world(nil), met: check.True, evidence: one,
			seen: "the window is 10:02:45.0 to 10:03:45.0",
		},
		{
			name: "a write in it", fill: world(func(o *objects) { o.say(170, churn.Added, "pods", "new", "kubelet", `{}`) }), met: check.True, evidence: one,
			seen: "the window is 10:03:05.0 to 10:04:05.0",
		},
		{
			name: "a write in another arm's namespace", met: check.True, evidence: one, seen: "the window is 10:01:55.0 to 10:02:55.0",
			fill: func(tr *trial) {
				tr.must(tr.w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: arm, Namespace: "ns"}, {Arm: other, Namespace: "ns-other"}}}))
				world(func(o *objects) {
					o.must(o.st.Append(churn.Version{Time: o.at(120), Type: churn.Added, Resource: "pods", Namespace: "ns-other", Name: "crashes", UID: "uid-crashes",
						Object: []byte(`{}`)}))
				})(tr)
			},
		},
		{
			name: "a write in a namespace of nobody's", met: check.True, evidence: one, seen: "the window is 10:02:15.0 to 10:03:15.0",
			fill: func(tr *trial) {
				tr.must(tr.w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: arm, Namespace: "ns"}, {Arm: other}}}))
				world(func(o *objects) {
					o.must(o.st.Append(churn.Version{Time: o.at(120), Type: churn.Added, Resource: "pods", Namespace: "kube-system", Name: "new", UID: "uid-new",
						Object: []byte(`{}`)}))
				})(tr)
			},
		},
		{
			name: "too late", fill: world(func(o *objects) {
				o.say(216, churn.Added, "pods", "new", "kubelet", `{}`)
				o.say(150, churn.Added, "pods", "newer", "kubelet", `{}`)
			}),
			met: check.False, evidence: one, seen: "they stood still for at most 1m14s, in 10:03:36.0 to 10:04:50.0",
		},
		{
			name: "a gap is no standstill, and after it there may be one", met: check.True, evidence: one, seen: "the window is 10:02:35.0 to 10:03:35.0",
			fill: world(func(o *objects) { o.st.Gap(o.at(120), o.at(140), "refused") }),
		},
		{
			name: "gaps all over", met: check.Unknown, evidence: one, seen: "refused",
			fill: world(func(o *objects) { o.st.Gap(o.at(150), o.at(151), "refused"); o.st.Gap(o.at(220), o.at(230), "refused") }),
		},
		{
			name: "a record that begins later", met: check.True, evidence: one, seen: "the window is 10:02:25.0 to 10:03:25.0",
			fill: func(tr *trial) { tr.phases(); outside(tr).covers(130, 400) },
		},
		{
			name: "a record that ends before", met: check.Unknown, evidence: one, seen: "the record of objects does not cover",
			fill: func(tr *trial) { tr.phases(); outside(tr).covers(0, 170) },
		},
		{
			name: "one of the resources was not followed", met: check.Unknown, seen: "nobody followed daemonsets.apps for vulnerable",
			fill: func(tr *trial) {
				tr.phases()
				tr.objects(bundle.Shared, "nodes", "pods", "deployments.apps").covers(0, 400)
			},
		},
		{
			name: "the capture failed", met: check.Unknown, seen: "the capture failed: refused",
			fill: func(tr *trial) { tr.phases(); tr.fail(bundle.Objects, bundle.Shared, 0, "refused") },
		},
		{name: "the phase never began", met: check.Unknown, seen: "the phase fault never began", fill: func(tr *trial) { outside(tr).covers(0, 400) }},
	}, func(q *question) {
		q.kind, q.scope = "quietWorld", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{}`, q.spec)
		if q.wanted == "" {
			q.wanted = "nodes, pods, deployments.apps, daemonsets.apps still for 15s, and then for 60s more"
		}
	})
	refused(t, "quietWorld", `{"for":"soon"}`, `for is "soon" (want a duration with its unit: 3m)`)
}
