package question

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// MaxIdentityGap is the longest time from the beginning of a judged window to the first look at a process, and from the
// last look to the end of the window.
const MaxIdentityGap = 15 * time.Second

// OneProcess checks whether an arm's subject was one process in a window. A process is identified by its id, its start
// time and the address of its arguments. A process that has ended can't come back with the same id and start time. A
// process that replaced itself by execve keeps both, but can't get the same address again by chance. So a process that
// two looks found existed from the one to the other, and a look in between that found none missed it.
// True needs a look at either end of the window, within gap of the end or outside the window, that knows the address.
// Bundles of versions that didn't look at arguments need no address. The answer is False if a look found another
// process, or if the last two looks found none.
func OneProcess(v bundle.View, arm string, w bundle.Window, gap time.Duration) check.Finding {
	all, paths, doubt := Looks(v, arm)
	f := oneProcess(all, w, gap, doubt)
	f.Evidence = paths
	return f
}

// oneProcess answers OneProcess by looks. doubt says which looks are missing.
func oneProcess(
	all []bundle.IdentitySample,
	w bundle.Window,
	gap time.Duration,
	doubt error,
) check.Finding {
	f := check.Finding{
		Wanted: fmt.Sprintf(
			"one PID, start time and address of the arguments from the beginning to the end, give or take %s",
			gap,
		),
	}
	switch l := lookAt(all, w); {
	case len(l.at) > 0:
		l.one(&f, w, gap)
	case len(l.gone) > 0 || doubt == nil:
		l.setNoLooks(&f, w)
	}
	if doubt != nil {
		f.Seen += "; " + doubt.Error()
		if f.Met != check.False {
			f.Met, f.Code = check.Unknown, check.CodeOf(doubt)
		}
	}
	f.Seen = strings.TrimPrefix(f.Seen, "; ")
	return f
}

// Looks lists every look at which process an arm's subject was, in order of time. It leaves out looks at a process that
// the harness itself had restarted. doubt says what couldn't be read.
func Looks(v bundle.View, arm string) (all []bundle.IdentitySample, paths []string, doubt error) {
	arts := v.Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm})
	if len(arts) == 0 {
		return nil, nil, check.Doubt(
			check.NotRecorded,
			"no %s was recorded for %s",
			bundle.Identity,
			arm,
		)
	}
	var troubles []error
	for _, a := range arts {
		if a.Missing || a.Error != "" {
			troubles = append(
				troubles,
				fmt.Errorf("%s of %s: %w", bundle.Identity, arm, CaptureError(a)),
			)
			continue
		}
		paths = append(paths, a.Path)
		some, err := Records[bundle.IdentitySample](v, a)
		if err != nil {
			troubles = append(troubles, err)
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(r bundle.IdentitySample) bool { return r.Expected })
	slices.SortStableFunc(
		all,
		func(a, b bundle.IdentitySample) int { return a.Time.Compare(b.Time) },
	)
	return all, paths, joined(troubles)
}

