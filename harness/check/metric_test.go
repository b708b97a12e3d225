package check_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

const (
	lastSeen = "kubelet_pleg_last_seen_seconds"
	relists  = "kubelet_pleg_relist_duration_seconds_count"
	discards = "kubelet_pleg_discard_events"
)

// over lays JSON fields over a spec.
func over(t *testing.T, base, fields string) string {
	t.Helper()
	out := map[string]any{}
	for _, s := range []string{base, fields} {
		if s == "" {
			continue
		}
		m := map[string]any{}
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		maps.Copy(out, m)
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// recorded is a trial with all phases and one stream of metrics for a cell.
func recorded(cell string, fill func(*trial, *bundle.Stream)) func(*trial) {
	return func(tr *trial) {
		tr.phases()
		fill(tr, tr.stream(bundle.MetricSamples, cell))
	}
}

// stale is a last-seen time that moves on until a moment, and then stands.
func (tr *trial) stale(st *bundle.Stream, from, to, stuck float64) {
	tr.series(st, lastSeen, from, to, func(s float64) float64 { return tr.since(min(s, stuck)) })
}

var oneStream = []bundle.Kind{bundle.MetricSamples}

func TestMetricAge(t *testing.T) {
	run(t, []question{
		{
			name: "older than the constant", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 50) }),
			met: check.Met, seen: "at most 3m58s old, at 10:04:48", evidence: oneStream,
		},
		{
			name: "just as old is not older", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 108) }),
			met: check.NotMet, seen: "at most 3m0s old", evidence: oneStream, differs: []string{"short of it by 0s"},
		},
		{
			name: "older during the lift only", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 110) }),
			met: check.NotMet, seen: "at most 2m58s old", evidence: oneStream, differs: []string{"short of it by 2s"},
		},
		{
			name: "a sample that was asked for before the phase is not of it",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.sample(st, lastSeen, 39.9, tr.since(-400), nil)
				tr.stale(st, 40, 394, 400)
			}),
			met: check.NotMet, seen: "at most 0s old", evidence: oneStream, differs: []string{"short of it by 3m0s"},
		},
		{
			name: "a sample that was answered after the phase is not of it",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.stale(st, 0, 288, 400)
				tr.sample(st, lastSeen, 289.95, tr.since(-400), nil)
				tr.stale(st, 290, 394, 400)
			}),
			met: check.NotMet, seen: "at most 0s old", evidence: oneStream, differs: []string{"short"},
		},
		{
			name: "a metric that was never set has no age", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, lastSeen, 0, 394, func(float64) float64 { return 0 })
			}),
			met: check.Unknown, seen: "no sample of kubelet_pleg_last_seen_seconds in 10:00:40.0 to 10:04:50.0", evidence: oneStream,
		},
		{
			name: "the other arm's age is not this one's", fill: recorded(other, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 50) }),
			met: check.Unknown, seen: "no metrics.samples was recorded for vulnerable",
		},
		{
			name: "young, with a gap in which it could have grown old", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.stale(st, 0, 394, 400)
				st.Gap(tr.at(100), tr.at(130), "connection refused")
			}),
			met: check.Unknown, seen: "does not cover 10:00:40.0 to 10:04:50.0 (covers 10:00:00.0 to 10:06:34.0) (gap 10:01:40.0 to 10:02:10.0: connection refused)", evidence: oneStream,
		},
		{
			name: "old is old, whatever the gap", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.stale(st, 0, 394, 50)
				st.Gap(tr.at(100), tr.at(130), "connection refused")
			}),
			met: check.Met, seen: "at most 3m58s old", evidence: oneStream,
		},
		{
			name: "a gap elsewhere is no matter", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.stale(st, 0, 394, 400)
				st.Gap(tr.at(300), tr.at(330), "connection refused")
			}),
			met: check.NotMet, seen: "at most 0s old", evidence: oneStream, differs: []string{"short"},
		},
		{
			name: "an endpoint that leaves the metric out for a while says nothing about it", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.stale(st, 0, 100, 400)
				tr.stale(st, 130, 394, 400)
			}),
			met: check.Unknown, seen: "there is no sample of kubelet_pleg_last_seen_seconds in 10:01:40.0 to 10:02:10.0", evidence: oneStream,
		},
		{
			name: "a collector that ended early", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 200, 400) }),
			met: check.Unknown, seen: "does not cover", evidence: oneStream,
		},
		{
			name: "a capture that failed", fill: func(tr *trial) { tr.phases(); tr.fail(bundle.MetricSamples, arm, 0, "no route to host") },
			met: check.Unknown, seen: "metrics.samples of vulnerable: the capture failed: no route to host",
		},
		{
			name: "a missing file", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 50) }), damage: remove(t, bundle.MetricSamples),
			met: check.Unknown, seen: "the file artifacts/00001-metrics.samples-vulnerable.jsonl is missing",
		},
		{
			name: "a damaged line", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 400); tr.must(st.Line([]byte("{}}"))) }),
			met: check.Unknown, seen: "reading artifacts/00001-metrics.samples-vulnerable.jsonl: line 199: invalid character", evidence: oneStream,
		},
		{
			name: "another metric", spec: `{"metric":"other_seconds"}`, wanted: "other_seconds older than 3m0s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 50) }),
			met:  check.Unknown, seen: "the metrics of vulnerable never showed other_seconds", evidence: oneStream,
		},
		{
			name: "a constant that nobody read", spec: `{"above":{"constant":"no"}}`, wanted: "older than", fill: func(tr *trial) { tr.phases() },
			met: check.Unknown, seen: "the constant no of vulnerable is not known",
		},
		{name: "an age above nothing", spec: `{"above":{"duration":"0s"}}`, wanted: "older", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "above is 0s (want above 0)"},
		{name: "a number of nanoseconds", spec: `{"above":{"number":180}}`, wanted: "older", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "above is a plain number (want a duration"},
		{name: "twice the constant", spec: `{"above":{"constant":"relistThreshold","times":2}}`, wanted: "older than 6m0s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.stale(st, 0, 394, 50) }),
			met:  check.NotMet, seen: "at most 3m58s", evidence: oneStream, differs: []string{"short of it by 2m2s"}},
	}, func(q *question) {
		q.kind, q.scope = "metricAge", check.Scope{Cell: arm, Phase: check.Fault}
		q.spec = over(t, `{"metric":"`+lastSeen+`","above":{"constant":"relistThreshold"}}`, q.spec)
		if q.wanted == "" {
			q.wanted = lastSeen + " older than 3m0s"
		}
	})
}

