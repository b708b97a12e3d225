package goroutines_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// back completes a question of the recovery that says neither a spec nor what is wanted.
func back(kind, wanted string) func(*checktest.Question) {
	return func(q *checktest.Question) {
		q.Kind, q.Scope = kind, check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec, q.Wanted = cmp.Or(q.Spec, "{}"), cmp.Or(q.Wanted, wanted)
	}
}

// What the incident left behind is found in whichever function it is, without a word of the incident.
func TestGoroutinesBack(t *testing.T) {
	const feed, watch, lock = "registry.feed", "handlers.(*WatchServer).HandleWS", "cache.(*store).Get"
	// shots has the same others in the baseline, and the same in each of three late dumps.
	shots := func(was, is []checktest.SameStack) []checktest.Shot {
		return []checktest.Shot{{Second: 22, Others: was}, {Second: 35}, {Second: 340, Others: is}, {Second: 360, Others: is}, {Second: 380, Others: is}}
	}
	watchers := func(n, first int) checktest.SameStack {
		return checktest.SameStack{N: n, In: watch, State: "select", First: first}
	}
	sending := func(n, first int) []checktest.SameStack {
		return []checktest.SameStack{{N: n, In: feed, State: "chan send", First: first}}
	}
	// heldThrough has others in each of the baseline's two dumps, and the same in each of three late ones.
	heldThrough := func(first, second, late []checktest.SameStack) []checktest.Shot {
		out := shots(first, late)
		out[1].Others = second
		return out
	}
	few := []checktest.SameStack{watchers(10, 200)}
	five := checktest.Times(5, bundle.Goroutines2)
	checktest.Run(t, []checktest.Question{
		{
			Name: "as many as before, all of them new", Met: check.True, Fill: checktest.Apiserver(checktest.Arm, nil, shots(few, []checktest.SameStack{watchers(10, 900)})...), Evidence: five,
			Seen: "3 dumps, and 2 of the baseline; 0 more wait to send or for a lock", Wanted: "in each of the last 3 dumps fewer than 3 goroutines more",
		},
		{
			Name: "some more watches of clients", Met: check.True, Fill: checktest.Apiserver(checktest.Arm, nil, shots(few, []checktest.SameStack{watchers(17, 900)})...), Evidence: five,
			Seen: watch + " (created by " + checktest.DeleteCollection + ") grew most, by 7",
		},
		{
			Name: "a group that is much larger", Met: check.False, Detail: watch, Fill: checktest.Apiserver(checktest.Arm, nil, shots(few, []checktest.SameStack{watchers(18, 900)})...),
			Seen: "grew most, by 8: too many, 8 of them in " + watch, Evidence: five,
		},
		{
			Name: "as much more of a large group", Met: check.True, Fill: checktest.Apiserver(checktest.Arm, nil, shots([]checktest.SameStack{watchers(100, 200)}, []checktest.SameStack{watchers(124, 900)})...),
			Seen: "grew most, by 24", Evidence: five,
		},
		{
			Name: "they take turns, and are more each time", Met: check.False, Detail: feed, Seen: "too many, 9 of them in " + feed, Evidence: five,
			Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, checktest.Shot{Second: 340, Others: []checktest.SameStack{{N: 9, In: feed, State: "chan receive", First: 500}}},
				checktest.Shot{Second: 360, Others: []checktest.SameStack{{N: 9, In: feed, State: "select", First: 600}}}, checktest.Shot{Second: 380, Others: []checktest.SameStack{{N: 9, In: feed, State: "IO wait", First: 700}}}),
		},
		{
			Name: "they were there in one dump, and went", Met: check.True, Evidence: five, Seen: "3 dumps",
			Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, checktest.Shot{Second: 340}, checktest.Shot{Second: 360, Others: []checktest.SameStack{{N: 30, In: feed, State: "select", First: 600}}}, checktest.Shot{Second: 380}),
		},
		{
			Name: "three wait for a lock", Met: check.False, Detail: lock, Fill: checktest.Apiserver(checktest.Arm, nil, shots(nil, []checktest.SameStack{{N: 3, In: lock, State: "sync.Mutex.Lock", First: 500}})...),
			Seen: "3 more wait to send or for a lock: too many, 3 of them in " + lock, Evidence: five,
		},
		{
			Name: "two wait to send", Met: check.True, Fill: checktest.Apiserver(checktest.Arm, nil, shots(nil, []checktest.SameStack{{N: 2, In: feed, State: "chan send", First: 500}})...),
			Seen: "2 more wait to send or for a lock", Evidence: five,
		},
		{
			Name: "as many waited to send through the baseline", Met: check.True, Seen: "0 more wait to send", Evidence: five,
			Fill: checktest.Apiserver(checktest.Arm, nil, heldThrough(sending(6, 200), sending(6, 200), sending(6, 500))...),
		},
		{
			Name: "as many waited in one dump of the baseline, and went", Met: check.False, Detail: feed, Evidence: five,
			Seen: "6 more wait to send or for a lock: too many, 6 of them in " + feed,
			Fill: checktest.Apiserver(checktest.Arm, nil, heldThrough(sending(6, 200), nil, sending(6, 500))...),
		},
		{
			Name: "others waited in each dump of the baseline", Met: check.False, Detail: feed, Evidence: five,
			Seen: "6 more wait to send or for a lock: too many, 6 of them in " + feed,
			Fill: checktest.Apiserver(checktest.Arm, nil, heldThrough(sending(6, 200), sending(6, 300), sending(6, 500))...),
		},
		{
			Name: "others wait to send each time: they are at work", Met: check.True, Evidence: five, Seen: "0 more wait to send",
			Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 22}, checktest.Shot{Second: 35}, checktest.Shot{Second: 340, Others: []checktest.SameStack{{N: 4, In: feed, State: "chan send", First: 500}}},
				checktest.Shot{Second: 360, Others: []checktest.SameStack{{N: 4, In: feed, State: "chan send", First: 600}}}, checktest.Shot{Second: 380, Others: []checktest.SameStack{{N: 4, In: feed, State: "chan send", First: 700}}}),
		},
		{
			Name: "no dump of the baseline", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 340}, checktest.Shot{Second: 360}, checktest.Shot{Second: 380}), Met: check.Unknown,
			Seen: "3 dumps, and 0 of the baseline: nothing to compare with", Evidence: five[:3],
		},
		{
			Name: "a dump of the baseline failed, and may have shown as many", Met: check.Unknown, Evidence: five[:4], Detail: watch,
			Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 22}, checktest.Shot{Second: 35, Lacks: "2"}, checktest.Shot{Second: 340, Others: few}, checktest.Shot{Second: 360, Others: few}, checktest.Shot{Second: 380, Others: few}),
			Seen: "too many, 10 of them in " + watch + " (created by " + checktest.DeleteCollection + "); one of the baseline is missing", Differs: []string{"the dump of 10:00:35 failed"},
		},
		{
			Name: "too few", Fill: checktest.Apiserver(checktest.Arm, nil, checktest.Shot{Second: 22}, checktest.Shot{Second: 360}, checktest.Shot{Second: 380}), Met: check.Unknown,
			Seen: "2 dumps, and 1 of the baseline, the last 1m25s after recovery began: too few to answer by", Evidence: five[:3],
		},
		{
			Name: "a dump is gone", Met: check.Unknown, Code: check.Unreadable, Seen: "is missing", Evidence: five[:4], Damage: checktest.RemoveFirst(bundle.Goroutines2),
			Fill: checktest.Apiserver(checktest.Arm, nil, shots(few, few)...),
		},
		{
			Name: "a restart takes away what was left", Met: check.Unknown, Code: check.OtherProcess, Seen: "was not the same any more at 10:02:00", Evidence: five,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 118), 999, 120, 394)
				tr.Shoot(checktest.Arm, shots(few, few)...)
			},
		},
		{Name: "one dump", Spec: `{"dumps":1}`, Fill: checktest.Apiserver(checktest.Arm, nil), Met: check.Unknown, Code: check.BadCheck, Seen: "dumps is 1 (want at least 2"},
	}, back("goroutinesBack", "fewer than 3 goroutines more than in the baseline that wait to send or for a lock"))
}

