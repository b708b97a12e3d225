package question

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// AsPlanned checks what OneProcess checks, but lets faults end the subject's process. Between two such ends the subject
// must be one process: the one that the fault ended, and from then on the first other one that a look found. It also
// returns the parts of the window in which the subject was to be one process.
//
// A process in between that no look found would be another restart, so the supervisor's count of restarts must not tell
// of one. If no process comes after an end, the answer is False once the time that the component has to be ready again
// is over.
func AsPlanned(
	v bundle.View,
	arm string,
	w bundle.Window,
	gap time.Duration,
) (check.Finding, []bundle.Window) {
	ends, endPaths, unread := Ends(v, arm)
	ends = slices.DeleteFunc(
		ends,
		func(e bundle.EndedByFault) bool { return !Contains(w, e.Time) },
	)
	if len(ends) == 0 && unread == nil {
		return OneProcess(v, arm, w, gap), []bundle.Window{w}
	}
	all, paths, doubt := Looks(v, arm)
	for _, e := range ends { // the fault looked, too
		all = append(
			all,
			bundle.IdentitySample{
				Time:       e.Time,
				PID:        e.PID,
				StartTicks: e.StartTicks,
				Restarts:   e.Restarts,
			},
		)
	}
	slices.SortStableFunc(
		all,
		func(a, b bundle.IdentitySample) int { return a.Time.Compare(b.Time) },
	)
	p := planned{Finding: check.Finding{Met: check.True}, all: all, gap: gap, doubt: doubt}
	p.follow(ends, w)
	p.Evidence = slices.Concat(paths, endPaths)
	p.Wanted = fmt.Sprintf(
		"one PID, start time and address of the arguments from the beginning to the end, give or take "+
			"%s, and another one each time that a fault ended it",
		gap,
	)
	if unread != nil { // an end that can't be read may be why there is another process
		p.Met, p.Code, p.Seen = check.Unknown, check.CodeOf(unread), p.Seen+"; "+unread.Error()
	}
	return p.Finding, p.parts
}

// planned is the answer of AsPlanned so far.
type planned struct {
	check.Finding
	parts []bundle.Window
	all   []bundle.IdentitySample
	gap   time.Duration
	doubt error
}

// follow goes from end to end.
func (p *planned) follow(ends []bundle.EndedByFault, w bundle.Window) {
	for _, e := range ends {
		p.part(bundle.Window{Start: w.Start, End: e.Time})
		next := slices.IndexFunc(p.all, func(r bundle.IdentitySample) bool {
			return r.Time.After(e.Time) && !r.Time.After(w.End) && r.PID > 0 &&
				(r.PID != e.PID || r.StartTicks != e.StartTicks)
		})
		if next < 0 {
			p.stayedAway(e, w)
			return
		}
		p.follows(e, p.all[next])
		w.Start = p.all[next].Time
	}
	p.part(w)
}

// part asks whether the subject was one process in a part of the window.
func (p *planned) part(w bundle.Window) {
	f := oneProcess(p.all, w, p.gap, p.doubt)
	p.add(f.Met, f.Code, f.Seen)
	p.parts = append(p.parts, w)
}

// follows asks whether a process can be the only one since the end of another.
func (p *planned) follows(e bundle.EndedByFault, next bundle.IdentitySample) {
	p.add(check.True, "", fmt.Sprintf("%s ended process %d at %s", e.Fault, e.PID, Clock(e.Time)))
	// Of a supervisor that was told to restart the process, some go on counting and some begin again. So only 0 says
	// that none came in between.
	want := 0
	if e.Counted {
		want = e.Restarts + 1
	}
	if next.Restarts != want {
		p.add(
			check.Unknown,
			check.OtherProcess,
			fmt.Sprintf("the count of restarts went from %d to %d, so that there may "+
				"have been another process in between", e.Restarts, next.Restarts),
		)
	}
}

// stayedAway answers for a subject that no look found again after a fault had ended it.
func (p *planned) stayedAway(e bundle.EndedByFault, w bundle.Window) {
	within := time.Duration(e.ReadySeconds * float64(time.Second))
	seen := fmt.Sprintf(
		"%s ended process %d at %s, and nobody has seen another one since",
		e.Fault,
		e.PID,
		Clock(e.Time),
	)
	looks := 0 // that found none, after the time that it had
	for _, r := range p.all {
		if r.PID == 0 && r.Time.After(e.Time.Add(within)) && !r.Time.After(w.End) {
			looks++
		}
	}
	if looks > 1 {
		p.add(check.False, "", fmt.Sprintf("%s, though it had %s", seen, within))
		return
	}
	p.add(check.Unknown, check.TooShort, seen)
}

func (p *planned) add(met check.Truth, code check.Code, seen string) {
	if p.Met = check.All(p.Met, met); p.Met == check.Unknown {
		p.Code = cmp.Or(p.Code, code)
	} else {
		p.Code = ""
	}
	if p.Seen != "" {
		p.Seen += "; "
	}
	p.Seen += seen
}

// Ends lists the processes of an arm's subject that faults ended, in order of time, each once. doubt says what couldn't
// be read.
func Ends(v bundle.View, arm string) (all []bundle.EndedByFault, paths []string, doubt error) {
	of := v.Artifacts(bundle.Query{Kind: bundle.Identity, Arm: arm})
	var troubles []error
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.EndedProcess, Arm: arm}) {
		if !slices.ContainsFunc(of, func(o bundle.Artifact) bool { return o.Node == a.Node && o.Component == a.Component }) {
			continue
		}
		one, err := readEnd(v, a)
		if err != nil {
			troubles = append(troubles, fmt.Errorf("%s of %s: %w", bundle.EndedProcess, arm, err))
			continue
		}
		all, paths = append(all, one), append(paths, a.Path)
	}
	slices.SortStableFunc(
		all,
		func(a, b bundle.EndedByFault) int { return a.Time.Compare(b.Time) },
	)
	return lastOfEach(all), paths, joined(troubles)
}

// lastOfEach returns the last record of each process: one that was to end twice did not end the first time.
// A process whose last record is withdrawn is left out.
func lastOfEach(all []bundle.EndedByFault) (out []bundle.EndedByFault) {
	for i, e := range all {
		again := func(o bundle.EndedByFault) bool { return o.PID == e.PID && o.StartTicks == e.StartTicks }
		if !e.Withdrawn && !slices.ContainsFunc(all[i+1:], again) {
			out = append(out, e)
		}
	}
	return out
}

func readEnd(v bundle.View, a bundle.Artifact) (one bundle.EndedByFault, err error) {
	if a.Missing || a.Error != "" {
		return one, CaptureError(a)
	}
	r, err := v.Open(a)
	if err != nil {
		return one, check.Doubt(check.Unreadable, "%w", err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&one); err != nil {
		return one, check.Doubt(check.Unreadable, "%s: %w", a.Path, err)
	}
	return one, nil
}