func TestMetricIncrease(t *testing.T) {
	grow := func(from float64) func(float64) float64 {
		return func(s float64) float64 { return max(0, s-from) }
	}
	run(t, []question{
		{
			name: "it grew", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }),
			met: check.Met, seen: "grew by 98, from 296 to 394 between 10:04:56.0 to 10:06:34.1", evidence: oneStream,
		},
		{
			name: "it stood", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, func(float64) float64 { return 7 }) }),
			met: check.NotMet, seen: "grew by 0, from 7 to 7", evidence: oneStream,
		},
		{
			name: "what it grew by during the fault and its lift doesn't count",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, func(s float64) float64 { return min(s, recoveryAt) })
			}),
			met: check.NotMet, seen: "grew by 0", evidence: oneStream,
		},
		{
			name: "not enough", fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(390)) }),
			met: check.NotMet, seen: "grew by 4,", evidence: oneStream,
		},
		{
			name: "a reset is unknown, also when it ends higher", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 330, func(float64) float64 { return 5 })
				tr.series(st, relists, 332, 394, func(s float64) float64 { return s - 332 })
			}),
			met: check.Unknown, seen: "fell from 5 to 0 at 10:05:32: it was reset", evidence: oneStream,
		},
		{
			name: "one sample", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.sample(st, relists, 300, 5, nil)
				st.Alive(tr.at(0))
				st.Alive(tr.at(400))
			}),
			met: check.Unknown, seen: "there is no sample of", evidence: oneStream,
		},
		{
			name: "half in the window at both ends", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.sample(st, relists, recoveryAt-0.05, 0, nil)
				tr.series(st, relists, recoveryAt+1, 394, func(float64) float64 { return 3 })
				tr.sample(st, relists, endAt-0.05, 50, nil)
			}),
			met: check.NotMet, seen: "grew by 0, from 3 to 3", evidence: oneStream,
		},
		{
			name: "not enough, with a gap in which the rest may lie", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, grow(391))
				st.Gap(tr.at(300), tr.at(315), "timeout")
			}),
			met: check.Unknown, seen: "timeout", evidence: oneStream,
		},
		{
			name: "labels add up to the component's total", fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.sample(st, relists, s, 1, map[string]string{"op": "a"})
					tr.sample(st, relists, s, s, map[string]string{"op": "b"})
				}
			}),
			met: check.Met, seen: "from 297 to 395", evidence: oneStream,
		},
		{
			name: "one label's samples", spec: `{"labels":{"op":"a"}}`, fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				for s := 0.0; s <= 394; s += 2 {
					tr.sample(st, relists, s, 1, map[string]string{"op": "a"})
					tr.sample(st, relists, s, s, map[string]string{"op": "b"})
				}
			}),
			met: check.NotMet, seen: "from 1 to 1", evidence: oneStream,
		},
		{
			name: "the tail only: it grew, and stopped", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 394, func(s float64) float64 { return min(s, 370) })
			}),
			met: check.NotMet, seen: "grew by 0", evidence: oneStream,
		},
		{
			name: "the tail only: it grows", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }),
			met:  check.Met, seen: "grew by 18, from 376 to 394", evidence: oneStream,
		},
		{
			name: "the tail only: two samples around one slow answer are no standstill", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 378, func(s float64) float64 { return min(s, 376) })
				tr.must(st.JSON(bundle.MetricSample{Time: tr.at(380), Done: tr.at(393), Name: relists, Value: 376}))
				st.Alive(tr.at(394))
			}),
			met: check.Unknown, seen: "grew by 0, from 376 to 376 between 10:06:16.0 to 10:06:33.0; its samples lie within 4s of the 20s", evidence: oneStream,
		},
		{
			name: "the tail only: what grew between two samples grew, however close they are", spec: `{"tail":"20s"}`, wanted: "in the last 20s",
			fill: recorded(arm, func(tr *trial, st *bundle.Stream) {
				tr.series(st, relists, 0, 380, func(s float64) float64 { return 2 * s })
				st.Alive(tr.at(394))
			}),
			met: check.Met, seen: "grew by 8, from 752 to 760", evidence: oneStream,
		},
		{name: "the other arm grew", fill: recorded(other, func(tr *trial, st *bundle.Stream) { tr.series(st, relists, 0, 394, grow(0)) }), met: check.Unknown, seen: "was recorded for vulnerable"},
		{name: "by nothing", spec: `{"by":{"number":0}}`, wanted: "grows", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "by.number is 0 (want above 0)"},
		{name: "by a duration", spec: `{"by":{"duration":"5s"}}`, wanted: "grows", fill: func(tr *trial) { tr.phases() }, met: check.Unknown, seen: "by is a duration (want a number"},
	}, func(q *question) {
		q.kind, q.scope = "metricIncrease", check.Scope{Cell: arm, Phase: check.Recovery}
		q.spec = over(t, `{"metric":"`+relists+`","by":{"number":5}}`, q.spec)
		if q.wanted == "" {
			q.wanted = relists + " grows by at least 5"
		}
	})
}