func TestHeapBack(t *testing.T) {
	three := checktest.Times(3, bundle.Heap)
	checktest.Run(t, []checktest.Question{
		{
			Name: "as before", Fill: checktest.Heaps(checktest.Arm, 25, 1, 350, 2, 370, 1), Met: check.True, Evidence: three, Wanted: "in each of the last 2 heap profiles less than 8.0 MiB more",
			Seen: "2 profiles, and 1 of the baseline; each of the last 2 has 0.0 MiB more than the baseline, which had up to 41.0 MiB",
		},
		{Name: "a little more", Fill: checktest.Heaps(checktest.Arm, 25, 1, 350, 9, 370, 9), Met: check.True, Seen: "8.0 MiB more", Evidence: three, Detail: "8.0 MiB more, of which 8.0 MiB"},
		{
			Name: "more than a quarter of it", Fill: checktest.Heaps(checktest.Arm, 25, 0, 350, 12, 370, 10), Met: check.False, Seen: "10.0 MiB more", Evidence: three,
			Detail: "10.0 MiB more, of which 10.0 MiB were allocated in\n\tjson.Unmarshal",
		},
		{Name: "it went away", Fill: checktest.Heaps(checktest.Arm, 25, 0, 350, 80, 370, 1), Met: check.True, Seen: "1.0 MiB more", Evidence: three, Detail: "1.0 MiB more"},
		{
			Name: "a profile of the baseline failed", Fill: checktest.Heaps(checktest.Arm, 25, 0, 30, -1, 350, 80, 370, 80), Met: check.Unknown, Evidence: three, Detail: "80.0 MiB more",
			Seen: "one of the baseline is missing", Differs: []string{"the profile of 10:00:30 failed"},
		},
		{Name: "no profile of the baseline", Fill: checktest.Heaps(checktest.Arm, 350, 0, 370, 0), Met: check.Unknown, Code: check.TooFew, Seen: "nothing to compare with", Evidence: three[:2]},
		{Name: "one profile", Fill: checktest.Heaps(checktest.Arm, 25, 0, 370, 0), Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: three[:2]},
		{Name: "an answer by one", Spec: `{"profiles":1}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "profiles is 1 (want at least 2"},
	}, back("heapBack", "more than in the baseline"))
}

func TestCPUBack(t *testing.T) {
	all := []bundle.Kind{bundle.Identity, bundle.Host}
	// using is a process that uses so many CPUs in the baseline and so many from second 320 on.
	using := func(tasks int, before, after float64) func(*checktest.Trial) {
		return checktest.OnHost(tasks, max(0, 2-after-0.05*float64(tasks)), checktest.LooksOf(before, before, func(s *bundle.IdentitySample, at float64) {
			s.Limits = new(checktest.Free(at))
			if at > 320 {
				s.CPUSeconds += (at - 320) * (after - before)
			}
		}))
	}
	// dumped adds three late dumps; in those with a 1 a certain goroutine is at work.
	dumped := func(fill func(*checktest.Trial), works ...int) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			fill(tr)
			for i, n := range works {
				tr.Shoot(checktest.Arm, checktest.Shot{Second: 340 + 20*float64(i), Lacks: "1", Others: []checktest.SameStack{{N: n, In: "main.spin", State: "runnable", First: 77}}})
			}
		}
	}
	checktest.Run(t, []checktest.Question{
		{
			Name: "as before", Fill: using(3, 0.05, 0.06), Met: check.True, Evidence: all, Wanted: "in the last 20s no more than a tenth of a CPU above twice",
			Seen: "0.06 CPUs in 10:06:16.0 to 10:06:34.0, where the baseline had 0.05 and less than 0.2 is asked for",
		},
		{Name: "a loop", Fill: using(3, 0.05, 0.95), Met: check.False, Seen: "0.95 CPUs", Evidence: all[:1]},
		{Name: "a loop beside a busy baseline", Fill: using(3, 0.6, 1.5), Met: check.False, Seen: "less than 1.1 is asked for", Evidence: all[:1]},
		{Name: "busy as before", Fill: using(3, 0.6, 0.7), Met: check.True, Seen: "0.7 CPUs", Evidence: all},
		{Name: "a loop that got little", Fill: using(84, 0.01, 0.05), Met: check.Unknown, Code: check.Starved, Seen: "with 84 tasks for 2 cores", Evidence: all},
		{Name: "little, where a loop might have got as little, and no dump shows that there is none", Fill: using(40, 0.01, 0.02), Met: check.Unknown, Code: check.Starved, Seen: "with 40 tasks for 2 cores", Evidence: all},
		{Name: "little, and no goroutine is at work each time", Fill: dumped(using(40, 0.01, 0.02), 1, 0, 1), Met: check.True, Seen: "0.02 CPUs",
			Evidence: append(slices.Clone(all[:1]), bundle.Goroutines2, bundle.Goroutines2, bundle.Goroutines2, bundle.Host)},
		{Name: "little, and one is at work each time, as a loop that starves", Fill: dumped(using(40, 0.01, 0.02), 1, 1, 1), Met: check.Unknown, Code: check.Starved, Seen: "with 40 tasks for 2 cores", Evidence: all},
		{
			Name: "little, and nobody knows what was at work since", Met: check.Unknown, Code: check.Starved, Seen: "with 40 tasks for 2 cores", Evidence: all,
			Fill: checktest.Both(dumped(using(40, 0.01, 0.02), 1, 0, 1), func(tr *checktest.Trial) { tr.Fail(bundle.Goroutines2, checktest.Arm, 390, "connection refused") }),
		},
		{Name: "too short", Spec: `{"for":"5s"}`, Fill: using(3, 0.05, 0.06), Met: check.Unknown, Code: check.BadCheck, Seen: "for is 5s (want at least 10s)"},
		{Name: "longer than the phase", Spec: `{"for":"2m"}`, Wanted: "in the last 2m", Fill: using(3, 0.05, 0.06), Met: check.Unknown, Seen: "recovery lasted for 1m40s only"},
	}, back("cpuBack", "the baseline's rate"))
}
