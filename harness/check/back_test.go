package check_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// back completes a question of the recovery that says neither a spec nor what is wanted.
func back(kind, wanted string) func(*question) {
	return func(q *question) {
		q.kind, q.scope = kind, check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec, q.wanted = cmp.Or(q.spec, "{}"), cmp.Or(q.wanted, wanted)
	}
}

// What the incident left behind is found in whichever function it is, without a word of the incident.
func TestGoroutinesBack(t *testing.T) {
	const feed, watch, lock = "registry.feed", "handlers.(*WatchServer).HandleWS", "cache.(*store).Get"
	// shots has the same others in the baseline, and the same in each of three late dumps.
	shots := func(was, is []sameStack) []shot {
		return []shot{{second: 22, others: was}, {second: 35}, {second: 340, others: is}, {second: 360, others: is}, {second: 380, others: is}}
	}
	watchers := func(n, first int) sameStack { return sameStack{n: n, in: watch, state: "select", first: first} }
	few := []sameStack{watchers(10, 200)}
	five := times(5, bundle.Goroutines2)
	run(t, []question{
		{
			name: "as many as before, all of them new", met: check.True, fill: apiserver(arm, nil, shots(few, []sameStack{watchers(10, 900)})...), evidence: five,
			seen: "3 dumps, and 2 of the baseline; 0 more wait to send or for a lock", wanted: "in each of the last 3 dumps fewer than 3 goroutines more",
		},
		{
			name: "some more watches of clients", met: check.True, fill: apiserver(arm, nil, shots(few, []sameStack{watchers(17, 900)})...), evidence: five,
			seen: watch + " (created by " + deleteCollection + ") grew most, by 7",
		},
		{
			name: "a group that is much larger", met: check.False, detail: watch, fill: apiserver(arm, nil, shots(few, []sameStack{watchers(18, 900)})...),
			seen: "grew most, by 8: too many, 8 of them in " + watch, evidence: five,
		},
		{
			name: "as much more of a large group", met: check.True, fill: apiserver(arm, nil, shots([]sameStack{watchers(100, 200)}, []sameStack{watchers(124, 900)})...),
			seen: "grew most, by 24", evidence: five,
		},
		{
			name: "they take turns, and are more each time", met: check.False, detail: feed, seen: "too many, 9 of them in " + feed, evidence: five,
			fill: apiserver(arm, nil, shot{second: 22}, shot{second: 35}, shot{second: 340, others: []sameStack{{n: 9, in: feed, state: "chan receive", first: 500}}},
				shot{second: 360, others: []sameStack{{n: 9, in: feed, state: "select", first: 600}}}, shot{second: 380, others: []sameStack{{n: 9, in: feed, state: "IO wait", first: 700}}}),
		},
		{
			name: "they were there in one dump, and went", met: check.True, evidence: five, seen: "3 dumps",
			fill: apiserver(arm, nil, shot{second: 22}, shot{second: 35}, shot{second: 340}, shot{second: 360, others: []sameStack{{n: 30, in: feed, state: "select", first: 600}}}, shot{second: 380}),
		},
		{
			name: "three wait for a lock", met: check.False, detail: lock, fill: apiserver(arm, nil, shots(nil, []sameStack{{n: 3, in: lock, state: "sync.Mutex.Lock", first: 500}})...),
			seen: "3 more wait to send or for a lock: too many, 3 of them in " + lock, evidence: five,
		},
		{
			name: "two wait to send", met: check.True, fill: apiserver(arm, nil, shots(nil, []sameStack{{n: 2, in: feed, state: "chan send", first: 500}})...),
			seen: "2 more wait to send or for a lock", evidence: five,
		},
		{
			name: "as many waited to send before", met: check.True, fill: apiserver(arm, nil, shots([]sameStack{{n: 6, in: feed, state: "chan send", first: 200}}, []sameStack{{n: 6, in: feed, state: "chan send", first: 500}})...),
			seen: "0 more wait to send", evidence: five,
		},
		{
			name: "others wait to send each time: they are at work", met: check.True, evidence: five, seen: "0 more wait to send",
			fill: apiserver(arm, nil, shot{second: 22}, shot{second: 35}, shot{second: 340, others: []sameStack{{n: 4, in: feed, state: "chan send", first: 500}}},
				shot{second: 360, others: []sameStack{{n: 4, in: feed, state: "chan send", first: 600}}}, shot{second: 380, others: []sameStack{{n: 4, in: feed, state: "chan send", first: 700}}}),
		},
		{
			name: "no dump of the baseline", fill: apiserver(arm, nil, shot{second: 340}, shot{second: 360}, shot{second: 380}), met: check.Unknown,
			seen: "3 dumps, and 0 of the baseline: nothing to compare with", evidence: five[:3],
		},
		{
			name: "a dump of the baseline failed, and may have shown as many", met: check.Unknown, evidence: five[:4], detail: watch,
			fill: apiserver(arm, nil, shot{second: 22}, shot{second: 35, lacks: "2"}, shot{second: 340, others: few}, shot{second: 360, others: few}, shot{second: 380, others: few}),
			seen: "too many, 10 of them in " + watch + " (created by " + deleteCollection + "); one of the baseline is missing", differs: []string{"the dump of 10:00:35 failed"},
		},
		{
			name: "too few", fill: apiserver(arm, nil, shot{second: 22}, shot{second: 360}, shot{second: 380}), met: check.Unknown,
			seen: "2 dumps, and 1 of the baseline, the last 1m25s after recovery began: too few to answer by", evidence: five[:3],
		},
		{
			name: "a dump is gone", met: check.Unknown, seen: "is missing", evidence: five[:4], damage: removeFirst(bundle.Goroutines2),
			fill: apiserver(arm, nil, shots(few, few)...),
		},
		{
			name: "a restart takes away what was left", met: check.Unknown, seen: "was not the same any more at 10:02:00", evidence: five,
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 118), 999, 120, 394)
				tr.shoot(arm, shots(few, few)...)
			},
		},
		{name: "one dump", spec: `{"dumps":1}`, fill: apiserver(arm, nil), met: check.Unknown, seen: "dumps is 1 (want at least 2"},
	}, back("goroutinesBack", "fewer than 3 goroutines more than in the baseline that wait to send or for a lock"))
}

