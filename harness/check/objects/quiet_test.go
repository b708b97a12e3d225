package objects_test

import (
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestQuietWorld(t *testing.T) {
	one := []bundle.Kind{bundle.Objects}
	world := func(more func(*checktest.Objects)) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			o := checktest.Outside(tr)
			if more != nil {
				more(o)
			}
			o.Covers(0, 400)
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "still from the last write on", Fill: world(nil), Met: check.True, Evidence: one, Seen: "the window is 10:01:55.0 to 10:02:55.0"},
		{
			Name: "a pod must be terminating", Spec: `{"terminating":1,"still":"5s","for":"30s"}`, Wanted: "still for 5s, and then for 30s more, with at least 1 pods terminating",
			Fill: world(nil), Met: check.True, Evidence: one, Seen: "the window is 10:01:45.0 to 10:02:15.0",
		},
		{
			Name: "else it may come before", Spec: `{"still":"5s","for":"30s"}`, Wanted: "still for 5s, and then for 30s more",
			Fill: world(nil), Met: check.True, Evidence: one, Seen: "the window is 10:00:45.0 to 10:01:15.0",
		},
		{
			Name: "two pods are not", Spec: `{"terminating":2}`, Fill: world(nil), Met: check.False, Evidence: one,
			Seen: "with 1 pods terminating",
		},
		{
			Name: "one that is gone is none", Spec: `{"terminating":1}`, Met: check.False, Evidence: one, Seen: "with 0 pods terminating",
			Fill: world(func(o *checktest.Objects) {
				o.Say(101, churn.Deleted, "pods", "agent", "kubelet", `{"phase":"Running"}`)
			}),
		},
		{
			Name: "heartbeats count unless they are ignored", Spec: `{"ignore":["status.none"]}`, Fill: world(nil), Met: check.True, Evidence: one,
			Seen: "the window is 10:02:45.0 to 10:03:45.0",
		},
		{
			Name: "a write in it", Fill: world(func(o *checktest.Objects) { o.Say(170, churn.Added, "pods", "new", "kubelet", `{}`) }), Met: check.True, Evidence: one,
			Seen: "the window is 10:03:05.0 to 10:04:05.0",
		},
		{
			Name: "a write in another arm's namespace", Met: check.True, Evidence: one, Seen: "the window is 10:01:55.0 to 10:02:55.0",
			Fill: func(tr *checktest.Trial) {
				tr.Must(tr.W.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: checktest.Arm, Namespace: "ns"}, {Arm: checktest.Other, Namespace: "ns-other"}}}))
				world(func(o *checktest.Objects) {
					o.Must(o.St.Append(churn.Version{Time: o.At(120), Type: churn.Added, Resource: "pods", Namespace: "ns-other", Name: "crashes", UID: "uid-crashes",
						Object: []byte(`{}`)}))
				})(tr)
			},
		},
		{
			Name: "a write in a namespace of nobody's", Met: check.True, Evidence: one, Seen: "the window is 10:02:15.0 to 10:03:15.0",
			Fill: func(tr *checktest.Trial) {
				tr.Must(tr.W.SetWorld(bundle.World{Arms: []bundle.ArmWorld{{Arm: checktest.Arm, Namespace: "ns"}, {Arm: checktest.Other}}}))
				world(func(o *checktest.Objects) {
					o.Must(o.St.Append(churn.Version{Time: o.At(120), Type: churn.Added, Resource: "pods", Namespace: "kube-system", Name: "new", UID: "uid-new",
						Object: []byte(`{}`)}))
				})(tr)
			},
		},
		{
			Name: "too late", Fill: world(func(o *checktest.Objects) {
				o.Say(216, churn.Added, "pods", "new", "kubelet", `{}`)
				o.Say(150, churn.Added, "pods", "newer", "kubelet", `{}`)
			}),
			Met: check.False, Evidence: one, Seen: "they stood still for at most 1m14s, in 10:03:36.0 to 10:04:50.0",
		},
		{
			Name: "a gap is no standstill, and after it there may be one", Met: check.True, Evidence: one, Seen: "the window is 10:02:35.0 to 10:03:35.0",
			Fill: world(func(o *checktest.Objects) { o.St.Gap(o.At(120), o.At(140), "refused") }),
		},
		{
			Name: "gaps all over", Met: check.Unknown, Evidence: one, Seen: "refused",
			Fill: world(func(o *checktest.Objects) {
				o.St.Gap(o.At(150), o.At(151), "refused")
				o.St.Gap(o.At(220), o.At(230), "refused")
			}),
		},
		{
			Name: "a pod that a new list has no more is not terminating", Spec: `{"terminating":1}`, Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "listed anew",
			Fill: world(func(o *checktest.Objects) {
				o.Must(o.St.Append(churn.Version{Time: o.At(140), Type: churn.Lost, From: o.At(101), Reason: "too old", Resource: "pods"}))
				o.Must(o.St.Append(churn.Version{Time: o.At(140), Type: churn.Synced, Resource: "pods"}))
				o.St.Gap(o.At(101), o.At(140), "listed anew")
			}),
		},
		{
			Name: "nor is one that was made anew under its name", Spec: `{"terminating":1}`, Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "listed anew",
			Fill: world(func(o *checktest.Objects) {
				o.Must(o.St.Append(churn.Version{Time: o.At(140), Type: churn.Lost, From: o.At(101), Reason: "too old", Resource: "pods"}))
				o.Say(140.01, churn.Listed, "pods", "agent", "kubelet", `{"phase":"Running"}`)
				o.Must(o.St.Append(churn.Version{Time: o.At(140), Type: churn.Synced, Resource: "pods"}))
				o.St.Gap(o.At(101), o.At(140), "listed anew")
			}),
		},
		{
			Name: "a record that begins later", Met: check.True, Evidence: one, Seen: "the window is 10:02:25.0 to 10:03:25.0",
			Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(130, 400) },
		},
		{
			Name: "a record that ends before", Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "the record of objects does not cover",
			Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(0, 170) },
		},
		{
			Name: "one of the resources was not followed", Met: check.Unknown, Code: check.NotRecorded, Seen: "nobody followed daemonsets.apps for vulnerable",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.Objects(bundle.Shared, "nodes", "pods", "deployments.apps").Covers(0, 400)
			},
		},
		{
			Name: "the capture failed", Met: check.Unknown, Code: check.Unreadable, Seen: "the capture failed: refused",
			Fill: func(tr *checktest.Trial) { tr.Phases(); tr.Fail(bundle.Objects, bundle.Shared, 0, "refused") },
		},
		{Name: "the phase never began", Met: check.Unknown, Code: check.NoPhase, Seen: "the phase fault never began", Fill: func(tr *checktest.Trial) { checktest.Outside(tr).Covers(0, 400) }},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "quietWorld", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "nodes, pods, deployments.apps, daemonsets.apps still for 15s, and then for 60s more"
		}
	})
	checktest.Refused(t, "quietWorld", `{"for":"soon"}`, `for is "soon" (want a duration with its unit: 3m)`)
}
