package match

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// look is evidence of one process, of which all checks of a sign are asked together. What two processes show, or one at
// two times, is not what one shows at once.
type look struct {
	*subject
	process func(bundle.Artifact) bool // reports whether an artifact may be of the process
	dump    *bundle.Artifact           // the one dump at debug=2 that counts; nil if there is none
	of      int                        // how many looks there are by such a dump
	known   map[string]answer          // of checks of other evidence, or of several dumps
	sets    func() groups              // the dumps of all these looks by their process, found once for all of them
	timed   func() groups              // the same, split by the clocks of the dumps
}

type answer struct {
	check.Finding
	err error
}

// sign answers a sign by its checks, all of which have to be met by one look.
func (sub *subject) sign(sign scenario.Sign) (Sign, error) {
	looks, err := sub.looks(sign)
	if err != nil {
		return Sign{}, fmt.Errorf("sign %s: %w", sign.Name, err)
	}
	return best(
		looks,
		func(s Sign) check.Truth { return s.Met },
		func(l *look) (Sign, error) { return l.sign(sign) },
	)
}

// looks splits the evidence that a sign asks for by the process that it is of, and each part by its dumps.
func (sub *subject) looks(sign scenario.Sign) (out []*look, err error) {
	reads, err := reads(sign.Checks)
	if err != nil {
		return nil, err
	}
	for _, process := range sub.byProcess(reads) {
		known := map[string]answer{}
		var dumps []bundle.Artifact
		if slices.Contains(reads, bundle.Goroutines2) {
			dumps = chosen{sub.view, process}.Artifacts(bundle.Query{Kind: bundle.Goroutines2, Arm: sub.arm})
		}
		sets := sync.OnceValue(func() groups { return grouped(processes(sub.view, dumps)) })
		timed := sync.OnceValue(func() groups { return grouped(byClock(sub.view, sets().all)) })
		for i := range dumps {
			out = append(out, &look{sub, process, &dumps[i], len(dumps), known, sets, timed})
		}
		if len(dumps) == 0 {
			out = append(out, &look{sub, process, nil, 0, known, sets, timed})
		}
	}
	return out, nil
}

// groups are dumps that belong together.
type groups struct {
	all [][]bundle.Artifact
	of  map[string][]bundle.Artifact // by the path of each dump
}

func grouped(all [][]bundle.Artifact) groups {
	g := groups{all, map[string][]bundle.Artifact{}}
	for _, set := range all {
		for _, a := range set {
			g.of[a.Path] = set
		}
	}
	return g
}

