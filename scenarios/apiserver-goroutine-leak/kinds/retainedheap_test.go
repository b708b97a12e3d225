package kinds_test

import (
	"bytes"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

func TestRetainedHeap(t *testing.T) {
	one, two := checktest.Times(1, bundle.Heap), checktest.Times(2, bundle.Heap)
	const back = `{"atLeast":"","overBaseline":"4Mi"}`
	const allBack = `{"func":"","atLeast":"","overBaseline":"4Mi"}`
	checktest.Run(t, []checktest.Question{
		{
			Name: "retained", Fill: checktest.Heaps(checktest.Arm, 300, 24, 360, 25), Met: check.True, Evidence: two,
			Seen: "2 profiles with 24.0 MiB to 25.0 MiB, the last 1m5s after recovery began", Wanted: "at least 16Mi retained below registry.(*Store).DeleteCollection in every one of at least 2",
			Detail: "25.0 MiB in 250 objects, of which 25.0 MiB were allocated in\n\tjson.Unmarshal\n\tk8s.io/apiserver/pkg/storage/etcd3.(*store).GetList",
		},
		{Name: "just enough", Fill: checktest.Heaps(checktest.Arm, 300, 16, 360, 16), Met: check.True, Seen: "16.0 MiB to 16.0 MiB", Evidence: two, Detail: "16.0 MiB"},
		{Name: "what else is in use doesn't count", Fill: checktest.Heaps(checktest.Arm, 300, 0, 360, 0), Met: check.False, Seen: "0.0 MiB to 0.0 MiB", Evidence: two},
		{Name: "it went away", Fill: checktest.Heaps(checktest.Arm, 300, 24, 360, 2), Met: check.False, Seen: "2.0 MiB to 24.0 MiB", Evidence: two, Detail: "24.0 MiB"},
		{Name: "one is too few for a yes", Fill: checktest.Heaps(checktest.Arm, 360, 24), Met: check.Unknown, Code: check.TooFew, Seen: "too few to answer by", Evidence: one, Detail: "24.0 MiB"},
		{Name: "one is enough for a no", Fill: checktest.Heaps(checktest.Arm, 300, 2), Met: check.False, Seen: "1 profiles with 2.0 MiB to 2.0 MiB", Evidence: one},
		{Name: "the last is too early", Fill: checktest.Heaps(checktest.Arm, 300, 24, 354, 24), Met: check.Unknown, Seen: "the last 59s after recovery began: too few", Evidence: two, Detail: "24.0 MiB"},
		{
			Name: "a capture that failed is none", Fill: checktest.Heaps(checktest.Arm, 300, 24, 330, -1, 360, 24), Met: check.True, Seen: "2 profiles", Evidence: two, Detail: "24.0 MiB",
			Differs: []string{"the profile of 10:05:30 failed: connection refused"},
		},
		{Name: "nothing was taken", Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.TooFew, Seen: "0 profiles: too few to answer by"},
		{Name: "those of the fault don't count", Fill: checktest.Heaps(checktest.Arm, 200, 24, 280, 24), Met: check.Unknown, Seen: "0 profiles"},
		{Name: "the other arm's", Fill: checktest.Heaps(checktest.Other, 300, 24, 360, 24), Met: check.Unknown, Seen: "0 profiles"},
		{Name: "missing files", Fill: checktest.Heaps(checktest.Arm, 300, 24, 360, 24), Damage: checktest.Remove(t, bundle.Heap), Met: check.Unknown, Seen: "0 profiles; the file artifacts/"},
		{
			Name: "another profile", Met: check.Unknown, Seen: "reading artifacts/00001-heap-vulnerable.pb.gz: reading heap profile:",
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				_, err := tr.W.Write(bundle.Meta{Kind: bundle.Heap, Arm: checktest.Arm, Time: tr.At(300)}, "pb.gz", bytes.NewReader([]byte("Unauthorized\n")))
				tr.Must(err)
			},
		},
		{
			Name: "a restart took it away", Met: check.Unknown, Code: check.OtherProcess, Seen: "the process was not the same any more at 10:04:10", Evidence: two,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 248), 400, 250, 394)
				tr.Heap(checktest.Arm, 300, 0)
				tr.Heap(checktest.Arm, 360, 0)
			},
		},
		{Name: "little enough", Spec: `{"atLeast":"","below":"16Mi"}`, Wanted: "below 16Mi retained", Fill: checktest.Heaps(checktest.Arm, 300, 2, 360, 2), Met: check.True, Seen: "2.0 MiB", Evidence: two},
		{Name: "not little enough", Spec: `{"atLeast":"","below":"16Mi"}`, Wanted: "below", Fill: checktest.Heaps(checktest.Arm, 300, 16), Met: check.False, Seen: "16.0 MiB", Evidence: one, Detail: "16.0 MiB"},
		{
			Name: "little, after a restart", Spec: `{"atLeast":"","below":"16Mi"}`, Wanted: "below", Met: check.Unknown, Code: check.OtherProcess, Seen: "was not the same any more", Evidence: two,
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 308), 400, 310, 394)
				tr.Heap(checktest.Arm, 320, 0)
				tr.Heap(checktest.Arm, 360, 0)
			},
		},
		{Name: "two limits", Spec: `{"below":"1Mi"}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "want one of atLeast, below and overBaseline"},
		{Name: "no bytes", Spec: `{"atLeast":"16 MB"}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: `atLeast is "16 MB" (want bytes with a suffix: 16Mi)`},
		{Name: "less than nothing", Spec: `{"atLeast":"0"}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "atLeast is 0 (want above 0)"},
		{Name: "no function", Spec: `{"func":""}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: "func is empty"},
		{Name: "no profile at all", Spec: `{"snapshots":0}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Seen: "snapshots is 0"},
		{
			Name: "back at the baseline's", Spec: back, Wanted: "less than 4Mi more retained below registry.(*Store).DeleteCollection in each of the last 2 heap profiles than in the baseline, the last at least 60s into",
			Fill: checktest.Heaps(checktest.Arm, 22, 1, 35, 3, 300, 60, 330, 9, 360, 6), Met: check.True, Evidence: checktest.Times(5, bundle.Heap),
			Seen:   "3 profiles with 6.0 MiB to 60.0 MiB, the last 1m5s after recovery began; each of the last 2 has 3.0 MiB more than the 2 of the baseline",
			Detail: "3.0 MiB more",
		},
		{
			Name: "lists that are kept in a global", Spec: back, Wanted: "less than 4Mi", Fill: checktest.Heaps(checktest.Arm, 22, 1, 35, 3, 300, 60, 330, 8, 360, 7), Met: check.False, Evidence: checktest.Times(5, bundle.Heap),
			Seen: "each of the last 2 has 4.0 MiB more than the 2 of the baseline", Detail: "4.0 MiB more, of which 4.0 MiB were allocated in\n\tjson.Unmarshal",
		},
		{
			Name: "all of the heap", Spec: allBack, Wanted: "less than 4Mi more retained in all in each of the last 2", Fill: checktest.Heaps(checktest.Arm, 35, 3, 330, 8, 360, 7), Met: check.False,
			Evidence: checktest.Times(3, bundle.Heap), Seen: "each of the last 2 has 4.0 MiB more than the 1 of the baseline", Detail: "4.0 MiB more",
		},
		{Name: "all of the heap is back", Spec: allBack, Wanted: "in all", Fill: checktest.Heaps(checktest.Arm, 35, 3, 330, 8, 360, 6), Met: check.True, Evidence: checktest.Times(3, bundle.Heap), Seen: "has 3.0 MiB more", Detail: "3.0 MiB more"},
		{Name: "one sample more", Spec: allBack, Wanted: "in all", Fill: checktest.Heaps(checktest.Arm, 35, 3, 330, 3, 360, 3), Met: check.True, Evidence: checktest.Times(3, bundle.Heap), Seen: "has 0.0 MiB more"},
		{
			Name: "what is excepted", Spec: `{"func":"","atLeast":"","overBaseline":"4Mi","except":["etcd3.(*store).GetList"]}`, Met: check.True, Evidence: checktest.Times(3, bundle.Heap),
			Wanted: "than in the baseline, but for what is below etcd3.(*store).GetList", Fill: checktest.Heaps(checktest.Arm, 35, 3, 330, 80, 360, 70), Seen: "has 0.0 MiB more",
		},
		{Name: "an empty exception", Spec: `{"atLeast":"","overBaseline":"4Mi","except":[""]}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Seen: `except is [""]`},
		{Name: "an exception from a limit", Spec: `{"except":["f"]}`, Fill: checktest.Heaps(checktest.Arm), Met: check.Unknown, Code: check.BadCheck, Seen: `except is ["f"] (want names, none of them empty, and overBaseline with them)`},
		{
			Name: "a profile of the baseline failed, and what grew may be in it", Spec: back, Wanted: "4Mi", Fill: checktest.Heaps(checktest.Arm, 22, 3, 35, -1, 330, 8, 360, 8), Met: check.Unknown,
			Evidence: checktest.Times(3, bundle.Heap), Seen: "has 5.0 MiB more than the 1 of the baseline; a profile of the baseline is missing", Detail: "5.0 MiB more", Differs: []string{"the profile of 10:00:35 failed"},
		},
		{Name: "no profile of the baseline", Spec: back, Wanted: "4Mi", Fill: checktest.Heaps(checktest.Arm, 330, 3, 360, 3), Met: check.Unknown, Evidence: two, Seen: "there is none of the baseline to compare with"},
		{
			Name: "the baseline's profile failed", Spec: back, Wanted: "4Mi", Fill: checktest.Heaps(checktest.Arm, 35, -1, 330, 3, 360, 3), Met: check.Unknown, Evidence: two, Seen: "there is none of the baseline",
			Differs: []string{"the profile of 10:00:35 failed"},
		},
		{
			Name: "the baseline's profile is gone", Spec: back, Wanted: "4Mi", Fill: checktest.Heaps(checktest.Arm, 35, 3, 330, 3, 360, 3), Damage: checktest.RemoveFirst(bundle.Heap), Met: check.Unknown, Evidence: two,
			Seen: "is missing",
		},
		{Name: "too early to be back", Spec: back, Wanted: "4Mi", Fill: checktest.Heaps(checktest.Arm, 35, 3, 300, 3, 330, 3), Met: check.Unknown, Evidence: checktest.Times(3, bundle.Heap), Seen: "the last 35s after recovery began: too few"},
		{
			Name: "back because it is another process", Spec: back, Wanted: "4Mi", Met: check.Unknown, Code: check.OtherProcess, Seen: "was not the same any more", Evidence: checktest.Times(3, bundle.Heap),
			Fill: func(tr *checktest.Trial) {
				tr.Phases()
				tr.LookAt(tr.Process(checktest.Arm, 312, 0, 248), 400, 250, 394)
				tr.Heap(checktest.Arm, 35, 0)
				tr.Heap(checktest.Arm, 330, 0)
				tr.Heap(checktest.Arm, 360, 0)
			},
		},
	}, func(q *checktest.Question) {
		q.Kind, q.Scope = "retainedHeap", check.Scope{Arm: checktest.Arm, Phase: check.Recovery}
		q.Spec = checktest.Over(t, `{"func":"registry.(*Store).DeleteCollection","atLeast":"16Mi","snapshots":2,"lastAfter":"60s"}`, q.Spec)
	})
}