func TestHeapBack(t *testing.T) {
	three := times(3, bundle.Heap)
	run(t, []question{
		{
			name: "as before", fill: heaps(arm, 25, 1, 350, 2, 370, 1), met: check.True, evidence: three, wanted: "in each of the last 2 heap profiles less than 8.0 MiB more",
			seen: "2 profiles, and 1 of the baseline; each of the last 2 has 0.0 MiB more than the baseline, which had up to 41.0 MiB",
		},
		{name: "a little more", fill: heaps(arm, 25, 1, 350, 9, 370, 9), met: check.True, seen: "8.0 MiB more", evidence: three, detail: "8.0 MiB more, of which 8.0 MiB"},
		{
			name: "more than a quarter of it", fill: heaps(arm, 25, 0, 350, 12, 370, 10), met: check.False, seen: "10.0 MiB more", evidence: three,
			detail: "10.0 MiB more, of which 10.0 MiB were allocated in\n\tjson.Unmarshal",
		},
		{name: "it went away", fill: heaps(arm, 25, 0, 350, 80, 370, 1), met: check.True, seen: "1.0 MiB more", evidence: three, detail: "1.0 MiB more"},
		{
			name: "a profile of the baseline failed", fill: heaps(arm, 25, 0, 30, -1, 350, 80, 370, 80), met: check.Unknown, evidence: three, detail: "80.0 MiB more",
			seen: "one of the baseline is missing", differs: []string{"the profile of 10:00:30 failed"},
		},
		{name: "no profile of the baseline", fill: heaps(arm, 350, 0, 370, 0), met: check.Unknown, seen: "nothing to compare with", evidence: three[:2]},
		{name: "one profile", fill: heaps(arm, 25, 0, 370, 0), met: check.Unknown, seen: "too few to answer by", evidence: three[:2]},
		{name: "an answer by one", spec: `{"profiles":1}`, fill: heaps(arm), met: check.Unknown, seen: "profiles is 1 (want at least 2"},
	}, back("heapBack", "more than in the baseline"))
}

func TestCPUBack(t *testing.T) {
	all := []bundle.Kind{bundle.Identity, bundle.Host}
	// using is a process that uses so many CPUs in the baseline and so many from second 320 on.
	using := func(tasks int, before, after float64) func(*trial) {
		return loaded(tasks, max(0, 2-after-0.05*float64(tasks)), looksOf(before, before, func(s *bundle.IdentitySample, at float64) {
			s.Limits = new(free(at))
			if at > 320 {
				s.CPUSeconds += (at - 320) * (after - before)
			}
		}))
	}
	// dumped adds three late dumps; in those with a 1 a certain goroutine is at work.
	dumped := func(fill func(*trial), works ...int) func(*trial) {
		return func(tr *trial) {
			fill(tr)
			for i, n := range works {
				tr.shoot(arm, shot{second: 340 + 20*float64(i), lacks: "1", others: []sameStack{{n: n, in: "main.spin", state: "runnable", first: 77}}})
			}
		}
	}
	run(t, []question{
		{
			name: "as before", fill: using(3, 0.05, 0.06), met: check.True, evidence: all, wanted: "in the last 20s no more than a tenth of a CPU above twice",
			seen: "0.06 CPUs in 10:06:16.0 to 10:06:34.0, where the baseline had 0.05 and less than 0.2 is asked for",
		},
		{name: "a loop", fill: using(3, 0.05, 0.95), met: check.False, seen: "0.95 CPUs", evidence: all[:1]},
		{name: "a loop beside a busy baseline", fill: using(3, 0.6, 1.5), met: check.False, seen: "less than 1.1 is asked for", evidence: all[:1]},
		{name: "busy as before", fill: using(3, 0.6, 0.7), met: check.True, seen: "0.7 CPUs", evidence: all},
		{name: "a loop that got little", fill: using(84, 0.01, 0.05), met: check.Unknown, seen: "with 84 tasks for 2 cores", evidence: all},
		{name: "little, where a loop might have got as little, and no dump shows that there is none", fill: using(40, 0.01, 0.02), met: check.Unknown, seen: "with 40 tasks for 2 cores", evidence: all},
		{name: "little, and no goroutine is at work each time", fill: dumped(using(40, 0.01, 0.02), 1, 0, 1), met: check.True, seen: "0.02 CPUs",
			evidence: append(slices.Clone(all[:1]), bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2, bundle.Host)},
		{name: "little, and one is at work each time, as a loop that starves", fill: dumped(using(40, 0.01, 0.02), 1, 1, 1), met: check.Unknown, seen: "with 40 tasks for 2 cores", evidence: all},
		{name: "too short", spec: `{"for":"5s"}`, fill: using(3, 0.05, 0.06), met: check.Unknown, seen: "for is 5s (want at least 10s)"},
		{name: "longer than the phase", spec: `{"for":"2m"}`, wanted: "in the last 2m", fill: using(3, 0.05, 0.06), met: check.Unknown, seen: "recovery lasted for 1m40s only"},
	}, back("cpuBack", "the baseline's rate"))
}
