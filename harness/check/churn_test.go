package check_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
)

func TestChurn(t *testing.T) {
	both := []bundle.Kind{bundle.Objects, bundle.Objects}
	const spec = `{"resource":"` + bundles + `","only":["` + monitored + `"],"by":"fleet-agent-$(arm)","window":{"terminating":1}}`
	run(t, []question{
		{
			name: "a loop", fill: churning(func(o *objects) { loop(o, 101, 289) }), met: check.True, evidence: both,
			seen:   "30 writes to ns/bundle in 10:01:55.0 to 10:02:55.0: 0.5 a second, at most 2s apart (from 10:01:55), 100 % of them only " + monitored + ", by fleet-agent-vulnerable (status)",
			detail: monitored + `: "101.0" -> "103.0"`,
		},
		{
			name: "nobody writes", fill: churning(nil), met: check.False, evidence: both, seen: "no write in 10:01:55.0 to 10:02:55.0",
		},
		{
			name: "one write a minute", fill: churning(func(o *objects) { loop(o, 120, 120); loop(o, 180, 180) }), met: check.False, evidence: both,
			seen:    "1 writes to ns/bundle in 10:01:55.0 to 10:02:55.0: 0.017 a second, at most 55s apart",
			differs: []string{"1 writes changed " + monitored},
		},
		{
			name: "a loop that rests", fill: churning(func(o *objects) { loop(o, 101, 131); loop(o, 139, 289) }), met: check.False, evidence: both,
			seen: "at most 8s apart (from 10:02:11)", detail: monitored,
		},
		{
			name: "a loop that stalls, as on a loaded machine", spec: `{"stalls":0.2}`, fill: churning(func(o *objects) { loop(o, 101, 131); loop(o, 139, 289) }), met: check.True,
			evidence: both, detail: monitored, seen: "at most 8s apart (from 10:02:11), 100 % of them only " + monitored + ", by fleet-agent-vulnerable (status); 5 % of the time lay in gaps beyond 5s",
			wanted: "at most 20 % of the time in gaps beyond 5s, at least 95 %",
		},
		{
			name: "a burst, and then nothing, is no stall", spec: `{"stalls":0.2}`, fill: churning(func(o *objects) { loop(o, 101, 155) }), met: check.False, evidence: both,
			detail: monitored, seen: "at most 20s apart", wanted: "at most 20 % of the time in gaps beyond 5s",
		},
		{
			name: "a loop that changes more", fill: churning(func(o *objects) {
				for s := 101.0; s < 289; s += 2 {
					o.say(s, churn.Modified, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(s, int(s)%4 == 1))
				}
			}),
			met: check.False, evidence: both, seen: "0 % of them only", detail: "status.ready: true -> false",
			differs: []string{"30 writes changed status.conditions[type=Monitored].lastUpdateTime, status.conditions[type=Ready].status, status.ready, by fleet-agent-vulnerable"},
		},
		{
			name: "somebody else's loop", fill: churning(func(o *objects) {
				for s := 101.0; s < 289; s += 2 {
					o.say(s, churn.Modified, bundles, "bundle", "kubectl", bundleStatus(s, false))
				}
			}),
			met: check.False, evidence: both, seen: "by kubectl (status)", detail: monitored, differs: []string{"30 writes changed " + monitored + ", by kubectl"},
		},
		{
			name: "writes to different objects are no loop", fill: churning(func(o *objects) {
				for i := range 60 {
					o.say(101+float64(i), churn.Added, bundles, fmt.Sprint("bundle-", i), "fleet-agent-"+arm, bundleStatus(0, false))
				}
			}),
			met: check.False, evidence: both, seen: "1 writes to ns/bundle-", differs: []string{"1 writes are ADDED, by fleet-agent-vulnerable"},
		},
		{
			name: "a gap in the window", fill: churning(func(o *objects) {
				loop(o, 101, 289)
				o.st.Gap(o.at(130), o.at(131), "bundledeployments had to be listed anew: too old resource version")
			}),
			met: check.Unknown, evidence: both, seen: "(gap 10:02:10.0 to 10:02:11.0: bundledeployments had to be listed anew",
		},
		{
			name: "a record that ends in the window", fill: func(tr *trial) {
				tr.phases()
				outside(tr).covers(0, 400)
				own := tr.objects(arm, bundles)
				loop(own, 101, 289)
				own.covers(0, 170)
			},
			met: check.Unknown, evidence: both, seen: "the record of objects does not cover 10:01:55.0 to 10:02:55.0",
		},
		{
			name: "a world that never stands still", fill: churning(func(o *objects) {
				loop(o, 101, 289)
				busy := o.objects(bundle.Shared, "deployments.apps")
				for s := 40.0; s < 290; s += 30 {
					busy.say(s, churn.Modified, "deployments.apps", "other", "kubectl", fmt.Sprintf(`{"n":%g}`, s))
				}
				busy.covers(0, 400)
			}),
			met: check.Unknown, evidence: []bundle.Kind{bundle.Objects, bundle.Objects, bundle.Objects}, seen: "the window never came: they stood still for at most 30s",
		},
		{
			name: "nobody followed the nodes", fill: func(tr *trial) {
				tr.phases()
				own := tr.objects(arm, bundles)
				loop(own, 101, 289)
				own.covers(0, 400)
			},
			met: check.Unknown, evidence: both[:1], seen: "the window never came: nobody followed nodes for vulnerable",
		},
		{name: "nobody followed the bundles", fill: func(tr *trial) { tr.phases(); outside(tr).covers(0, 400) }, met: check.Unknown, seen: "nobody followed " + bundles + " for vulnerable"},
		{name: "a missing file", fill: churning(nil), damage: remove(t, bundle.Objects), met: check.Unknown, seen: "is missing"},
		{
			name: "no object at all", fill: func(tr *trial) {
				tr.phases()
				outside(tr).covers(0, 400)
				tr.objects(arm, bundles).covers(0, 400)
			},
			met: check.Unknown, evidence: both, seen: "there was no " + bundles + " to be written",
		},
		{
			name: "a baseline without writes", scope: check.Scope{Arm: arm, Phase: check.Baseline}, fill: churning(func(o *objects) { loop(o, 101, 289) }),
			met: check.False, evidence: both, seen: "no quiet window fits into the baseline; in all of it 0 writes to one object, 0 a second",
		},
		{
			name: "a baseline with a loop", scope: check.Scope{Arm: arm, Phase: check.Baseline}, fill: churning(func(o *objects) { loop(o, 1, 289) }),
			met: check.Unknown, evidence: both, seen: "10 writes to one object, 0.5 a second",
		},
		{
			name: "a baseline that is too short", scope: check.Scope{Arm: arm, Phase: check.Baseline, After: 12 * time.Second}, fill: churning(nil),
			met: check.Unknown, evidence: both, seen: "it lasted 8s only",
		},
		{
			name: "a baseline that nobody watched", scope: check.Scope{Arm: arm, Phase: check.Baseline}, fill: churning(func(o *objects) { o.st.Gap(o.at(25), o.at(30), "refused") }),
			met: check.Unknown, evidence: both, seen: "(gap 10:00:25.0 to 10:00:30.0: refused)",
		},
	}, func(q *question) {
		q.kind, q.spec = "churn", over(t, spec, q.spec)
		if q.scope.Phase == "" {
			q.scope = check.Scope{Arm: arm, Phase: check.Fault}
		}
		if q.wanted == "" {
			q.wanted = "at least 0.3 writes a second to one of " + bundles + " in a window of 60s after 15s of standstill, no gap over 5s, at least 95 % of them only " + monitored + " by fleet-agent-vulnerable"
		}
	})
}

