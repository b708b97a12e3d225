package match

import (
	"cmp"
	"io"
	"slices"

	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/goroutine"
)

// shared is how many goroutines two dumps must have in common to count as dumps of one process.
const shared = 8

// processes groups dumps, which are in order of time, by their process. A dump that can't be read, or that nothing ties
// to another one, gets a group to itself.
func processes(v bundle.View, dumps []bundle.Artifact) (out [][]bundle.Artifact) {
	var last []*goroutine.Dump
	for _, a := range dumps {
		d := dumpOf(v, a)
		at := slices.IndexFunc(last, func(other *goroutine.Dump) bool { return sameProcess(other, d) })
		if at < 0 {
			out, last = append(out, nil), append(last, nil)
			at = len(out) - 1
		}
		out[at], last[at] = append(out[at], a), d
	}
	return out
}

// byClock splits groups of dumps by the clock that tells their times. A dump without a clock gets a group to itself,
// because it lies in no stretch of time.
func byClock(v view, sets [][]bundle.Artifact) (out [][]bundle.Artifact) {
	for _, set := range sets {
		at := map[string]int{}
		for _, a := range set {
			clock := v.clock(a)
			i, ok := at[clock]
			if !ok || clock == "" {
				i = len(out)
				at[clock], out = i, append(out, nil)
			}
			out[i] = append(out[i], a)
		}
	}
	return out
}

// dumpOf returns the dump in an artifact, nil if it can't be read. The check that asks for the dump reports why.
func dumpOf(v bundle.View, a bundle.Artifact) *goroutine.Dump {
	if a.Error != "" || a.Missing {
		return nil
	}
	got, err := v.Remember(a, question.AsDump, func(_ any, r io.Reader) (any, error) { return goroutine.Read(r) })
	if err != nil {
		return nil
	}
	return got.(*goroutine.Dump)
}

// sameProcess reports whether two dumps are of one process: they have enough goroutines in common, and nothing shows
// that the processes differ.
func sameProcess(a, b *goroutine.Dump) bool {
	if a == nil || b == nil {
		return false
	}
	n, differs := a.InCommon(b)
	return n >= shared && differs == ""
}

// newer compares two dumps of a process whose times are not known. Ids only grow, so the newer dump has the largest id.
func newer(a, b *goroutine.Dump) int {
	most := func(d *goroutine.Dump) (id uint64) {
		for _, g := range d.Groups {
			id = max(id, slices.Max(append([]uint64{0}, g.IDs...)))
		}
		return id
	}
	return cmp.Compare(most(a), most(b))
}