// joined returns all errors as one, nil if there is none.
func joined(errs []error) (all error) {
	for _, err := range errs {
		if all == nil {
			all = err
		} else {
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}

// lookedAt holds the looks of a window.
type lookedAt struct {
	// Looks that found a process, with the nearest one before and after the window if it found the same process.
	at    []bundle.IdentitySample
	blind int                     // how many looks found no process, before the last one in at
	gone  []bundle.IdentitySample // looks that found no process, after the last one in at
}

func lookAt(all []bundle.IdentitySample, w bundle.Window) (l lookedAt) {
	var before, after *bundle.IdentitySample // the nearest look that found a process, on either side of the window
	for i, r := range all {
		switch {
		case r.Time.Before(w.Start) && r.PID > 0:
			before = &all[i]
		case r.Time.Before(w.Start):
		case r.Time.After(w.End) && r.PID > 0 && after == nil:
			after = &all[i]
		case r.Time.After(w.End):
		case r.PID > 0:
			l.blind, l.gone = l.blind+len(l.gone), nil
			l.at = append(l.at, r)
		default:
			l.gone = append(l.gone, r)
		}
	}
	if len(l.at) == 0 && (before == nil || after == nil || !before.SameProcess(*after)) {
		return l
	}
	if before != nil && (len(l.at) == 0 || before.SameProcess(l.at[0])) {
		l.at = slices.Insert(l.at, 0, *before)
	}
	if after != nil && after.SameProcess(l.at[len(l.at)-1]) {
		l.at = append(l.at, *after)
		l.blind, l.gone = l.blind+len(l.gone), nil
	}
	return l
}

// one answers for a window in which looks found a process.
func (l lookedAt) one(f *check.Finding, w bundle.Window, gap time.Duration) {
	first, last := l.at[0], l.at[len(l.at)-1]
	other := changed(l.at)
	f.Seen = fmt.Sprintf("%s in %d looks", process(first), len(l.at)) + l.describeOddity()
	switch {
	case other > 0:
		f.Met, f.Seen = check.False, fmt.Sprintf("%s, then %s: the process was not the same any more at %s",
			process(first), process(l.at[other])+elsewhere(l.at[:other], l.at[other]), Clock(l.at[other].Time))
	case len(l.gone) > 1:
		f.Met, f.Seen = check.False, fmt.Sprintf(
			"%s, then none at %s and after",
			process(first),
			Clock(l.gone[0].Time),
		)
	case len(l.gone) == 1:
		f.Code = check.TooFew
		f.Seen += fmt.Sprintf(", but the last look, at %s, found none", Clock(l.gone[0].Time))
	case first.Time.Sub(w.Start) > gap:
		f.Code = check.Gap
		f.Seen += ", but nobody looked which process it was from " + Between(w.Start, first.Time)
	case w.End.Sub(last.Time) > gap:
		f.Code = check.Gap
		f.Seen += ", but nobody looked which process it was from " + Between(last.Time, w.End)
	default:
		f.Met = check.True
		if doubt := l.unplaced(w, gap); doubt != nil {
			f.Met, f.Code, f.Seen = check.Unknown, check.CodeOf(doubt), f.Seen+", but "+doubt.Error()
		}
	}
}

// unplaced says why the process that all looks found may have replaced itself by execve. It returns nil if the
// address of the arguments rules that out, or if no look is of a version that looked at the arguments.
func (l lookedAt) unplaced(w bundle.Window, gap time.Duration) error {
	looked := false
	var known []bundle.IdentitySample
	for _, r := range l.at {
		looked = looked || r.Arguments != nil
		if r.Arguments.Known() {
			known = append(known, r)
		}
	}
	switch {
	case !looked:
		return nil
	case len(known) == 0 && l.at[0].Arguments != nil && l.at[0].Arguments.Randomize == 0:
		return check.Doubt(
			check.OtherProcess,
			"its host has no address randomisation, or it is not known, so that it may have replaced itself by execve",
		)
	case len(known) == 0:
		return check.Doubt(
			check.Unreadable,
			"the address of its arguments could not be read, so that it may have replaced itself by execve",
		)
	case known[0].Time.Sub(w.Start) > gap:
		return check.Doubt(
			check.Gap,
			"the address of its arguments is not known from %s",
			Between(w.Start, known[0].Time),
		)
	case w.End.Sub(known[len(known)-1].Time) > gap:
		return check.Doubt(check.Gap, "the address of its arguments is not known from %s",
			Between(known[len(known)-1].Time, w.End))
	}
	return nil
}

// setNoLooks answers for a window in which no look found a process. Two looks are enough to say that there was none; a
// single look may have missed the process.
func (l lookedAt) setNoLooks(f *check.Finding, w bundle.Window) {
	switch len(l.gone) {
	case 0:
		f.Code, f.Seen = check.NotRecorded, "nobody looked which process it was in "+Span(w)
	case 1:
		f.Code, f.Seen = check.TooFew, "no process at "+Clock(l.gone[0].Time)+", in the only look"
	default:
		f.Met, f.Seen = check.False, fmt.Sprintf(
			"no process in %d looks, the first at %s",
			len(l.gone),
			Clock(l.gone[0].Time),
		)
	}
}

// describeOddity says what else the looks show: how many looks in between found no process, and where a supervisor's
// count of restarts changed.
func (l lookedAt) describeOddity() (out string) {
	if l.blind > 0 {
		out = fmt.Sprintf("; %d more found none, which it outlived", l.blind)
	}
	for i, r := range l.at {
		if i > 0 && r.Restarts != l.at[i-1].Restarts {
			out += fmt.Sprintf(
				"; the count of restarts went from %d to %d at %s, and the process stayed",
				l.at[i-1].Restarts,
				r.Restarts,
				Clock(r.Time),
			)
		}
	}
	return out
}

// changed returns the index of the first look that found another process than the looks before it, 0 if there is none.
func changed(looks []bundle.IdentitySample) int {
	was := bundle.IdentitySample{}
	for i, r := range looks {
		if i > 0 && !was.SameProcess(r) {
			return i
		}
		if i == 0 || r.Arguments.Known() { // a look without an address must not hide a change of address
			was = r
		}
	}
	return 0
}

// elsewhere says that a look's process differs from that of earlier looks only in the address of its arguments, "" if
// it differs in its id or start time.
func elsewhere(before []bundle.IdentitySample, r bundle.IdentitySample) string {
	if was := before[0]; was.PID != r.PID || was.StartTicks != r.StartTicks {
		return ""
	}
	return ", whose arguments are at another address, as after execve"
}

func process(s bundle.IdentitySample) string {
	return fmt.Sprintf(
		"process %d started at tick %d with %d restarts",
		s.PID,
		s.StartTicks,
		s.Restarts,
	)
}