func TestNoChurn(t *testing.T) {
	both := []bundle.Kind{bundle.Objects, bundle.Objects}
	run(t, []question{
		{name: "silence", fill: churning(nil), met: check.True, evidence: both, seen: "0 writes to 1 objects in 10:01:55.0 to 10:02:55.0"},
		{name: "silence but for the time before", fill: churning(func(o *objects) { loop(o, 85, 113) }), met: check.True, evidence: both, seen: "0 writes to 1 objects"},
		{
			name: "one write a minute", fill: churning(func(o *objects) { loop(o, 120, 120); loop(o, 180, 180) }), met: check.False, evidence: both,
			seen: "1 writes to 1 objects", differs: []string{"1 writes changed"}, detail: monitored,
		},
		{
			name: "a deletion", fill: churning(func(o *objects) { o.say(120, churn.Deleted, bundles, "bundle", "kubectl", `{}`) }), met: check.False, evidence: both,
			seen: "1 writes to 1 objects", differs: []string{"1 writes are DELETED, by kubectl"},
		},
		{name: "nobody could have written", fill: churning(func(o *objects) { o.say(50, churn.Deleted, bundles, "bundle", "kubectl", `{}`) }), met: check.Unknown, evidence: both, seen: "there was no " + bundles},
		{name: "a gap", fill: churning(func(o *objects) { o.st.Gap(o.at(174), o.at(176), "refused") }), met: check.Unknown, evidence: both, seen: "refused"},
	}, func(q *question) {
		q.kind, q.scope = "churn", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec, q.wanted = `{"resource":"`+bundles+`","none":true,"window":{"terminating":1}}`, "no write to "+bundles+" in a window of 60s after 15s of standstill"
	})
}

