package kinds_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestChurn(t *testing.T) {
	both := []bundle.Kind{bundle.Objects, bundle.Objects}
	const spec = `{"resource":"` + checktest.Bundles + `","only":["` + checktest.Monitored + `"],"by":"fleet-agent-$(arm)","window":{"terminating":1}}`
	checktest.Run(t, []checktest.Question{
		{
			Name: "a loop", Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 101, 289) }), Met: check.True, Evidence: both,
			Seen:   "30 writes to ns/bundle in 10:01:55.0 to 10:02:55.0: 0.5 a second, at most 2s apart (from 10:01:55), 100 % of them only " + checktest.Monitored + ", by fleet-agent-vulnerable (status)",
			Detail: checktest.Monitored + `: "101.0" -> "103.0"`,
		},
		{
			Name: "nobody writes", Fill: checktest.Churning(nil), Met: check.False, Evidence: both, Seen: "no write in 10:01:55.0 to 10:02:55.0",
		},
		{
			Name: "one write a minute", Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 120, 120); checktest.Loop(o, 180, 180) }), Met: check.False, Evidence: both,
			Seen:    "1 writes to ns/bundle in 10:01:55.0 to 10:02:55.0: 0.017 a second, at most 55s apart",
			Differs: []string{"1 writes changed " + checktest.Monitored},
		},
		{
			Name: "a loop that rests", Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 101, 131); checktest.Loop(o, 139, 289) }), Met: check.False, Evidence: both,
			Seen: "at most 8s apart (from 10:02:11)", Detail: checktest.Monitored,
		},
		{
			Name: "a loop that stalls, as on a loaded machine", Spec: `{"stalls":0.2}`, Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 101, 131); checktest.Loop(o, 139, 289) }), Met: check.True,
			Evidence: both, Detail: checktest.Monitored, Seen: "at most 8s apart (from 10:02:11), 100 % of them only " + checktest.Monitored + ", by fleet-agent-vulnerable (status); 5 % of the time lay in gaps beyond 5s",
			Wanted: "at most 20 % of the time in gaps beyond 5s, at least 95 %",
		},
		{
			Name: "a burst, and then nothing, is no stall", Spec: `{"stalls":0.2}`, Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 101, 155) }), Met: check.False, Evidence: both,
			Detail: checktest.Monitored, Seen: "at most 20s apart", Wanted: "at most 20 % of the time in gaps beyond 5s",
		},
		{
			Name: "a loop that changes more", Fill: checktest.Churning(func(o *checktest.Objects) {
				for s := 101.0; s < 289; s += 2 {
					o.Say(s, churn.Modified, checktest.Bundles, "bundle", "fleet-agent-"+checktest.Arm, checktest.BundleStatus(s, int(s)%4 == 1))
				}
			}),
			Met: check.False, Evidence: both, Seen: "0 % of them only", Detail: "status.ready: true -> false",
			Differs: []string{"30 writes changed status.conditions[type=Monitored].lastUpdateTime, status.conditions[type=Ready].status, status.ready, by fleet-agent-vulnerable"},
		},
		{
			Name: "somebody else's loop", Fill: checktest.Churning(func(o *checktest.Objects) {
				for s := 101.0; s < 289; s += 2 {
					o.Say(s, churn.Modified, checktest.Bundles, "bundle", "kubectl", checktest.BundleStatus(s, false))
				}
			}),
			Met: check.False, Evidence: both, Seen: "by kubectl (status)", Detail: checktest.Monitored, Differs: []string{"30 writes changed " + checktest.Monitored + ", by kubectl"},
		},
		{
			Name: "writes to different objects are no loop", Fill: checktest.Churning(func(o *checktest.Objects) {
				for i := range 60 {
					o.Say(101+float64(i), churn.Added, checktest.Bundles, fmt.Sprint("bundle-", i), "fleet-agent-"+checktest.Arm, checktest.BundleStatus(0, false))
				}
			}),
			Met: check.False, Evidence: both, Seen: "1 writes to ns/bundle-", Differs: []string{"1 writes are ADDED, by fleet-agent-vulnerable"},
		},
		{
			Name: "a gap in the window", Fill: checktest.Churning(func(o *checktest.Objects) {
				checktest.Loop(o, 101, 289)
				o.St.Gap(o.At(130), o.At(131), "bundledeployments had to be listed anew: too old resource version")
			}),
			Met: check.Unknown, Evidence: both, Seen: "(gap 10:02:10.0 to 10:02:11.0: bundledeployments had to be listed anew",
		},
		{
			Name: "a record that ends in the window", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				checktest.Outside(tr).Covers(0, 400)
				own := tr.Objects(checktest.Arm, checktest.Bundles)
				checktest.Loop(own, 101, 289)
				own.Covers(0, 170)
			},
			Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "the record of objects does not cover 10:01:55.0 to 10:02:55.0",
		},
		{
			Name: "a world that never stands still", Fill: checktest.Churning(func(o *checktest.Objects) {
				checktest.Loop(o, 101, 289)
				busy := o.Objects(bundle.Shared, "deployments.apps")
				for s := 40.0; s < 290; s += 30 {
					busy.Say(s, churn.Modified, "deployments.apps", "other", "kubectl", fmt.Sprintf(`{"n":%g}`, s))
				}
				busy.Covers(0, 400)
			}),
			Met: check.Unknown, Code: check.NotQuiet, Evidence: []bundle.Kind{bundle.Objects, bundle.Objects, bundle.Objects}, Seen: "the window never came: they stood still for at most 30s",
		},
		{
			Name: "nobody followed the nodes", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				own := tr.Objects(checktest.Arm, checktest.Bundles)
				checktest.Loop(own, 101, 289)
				own.Covers(0, 400)
			},
			Met: check.Unknown, Code: check.NotRecorded, Evidence: both[:1], Seen: "the window never came: nobody followed nodes for vulnerable",
		},
		{Name: "nobody followed the bundles", Fill: func(tr *checktest.Trial) { tr.Phases(); checktest.Outside(tr).Covers(0, 400) }, Met: check.Unknown, Code: check.NotRecorded, Seen: "nobody followed " + checktest.Bundles + " for vulnerable"},
		{Name: "a missing file", Fill: checktest.Churning(nil), Damage: checktest.Remove(t, bundle.Objects), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
		{
			Name: "no object at all", Fill: func(tr *checktest.Trial) {
				tr.Phases()
				checktest.Outside(tr).Covers(0, 400)
				tr.Objects(checktest.Arm, checktest.Bundles).Covers(0, 400)
			},
			Met: check.Unknown, Evidence: both, Seen: "there was no " + checktest.Bundles + " to be written",
		},
		{
			Name: "a baseline without writes", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 101, 289) }),
			Met: check.False, Evidence: both, Seen: "no quiet window fits into the baseline; in all of it 0 writes to one object, 0 a second",
		},
		{
			Name: "a baseline with a loop", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 1, 289) }),
			Met: check.Unknown, Evidence: both, Seen: "10 writes to one object, 0.5 a second",
		},
		{
			Name: "a baseline that is too short", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline, After: 12 * time.Second}, Fill: checktest.Churning(nil),
			Met: check.Unknown, Evidence: both, Seen: "it lasted 8s only",
		},
		{
			Name: "a baseline that nobody watched", Scope: check.Scope{Arm: checktest.Arm, Phase: check.Baseline}, Fill: checktest.Churning(func(o *checktest.Objects) { o.St.Gap(o.At(25), o.At(30), "refused") }),
			Met: check.Unknown, Evidence: both, Seen: "(gap 10:00:25.0 to 10:00:30.0: refused)",
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Spec = "churn", checktest.Over(t, spec, q.Spec)
		if q.Scope.Phase == "" {
			q.Scope = check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		}
		if q.Wanted == "" {
			q.Wanted = "at least 0.3 writes a second to one of " + checktest.Bundles + " in a window of 60s after 15s of standstill, no gap over 5s, at least 95 % of them only " + checktest.Monitored + " by fleet-agent-vulnerable"
		}
	})
}