// reads returns the kinds of evidence that checks read.
func reads(checks []scenario.Check) (out []bundle.Kind, err error) {
	for _, c := range checks {
		more, err := reads(c.AnyOf)
		if err == nil && c.Kind != "" {
			var k check.Check
			if k, err = kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec); err == nil {
				more = append(more, k.Reads()...)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// sign answers a sign by what one look shows.
func (l *look) sign(sign scenario.Sign) (Sign, error) {
	out := Sign{Name: sign.Name, Is: sign.Is, Ground: sign.Ground, Where: []string{}}
	var met []check.Truth
	var seen []string
	for _, c := range sign.Checks {
		f, err := l.check(c)
		if err == nil && c.Kind == "panicked" {
			f, err = l.orObserved(c, f)
		}
		if err != nil {
			return out, fmt.Errorf("sign %s: %w", sign.Name, err)
		}
		if len(sign.Checks) > 1 {
			f.Seen = c.Name + ": " + f.Seen
		}
		met, seen = append(met, f.Met), append(seen, f.Seen)
		out.Where = append(out.Where, l.where(f)...)
		likely := c.Kind == "panicked" && f.Met == check.Unknown && f.Detail != ""
		if out.Detail == "" && (f.Met == check.True || likely) {
			out.Detail = f.Detail
		}
		out.Likely = out.Likely || likely
	}
	out.Met, out.Seen = check.All(met...), strings.Join(seen, "; ")
	out.Likely = out.Likely && out.Met == check.Unknown
	return out, nil
}

// check answers one check, or the best of its alternatives.
func (l *look) check(c scenario.Check) (check.Finding, error) {
	if len(c.AnyOf) > 0 {
		return best(c.AnyOf, func(f check.Finding) check.Truth { return f.Met }, l.check)
	}
	k, err := kinds.Decode[check.Check](kinds.Check, c.Kind, c.Spec)
	if err != nil {
		return check.Finding{}, err
	}
	scope := check.Scope{
		Arm:   l.arm,
		Phase: cmp.Or(c.Phase, evidencePhase),
		After: scenario.Length(c.After),
	}
	v := chosen{l.view.about(k.Reads()), l.process}
	if f, ok := l.view.(*foreign); ok {
		if why := f.lacks(k); why != "" {
			return check.Finding{Seen: why}, nil
		}
	}
	asked := fmt.Sprint(c.Kind, " ", string(c.Spec), " ", scope) // an alternative may have no name
	if !slices.Equal(k.Reads(), []bundle.Kind{bundle.Goroutines2}) {
		return l.once(asked, func() (check.Finding, error) {
			f, err := eval(k, v, scope)
			if of, ok := l.view.(*foreign); ok && f.Met == check.False {
				if why := of.partOf(k.Reads()); why != "" {
					f.Met, f.Seen = check.Unknown, f.Seen+"; but "+why
				}
			}
			return f, err
		})
	}
	if l.dump == nil {
		return check.Finding{Seen: "no goroutine dump at debug=2 is there"}, nil
	}
	// A dump that was cut off hides what another dump shows. So each dump is asked separately, unless the check asks
	// for what lasts.
	dumps, n, what := []bundle.Artifact{*l.dump}, l.of, "%d dumps, each by itself"
	if g, ok := k.(*goroutines.Goroutines); ok && (g.Span != "" || g.Persist) {
		sets := l.sets()
		if what = "%d processes' dumps"; g.Span != "" {
			sets, what = l.timed(), "%d processes' dumps, as far as they are by one clock"
		}
		n, dumps = len(sets.all), sets.of[l.dump.Path]
	}
	view := l.view
	if of, ok := view.(*foreign); ok { // what grep found may be a thousand dumps: each is asked without looking at all others
		view = of.with(dumps)
	}
	f, err := l.once(asked+" of "+dumps[0].Path, func() (check.Finding, error) {
		return eval(k, chosen{view.about(k.Reads()), func(a bundle.Artifact) bool { return a.Kind == bundle.Goroutines2 && has(dumps, a) }}, scope)
	})
	if of, ok := view.(*foreign); ok {
		f.Seen = of.doubted(since.ReplaceAllString(f.Seen, ""))
	}
	if f.Met != check.True && n > 1 {
		f.Seen += " (of " + fmt.Sprintf(what, n) + ")"
	}
	return f, err
}

func has(all []bundle.Artifact, one bundle.Artifact) bool {
	return slices.ContainsFunc(all, func(a bundle.Artifact) bool { return a.Path == one.Path })
}

// once asks only once for what several looks have in common.
func (l *look) once(what string, ask func() (check.Finding, error)) (check.Finding, error) {
	a, ok := l.known[what]
	if !ok {
		a.Finding, a.err = ask()
		l.known[what] = a
	}
	return a.Finding, a.err
}

// since matches the part of a finding that says how long after the beginning of a phase something was seen. Foreign
// evidence has no phases.
var since = regexp.MustCompile(`, the last \S+ after \S+ began`)

// eval answers a check, and turns a panic into an error: a panic is a mistake of ours, never an answer.
func eval(k check.Check, v bundle.View, s check.Scope) (f check.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return k.Eval(v, s), nil
}

// best asks for alternatives one by one and returns the answer that decides: the first that is met, else one that is
// unknown, else one that is not met.
func best[T, A any](all []T, met func(A) check.Truth, ask func(T) (A, error)) (out A, err error) {
	for i, one := range all {
		a, err := ask(one)
		if err != nil || met(a) == check.True {
			return a, err
		}
		if i == 0 || met(a) == check.Unknown && met(out) == check.False {
			out = a
		}
	}
	return out, nil
}
