package match

import (
	"cmp"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

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
		at := slices.IndexFunc(
			last,
			func(other *goroutine.Dump) bool { return sameProcess(other, d) },
		)
		if at < 0 {
			out, last = append(out, nil), append(last, nil)
			at = len(out) - 1
		}
		out[at], last[at] = append(out[at], a), d
	}
	return out
}

// byClock splits groups of dumps by the clock that tells their times. A dump without a clock gets a group to itself,
// because it lies in no stretch of time. So does one that goroutines show to be younger than its clock says: the time of
// a file may be that of its copy.
func byClock(v view, sets [][]bundle.Artifact) (out [][]bundle.Artifact) {
	for _, set := range sets {
		at := map[string]int{}
		for _, a := range set {
			clock := v.clock(a)
			i, ok := at[clock]
			if ok {
				before := out[i][len(out[i])-1]
				ok = !younger(dumpOf(v, before), dumpOf(v, a), a.Time.Sub(before.Time))
			}
			if !ok || clock == "" {
				i = len(out)
				at[clock], out = i, append(out, nil)
			}
			out[i] = append(out[i], a)
		}
	}
	return out
}

// younger reports whether less than so much time has passed between two dumps of a process. A goroutine that has waited
// for longer has waited all the time, so that its minutes tell how much has passed.
func younger(was, is *goroutine.Dump, passed time.Duration) bool {
	if was == nil || is == nil {
		return false
	}
	waited := map[uint64]goroutine.Group{}
	for _, g := range was.Groups {
		if len(g.IDs) == 1 {
			waited[g.IDs[0]] = g
		}
	}
	for _, g := range is.Groups {
		if len(g.IDs) != 1 || g.MaxWait <= passed {
			continue
		}
		if w, ok := waited[g.IDs[0]]; ok && w.State == g.State && w.MaxWait > 0 && g.MaxWait-w.MaxWait+time.Minute <= passed {
			return true
		}
	}
	return false
}

// byProcess splits the evidence that checks read together by the process that it may be of. One kind of it tells by
// itself what is of one process; of several kinds, only the names of their files tell.
func (sub *subject) byProcess(reads []bundle.Kind) (out []func(bundle.Artifact) bool) {
	var all []bundle.Artifact
	var kinds []bundle.Kind
	for _, kind := range ofProcess {
		if slices.Contains(reads, kind) {
			some := sub.view.Artifacts(bundle.Query{Kind: kind, Arm: sub.arm})
			all = append(all, some...)
			if len(some) > 0 {
				kinds = append(kinds, kind)
			}
		}
	}
	if _, foreign := sub.view.(*foreign); foreign && len(kinds) > 1 {
		words := map[string][]string{} // by the names of files, of which one may have many dumps
		for _, a := range all {
			words[fileName(a)] = wordsOf(fileName(a))
		}
		done := map[string]bool{}
		for _, a := range all {
			name := fileName(a)
			if done[name] {
				continue
			}
			done[name] = true
			for other := range words {
				if apart(words[name], words[other]) {
					out = append(out, func(b bundle.Artifact) bool {
						return !slices.Contains(ofProcess, b.Kind) ||
							!apart(words[name], wordsOf(fileName(b)))
					})
					break
				}
			}
		}
	}
	if len(out) == 0 {
		out = append(out, func(bundle.Artifact) bool { return true })
	}
	return out
}

// ofProcess are the kinds of evidence that a process gives of itself, without its logs.
var ofProcess = []bundle.Kind{
	bundle.Goroutines2,
	bundle.Goroutines1,
	bundle.CPU,
	bundle.Heap,
	bundle.MetricSamples,
	bundle.Identity,
}

var (
	lineOf   = regexp.MustCompile(`:[0-9]+$`)
	nameWord = regexp.MustCompile(`[A-Za-z]+|[0-9]+`)
	// ofForms matches words of files' names that say what is in a file, or when it was taken, and not of which process.
	ofForms = regexp.MustCompile(`^(?:[0-9]{4,}|goroutines?|heap|allocs|cpu|mem|memory|profiles?|metrics?|pprof|trace|dump|stacks?|debug|before|after|txt|log|out|pb|gz|prof|json|md)$`)
)

// fileName returns the name of an artifact's file.
func fileName(a bundle.Artifact) string { return path.Base(lineOf.ReplaceAllString(a.Path, "")) }

// wordsOf returns what the name of a file says of its process: listener of listener.1.cpu.pb.gz.
func wordsOf(name string) (words []string) {
	for i, part := range strings.Split(name, ".") {
		if i > 0 && strings.Trim(part, "0123456789") == "" {
			continue // the number of a look
		}
		for _, word := range nameWord.FindAllString(part, -1) {
			if !ofForms.MatchString(word) {
				words = append(words, word)
			}
		}
	}
	return words
}

// apart reports whether two files' names tell two processes apart, as pod-a and pod-b do: they have a word in common, and
// each has one that the other hasn't. Names that have nothing in common may say anything.
func apart(a, b []string) bool {
	in := func(all []string) func(string) bool { return func(w string) bool { return slices.Contains(all, w) } }
	out := func(all []string) func(string) bool { return func(w string) bool { return !slices.Contains(all, w) } }
	return slices.ContainsFunc(a, in(b)) && slices.ContainsFunc(a, out(b)) &&
		slices.ContainsFunc(b, out(a))
}

// dumpOf returns the dump in an artifact, nil if it can't be read. The check that asks for the dump reports why.
func dumpOf(v bundle.View, a bundle.Artifact) *goroutine.Dump {
	if a.Error != "" || a.Missing {
		return nil
	}
	got, err := v.Remember(
		a,
		question.AsDump,
		func(_ any, r io.Reader) (any, error) { return goroutine.Read(r) },
	)
	if err != nil {
		return nil
	}
	return got.(*goroutine.Dump)
}

// sameProcess reports whether two dumps are of one process: they have enough goroutines in common, and nothing shows
// that the processes differ.
func sameProcess(a, b *goroutine.Dump) bool {
	if a == nil || b == nil || min(a.Total, b.Total) < shared { // as what grep found has hundreds of
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