func TestNoChurn(t *testing.T) {
	both := []bundle.Kind{bundle.Objects, bundle.Objects}
	checktest.Run(t, []checktest.Question{
		{Name: "silence", Fill: checktest.Churning(nil), Met: check.True, Evidence: both, Seen: "0 writes to 1 objects in 10:01:55.0 to 10:02:55.0"},
		{Name: "silence but for the time before", Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 85, 113) }), Met: check.True, Evidence: both, Seen: "0 writes to 1 objects"},
		{
			Name: "one write a minute", Fill: checktest.Churning(func(o *checktest.Objects) { checktest.Loop(o, 120, 120); checktest.Loop(o, 180, 180) }), Met: check.False, Evidence: both,
			Seen: "1 writes to 1 objects", Differs: []string{"1 writes changed"}, Detail: checktest.Monitored,
		},
		{
			Name: "a deletion", Fill: checktest.Churning(func(o *checktest.Objects) { o.Say(120, churn.Deleted, checktest.Bundles, "bundle", "kubectl", `{}`) }), Met: check.False, Evidence: both,
			Seen: "1 writes to 1 objects", Differs: []string{"1 writes are DELETED, by kubectl"},
		},
		{Name: "nobody could have written", Fill: checktest.Churning(func(o *checktest.Objects) { o.Say(50, churn.Deleted, checktest.Bundles, "bundle", "kubectl", `{}`) }), Met: check.Unknown, Evidence: both, Seen: "there was no " + checktest.Bundles},
		{
			Name: "nobody could have written what a new list has no more", Met: check.Unknown, Evidence: both, Seen: "there was no " + checktest.Bundles,
			Fill: checktest.Churning(func(o *checktest.Objects) {
				o.Must(o.St.Append(churn.Version{Time: o.At(50), Type: churn.Lost, From: o.At(45), Reason: "too old", Resource: checktest.Bundles}))
				o.Must(o.St.Append(churn.Version{Time: o.At(50), Type: churn.Synced, Resource: checktest.Bundles}))
				o.St.Gap(o.At(45), o.At(50), "listed anew")
			}),
		},
		{Name: "a gap", Fill: checktest.Churning(func(o *checktest.Objects) { o.St.Gap(o.At(174), o.At(176), "refused") }), Met: check.Unknown, Evidence: both, Seen: "refused"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "churn", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec, q.Wanted = `{"resource":"`+checktest.Bundles+`","none":true,"window":{"terminating":1}}`, "no write to "+checktest.Bundles+" in a window of 60s after 15s of standstill"
	})
}

