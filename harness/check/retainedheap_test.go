package check_test

import (
	"bytes"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func TestRetainedHeap(t *testing.T) {
	one, two := times(1, bundle.Heap), times(2, bundle.Heap)
	const back = `{"atLeast":"","overBaseline":"4Mi"}`
	const allBack = `{"func":"","atLeast":"","overBaseline":"4Mi"}`
	run(t, []question{
		{
			name: "retained", fill: heaps(arm, 300, 24, 360, 25), met: check.True, evidence: two,
			seen: "2 profiles with 24.0 MiB to 25.0 MiB, the last 1m5s after recovery began", wanted: "at least 16Mi retained below registry.(*Store).DeleteCollection in every one of at least 2",
			detail: "25.0 MiB in 250 objects, of which 25.0 MiB were allocated in\n\tjson.Unmarshal\n\tk8s.io/apiserver/pkg/storage/etcd3.(*store).GetList",
		},
		{name: "just enough", fill: heaps(arm, 300, 16, 360, 16), met: check.True, seen: "16.0 MiB to 16.0 MiB", evidence: two, detail: "16.0 MiB"},
		{name: "what else is in use doesn't count", fill: heaps(arm, 300, 0, 360, 0), met: check.False, seen: "0.0 MiB to 0.0 MiB", evidence: two},
		{name: "it went away", fill: heaps(arm, 300, 24, 360, 2), met: check.False, seen: "2.0 MiB to 24.0 MiB", evidence: two, detail: "24.0 MiB"},
		{name: "one is too few for a yes", fill: heaps(arm, 360, 24), met: check.Unknown, seen: "too few to answer by", evidence: one, detail: "24.0 MiB"},
		{name: "one is enough for a no", fill: heaps(arm, 300, 2), met: check.False, seen: "1 profiles with 2.0 MiB to 2.0 MiB", evidence: one},
		{name: "the last is too early", fill: heaps(arm, 300, 24, 354, 24), met: check.Unknown, seen: "the last 59s after recovery began: too few", evidence: two, detail: "24.0 MiB"},
		{
			name: "a capture that failed is none", fill: heaps(arm, 300, 24, 330, -1, 360, 24), met: check.True, seen: "2 profiles", evidence: two, detail: "24.0 MiB",
			differs: []string{"the profile of 10:05:30 failed: connection refused"},
		},
		{name: "nothing was taken", fill: heaps(arm), met: check.Unknown, seen: "0 profiles: too few to answer by"},
		{name: "those of the fault don't count", fill: heaps(arm, 200, 24, 280, 24), met: check.Unknown, seen: "0 profiles"},
		{name: "the other arm's", fill: heaps(other, 300, 24, 360, 24), met: check.Unknown, seen: "0 profiles"},
		{name: "missing files", fill: heaps(arm, 300, 24, 360, 24), damage: remove(t, bundle.Heap), met: check.Unknown, seen: "0 profiles; the file artifacts/"},
		{
			name: "another profile", met: check.Unknown, seen: "reading artifacts/00001-heap-vulnerable.pb.gz: reading heap profile:",
			fill: func(tr *trial) {
				tr.phases()
				_, err := tr.w.Write(bundle.Meta{Kind: bundle.Heap, Arm: arm, Time: tr.at(300)}, "pb.gz", bytes.NewReader([]byte("Unauthorized\n")))
				tr.must(err)
			},
		},
		{
			name: "a restart took it away", met: check.Unknown, seen: "the process was not the same any more at 10:04:10", evidence: two,
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 248), 400, 250, 394)
				tr.heap(arm, 300, 0)
				tr.heap(arm, 360, 0)
			},
		},
		{name: "little enough", spec: `{"atLeast":"","below":"16Mi"}`, wanted: "below 16Mi retained", fill: heaps(arm, 300, 2, 360, 2), met: check.True, seen: "2.0 MiB", evidence: two},
		{name: "not little enough", spec: `{"atLeast":"","below":"16Mi"}`, wanted: "below", fill: heaps(arm, 300, 16), met: check.False, seen: "16.0 MiB", evidence: one, detail: "16.0 MiB"},
		{
			name: "little, after a restart", spec: `{"atLeast":"","below":"16Mi"}`, wanted: "below", met: check.Unknown, seen: "was not the same any more", evidence: two,
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 308), 400, 310, 394)
				tr.heap(arm, 320, 0)
				tr.heap(arm, 360, 0)
			},
		},
		{name: "two limits", spec: `{"below":"1Mi"}`, fill: heaps(arm), met: check.Unknown, seen: "want one of atLeast, below and overBaseline"},
		{name: "no bytes", spec: `{"atLeast":"16 MB"}`, fill: heaps(arm), met: check.Unknown, seen: `atLeast is "16 MB" (want bytes with a suffix: 16Mi)`},
		{name: "less than nothing", spec: `{"atLeast":"0"}`, fill: heaps(arm), met: check.Unknown, seen: "atLeast is 0 (want above 0)"},
		{name: "no function", spec: `{"func":""}`, fill: heaps(arm), met: check.Unknown, seen: "func is empty"},
		{name: "no profile at all", spec: `{"snapshots":0}`, fill: heaps(arm), met: check.Unknown, seen: "snapshots is 0"},
		{
			name: "back at the baseline's", spec: back, wanted: "less than 4Mi more retained below registry.(*Store).DeleteCollection in each of the last 2 heap profiles than in the baseline, the last at least 60s into",
			fill: heaps(arm, 22, 1, 35, 3, 300, 60, 330, 9, 360, 6), met: check.True, evidence: times(5, bundle.Heap),
			seen:   "3 profiles with 6.0 MiB to 60.0 MiB, the last 1m5s after recovery began; each of the last 2 has 3.0 MiB more than the 2 of the baseline",
			detail: "3.0 MiB more",
		},
		{
			name: "lists that are kept in a global", spec: back, wanted: "less than 4Mi", fill: heaps(arm, 22, 1, 35, 3, 300, 60, 330, 8, 360, 7), met: check.False, evidence: times(5, bundle.Heap),
			seen: "each of the last 2 has 4.0 MiB more than the 2 of the baseline", detail: "4.0 MiB more, of which 4.0 MiB were allocated in\n\tjson.Unmarshal",
		},
		{
			name: "all of the heap", spec: allBack, wanted: "less than 4Mi more retained in all in each of the last 2", fill: heaps(arm, 35, 3, 330, 8, 360, 7), met: check.False,
			evidence: times(3, bundle.Heap), seen: "each of the last 2 has 4.0 MiB more than the 1 of the baseline", detail: "4.0 MiB more",
		},
		{name: "all of the heap is back", spec: allBack, wanted: "in all", fill: heaps(arm, 35, 3, 330, 8, 360, 6), met: check.True, evidence: times(3, bundle.Heap), seen: "has 3.0 MiB more", detail: "3.0 MiB more"},
		{name: "one sample more", spec: allBack, wanted: "in all", fill: heaps(arm, 35, 3, 330, 3, 360, 3), met: check.True, evidence: times(3, bundle.Heap), seen: "has 0.0 MiB more"},
		{
			name: "what is excepted", spec: `{"func":"","atLeast":"","overBaseline":"4Mi","except":["etcd3.(*store).GetList"]}`, met: check.True, evidence: times(3, bundle.Heap),
			wanted: "than in the baseline, but for what is below etcd3.(*store).GetList", fill: heaps(arm, 35, 3, 330, 80, 360, 70), seen: "has 0.0 MiB more",
		},
		{name: "an empty exception", spec: `{"atLeast":"","overBaseline":"4Mi","except":[""]}`, fill: heaps(arm), met: check.Unknown, seen: `except is [""]`},
		{name: "an exception from a limit", spec: `{"except":["f"]}`, fill: heaps(arm), met: check.Unknown, seen: `except is ["f"] (want names, none of them empty, and overBaseline with them)`},
		{
			name: "a profile of the baseline failed, and what grew may be in it", spec: back, wanted: "4Mi", fill: heaps(arm, 22, 3, 35, -1, 330, 8, 360, 8), met: check.Unknown,
			evidence: times(3, bundle.Heap), seen: "has 5.0 MiB more than the 1 of the baseline; a profile of the baseline is missing", detail: "5.0 MiB more", differs: []string{"the profile of 10:00:35 failed"},
		},
		{name: "no profile of the baseline", spec: back, wanted: "4Mi", fill: heaps(arm, 330, 3, 360, 3), met: check.Unknown, evidence: two, seen: "there is none of the baseline to compare with"},
		{
			name: "the baseline's profile failed", spec: back, wanted: "4Mi", fill: heaps(arm, 35, -1, 330, 3, 360, 3), met: check.Unknown, evidence: two, seen: "there is none of the baseline",
			differs: []string{"the profile of 10:00:35 failed"},
		},
		{
			name: "the baseline's profile is gone", spec: back, wanted: "4Mi", fill: heaps(arm, 35, 3, 330, 3, 360, 3), damage: removeFirst(bundle.Heap), met: check.Unknown, evidence: two,
			seen: "is missing",
		},
		{name: "too early to be back", spec: back, wanted: "4Mi", fill: heaps(arm, 35, 3, 300, 3, 330, 3), met: check.Unknown, evidence: times(3, bundle.Heap), seen: "the last 35s after recovery began: too few"},
		{
			name: "back because it is another process", spec: back, wanted: "4Mi", met: check.Unknown, seen: "was not the same any more", evidence: times(3, bundle.Heap),
			fill: func(tr *trial) {
				tr.phases()
				tr.lookAt(tr.process(arm, 312, 0, 248), 400, 250, 394)
				tr.heap(arm, 35, 0)
				tr.heap(arm, 330, 0)
				tr.heap(arm, 360, 0)
			},
		},
	}, func(q *question) {
		q.kind, q.scope = "retainedHeap", check.Scope{Arm: arm, Phase: check.Recovery}
		q.spec = over(t, `{"func":"registry.(*Store).DeleteCollection","atLeast":"16Mi","snapshots":2,"lastAfter":"60s"}`, q.spec)
	})
}