// A slow writer's writes fall between the windows in which the world stands still, but not between the ends of a phase.
func TestNoVainWrite(t *testing.T) {
	one, both := []bundle.Kind{bundle.Objects}, []bundle.Kind{bundle.Objects, bundle.Objects}
	stamps := func(o *objects, at ...float64) {
		for _, s := range at {
			o.say(s, churn.Modified, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(s, false))
		}
	}
	real := func(o *objects) { stamps(o, 90) } // ready turns false
	renews := func(at ...float64) func(*objects) {
		return func(o *objects) {
			for _, s := range at {
				o.say(s, churn.Modified, bundles, "bundle", "fleet-agent-"+arm, fmt.Sprintf(
					`{"ready":false,"conditions":[{"type":"Ready","status":"false","message":"not ready for %.0fs"},{"type":"Monitored","lastUpdateTime":"%.1f"}]}`, s, s))
			}
		}
	}
	run(t, []question{
		{name: "silence", fill: churning(nil), met: check.True, evidence: one, seen: "0 of 0 writes in 10:00:40.0 to 10:04:50.0 changed nothing else"},
		{name: "writes that say something", fill: churning(real), met: check.True, evidence: both, seen: "0 of 1 writes in 10:00:40.0 to 10:04:50.0 changed nothing else"},
		{
			name: "a write every two minutes that changes a message, too", met: check.False, evidence: both, fill: churning(renews(90, 210)), detail: "[type=Ready].message",
			seen:    "0 of 2 writes in 10:00:40.0 to 10:04:50.0 changed nothing else, and 1 more had no cause outside, the first at 10:03:30",
			differs: []string{"1 writes changed status.conditions[type=Monitored].lastUpdateTime, status.conditions[type=Ready].message, by fleet-agent-vulnerable"},
		},
		{name: "messages that follow the world, as on a loaded machine", met: check.True, evidence: both, fill: churning(renews(90, 110, 130, 144)), seen: "0 of 4 writes"},
		{name: "a shorter time to follow the world", spec: `{"within":"20s"}`, met: check.False, evidence: both, fill: churning(renews(90, 110, 130)), seen: "and 1 more had no cause outside", differs: []string{"1 writes"}, detail: "message",
			wanted: "in the 20s before"},
		{
			name: "its own change of the world is no cause", met: check.False, evidence: append(both, bundle.Objects), detail: "message", seen: "and 1 more had no cause outside", differs: []string{"1 writes"},
			fill: churning(func(o *objects) {
				renews(90, 210)(o)
				more := o.objects(bundle.Shared, "daemonsets.apps")
				more.say(209, churn.Modified, "daemonsets.apps", "agent", "fleet-agent-"+arm, `{"numberAvailable":1}`)
				more.covers(0, 400)
			}),
		},
		{name: "nobody knows whether it had a cause", met: check.Unknown, evidence: both, seen: "0 of 2 writes in 10:00:40.0 to 10:04:50.0 changed nothing else; the record of objects does not cover", fill: func(tr *trial) {
			tr.phases()
			world := outside(tr)
			world.st.Gap(world.at(180), world.at(190), "had to be listed anew")
			world.covers(0, 400)
			own := tr.objects(arm, bundles)
			own.say(0, churn.Listed, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(0, true))
			renews(90, 210)(own)
			own.covers(0, 400)
		}},
		{
			name: "a write every 100 s, none in the quiet window", fill: churning(func(o *objects) { stamps(o, 85, 185, 285) }), met: check.False, evidence: both,
			seen: "2 of 3 writes in 10:00:40.0 to 10:04:50.0 changed nothing else, the first at 10:03:05", differs: []string{"2 writes changed " + monitored + ", by fleet-agent-vulnerable"},
			detail: monitored,
		},
		{
			name: "a write that changes only an annotation", met: check.False, evidence: both, seen: "1 of 2 writes", differs: []string{"1 writes changed metadata.annotations"}, detail: "metadata.annotations: nothing -> ",
			fill: churning(func(o *objects) {
				for i, a := range []string{"", `"annotations":{"round":"7"},`} {
					o.must(o.st.Append(churn.Version{Time: o.at(110 + float64(i)), Type: churn.Modified, Resource: bundles, Namespace: "ns", Name: "bundle", UID: "uid-bundle",
						Object: []byte(`{"metadata":{` + a + `"name":"bundle"},"status":` + bundleStatus(0, false) + `}`)}))
				}
			}),
		},
		{name: "a slow writer before and after the phase", fill: churning(func(o *objects) { stamps(o, 10, 20, 292, 300) }), met: check.True, evidence: one, seen: "0 of 0 writes"},
		{
			name: "a gap in the phase, far from any quiet window", met: check.Unknown, evidence: both, seen: "0 of 1 writes in 10:00:40.0 to 10:04:50.0 changed nothing else; the record of objects does not cover",
			fill: churning(func(o *objects) { real(o); o.st.Gap(o.at(280), o.at(281), "had to be listed anew") }),
		},
		{
			name: "a gap beside what was seen", met: check.False, evidence: both, seen: "1 of 2 writes", differs: []string{monitored}, detail: monitored,
			fill: churning(func(o *objects) { stamps(o, 90, 200); o.st.Gap(o.at(280), o.at(281), "had to be listed anew") }),
		},
		{name: "a record that ends before the phase", met: check.Unknown, evidence: one, seen: "does not cover", fill: func(tr *trial) {
			tr.phases()
			own := tr.objects(arm, bundles)
			own.say(0, churn.Listed, bundles, "bundle", "fleet-agent-"+arm, bundleStatus(0, true))
			own.covers(0, 280)
		}},
		{name: "nobody could have written", met: check.Unknown, evidence: one, seen: "there was no " + bundles, fill: func(tr *trial) {
			tr.phases()
			tr.objects(arm, bundles).covers(0, 400)
		}},
		{name: "nobody watched", met: check.Unknown, seen: "nobody followed " + bundles, fill: func(tr *trial) { tr.phases() }},
		{name: "a missing file", fill: churning(nil), damage: remove(t, bundle.Objects), met: check.Unknown, seen: "is missing"},
	}, func(q *question) {
		q.kind, q.scope = "churn", check.Scope{Arm: arm, Phase: check.Fault}
		q.spec = over(t, `{"resource":"`+bundles+`","noneOnly":["status.conditions[*].lastUpdateTime","metadata.annotations"]}`, q.spec)
		if q.wanted == "" {
			q.wanted = "in the whole phase no write to " + bundles + " that changed only status.conditions[*].lastUpdateTime, metadata.annotations, " +
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
		refused(t, "churn", spec, want)
	}
}