// A slow writer's writes fall between the windows in which the world stands still, but not between the ends of a phase.
func TestNoVainWrite(t *testing.T) {
	one, both := []bundle.Kind{bundle.Objects}, []bundle.Kind{bundle.Objects, bundle.Objects}
	stamps := func(o *checktest.Objects, at ...float64) {
		for _, s := range at {
			o.Say(s, churn.Modified, checktest.Bundles, "bundle", "fleet-agent-"+checktest.Arm, checktest.BundleStatus(s, false))
		}
	}
	real := func(o *checktest.Objects) { stamps(o, 90) } // ready turns false
	renews := func(at ...float64) func(*checktest.Objects) {
		return func(o *checktest.Objects) {
			for _, s := range at {
				o.Say(s, churn.Modified, checktest.Bundles, "bundle", "fleet-agent-"+checktest.Arm, fmt.Sprintf(
					`{"ready":false,"conditions":[{"type":"Ready","status":"false","message":"not ready for %.0fs"},{"type":"Monitored","lastUpdateTime":"%.1f"}]}`, s, s))
			}
		}
	}
	checktest.Run(t, []checktest.Question{
		{Name: "silence", Fill: checktest.Churning(nil), Met: check.True, Evidence: one, Seen: "0 of 0 writes in 10:00:40.0 to 10:04:50.0 changed nothing else"},
		{Name: "writes that say something", Fill: checktest.Churning(real), Met: check.True, Evidence: both, Seen: "0 of 1 writes in 10:00:40.0 to 10:04:50.0 changed nothing else"},
		{
			Name: "a write every two minutes that changes a message, too", Met: check.False, Evidence: both, Fill: checktest.Churning(renews(90, 210)), Detail: "[type=Ready].message",
			Seen:    "0 of 2 writes in 10:00:40.0 to 10:04:50.0 changed nothing else, and 1 more had no cause outside, the first at 10:03:30",
			Differs: []string{"1 writes changed status.conditions[type=Monitored].lastUpdateTime, status.conditions[type=Ready].message, by fleet-agent-vulnerable"},
		},
		{Name: "messages that follow the world, as on a loaded machine", Met: check.True, Evidence: both, Fill: checktest.Churning(renews(90, 110, 130, 144)), Seen: "0 of 4 writes"},
		{Name: "a shorter time to follow the world", Spec: `{"within":"20s"}`, Met: check.False, Evidence: both, Fill: checktest.Churning(renews(90, 110, 130)), Seen: "and 1 more had no cause outside", Differs: []string{"1 writes"}, Detail: "message",
			Wanted: "in the 20s before"},
		{
			Name: "its own change of the world is no cause", Met: check.False, Evidence: append(both, bundle.Objects), Detail: "message", Seen: "and 1 more had no cause outside", Differs: []string{"1 writes"},
			Fill: checktest.Churning(func(o *checktest.Objects) {
				renews(90, 210)(o)
				more := o.Objects(bundle.Shared, "daemonsets.apps")
				more.Say(209, churn.Modified, "daemonsets.apps", "agent", "fleet-agent-"+checktest.Arm, `{"numberAvailable":1}`)
				more.Covers(0, 400)
			}),
		},
		{Name: "nobody knows whether it had a cause", Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "0 of 2 writes in 10:00:40.0 to 10:04:50.0 changed nothing else; the record of objects does not cover", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			world := checktest.Outside(tr)
			world.St.Gap(world.At(180), world.At(190), "had to be listed anew")
			world.Covers(0, 400)
			own := tr.Objects(checktest.Arm, checktest.Bundles)
			own.Say(0, churn.Listed, checktest.Bundles, "bundle", "fleet-agent-"+checktest.Arm, checktest.BundleStatus(0, true))
			renews(90, 210)(own)
			own.Covers(0, 400)
		}},
		{
			Name: "a write every 100 s, none in the quiet window", Fill: checktest.Churning(func(o *checktest.Objects) { stamps(o, 85, 185, 285) }), Met: check.False, Evidence: both,
			Seen: "2 of 3 writes in 10:00:40.0 to 10:04:50.0 changed nothing else, the first at 10:03:05", Differs: []string{"2 writes changed " + checktest.Monitored + ", by fleet-agent-vulnerable"},
			Detail: checktest.Monitored,
		},
		{
			Name: "a write that changes only an annotation", Met: check.False, Evidence: both, Seen: "1 of 2 writes", Differs: []string{"1 writes changed metadata.annotations"}, Detail: "metadata.annotations: nothing -> ",
			Fill: checktest.Churning(func(o *checktest.Objects) {
				for i, a := range []string{"", `"annotations":{"round":"7"},`} {
					o.Must(o.St.Append(churn.Version{Time: o.At(110 + float64(i)), Type: churn.Modified, Resource: checktest.Bundles, Namespace: "ns", Name: "bundle", UID: "uid-bundle",
						Object: []byte(`{"metadata":{` + a + `"name":"bundle"},"status":` + checktest.BundleStatus(0, false) + `}`)}))
				}
			}),
		},
		{Name: "a slow writer before and after the phase", Fill: checktest.Churning(func(o *checktest.Objects) { stamps(o, 10, 20, 292, 300) }), Met: check.True, Evidence: one, Seen: "0 of 0 writes"},
		{
			Name: "a gap in the phase, far from any quiet window", Met: check.Unknown, Code: check.Gap, Evidence: both, Seen: "0 of 1 writes in 10:00:40.0 to 10:04:50.0 changed nothing else; the record of objects does not cover",
			Fill: checktest.Churning(func(o *checktest.Objects) { real(o); o.St.Gap(o.At(280), o.At(281), "had to be listed anew") }),
		},
		{
			Name: "a gap beside what was seen", Met: check.False, Evidence: both, Seen: "1 of 2 writes", Differs: []string{checktest.Monitored}, Detail: checktest.Monitored,
			Fill: checktest.Churning(func(o *checktest.Objects) {
				stamps(o, 90, 200)
				o.St.Gap(o.At(280), o.At(281), "had to be listed anew")
			}),
		},
		{Name: "a record that ends before the phase", Met: check.Unknown, Code: check.Gap, Evidence: one, Seen: "does not cover", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			own := tr.Objects(checktest.Arm, checktest.Bundles)
			own.Say(0, churn.Listed, checktest.Bundles, "bundle", "fleet-agent-"+checktest.Arm, checktest.BundleStatus(0, true))
			own.Covers(0, 280)
		}},
		{Name: "nobody could have written", Met: check.Unknown, Evidence: one, Seen: "there was no " + checktest.Bundles, Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.Objects(checktest.Arm, checktest.Bundles).Covers(0, 400)
		}},
		{Name: "nobody watched", Met: check.Unknown, Code: check.NotRecorded, Seen: "nobody followed " + checktest.Bundles, Fill: func(tr *checktest.Trial) { tr.Phases() }},
		{Name: "a missing file", Fill: checktest.Churning(nil), Damage: checktest.Remove(t, bundle.Objects), Met: check.Unknown, Code: check.Unreadable, Seen: "is missing"},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "churn", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		q.Spec = checktest.Over(t, `{"resource":"`+checktest.Bundles+`","noneOnly":["status.conditions[*].lastUpdateTime","metadata.annotations"]}`, q.Spec)
		if q.Wanted == "" {
			q.Wanted = "in the whole phase no write to " + checktest.Bundles + " that changed only status.conditions[*].lastUpdateTime, metadata.annotations, " +
				"and none without a change of nodes, pods, deployments.apps, daemonsets.apps in the 45s before"
		}
	})
}

func TestChurnRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"only":["a"]}`:                                                                "resource is empty",
		`{"resource":"pods","only":["a"]}`:                                              "resource pods is among those that have to stand still",
		`{"resource":"a","only":["b"],"rate":-1}`:                                       "rate is -1 (want above 0)",
		`{"resource":"a","only":["b"],"share":1.5}`:                                     "share is 1.5 (want above 0, up to 1)",
		`{"resource":"a","only":["b"],"by":"agent-$(cell)"}`:                            `by is "agent-$(cell)" (want no placeholder but $(arm))`,
		`{"resource":"a"}`:                                                              "only is [] (want the paths that a loop changes)",
		`{"resource":"a","only":[""]}`:                                                  `only is [""] (want the paths that a loop changes)`,
		`{"resource":"a","only":["b"],"gap":"5"}`:                                       `gap is "5" (want a duration with its unit: 3m)`,
		`{"resource":"a","none":true,"by":"b"}`:                                         "with none, no write counts less than another (want neither only nor by)",
		`{"resource":"a","only":["b"],"stalls":0.6}`:                                    "stalls is 0.6 (want 0 up to 0.5)",
		`{"resource":"a","noneOnly":["b"],"none":true}`:                                 "noneOnly stands alone (want none of none, only and by)",
		`{"resource":"a","none":true,"within":"5s"}`:                                    "within says nothing without noneOnly",
		`{"resource":"a","noneOnly":["b"],"within":"5"}`:                                `within is "5" (want a duration with its unit: 3m)`,
		`{"resource":"a","noneOnly":[""]}`:                                              `noneOnly is [""] (want the paths that a loop changes)`,
		`{"resource":"a","none":true,"window":{"still":"0s"}}`:                          "window.still is 0s (want above 0)",
		`{"resource":"a","none":true,"window":{"terminating":-1}}`:                      "window.terminating is -1 (want 0 or more)",
		`{"resource":"a","none":true,"window":{"resources":["nodes"],"terminating":1}}`: "window.terminating is 1, and pods are not among the resources",
		`{"resource":"a","none":true,"window":{"ignore":[""]}}`:                         "window.ignore has an empty path, which would leave out everything",
	} {
		checktest.Refused(t, "churn", spec, want)
	}
}
