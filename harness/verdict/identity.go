package verdict

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// The names of the checks that every arm of every scenario gets.
const (
	CheckBinary  = "the binary that runs is the one that was built"
	CheckProcess = "it is one process from steady state to the last capture"
	CheckAlike   = "it was built like its counterpart"
)

// judgedWindow returns the window from the beginning of the steady state to the end of the last phase, or to when the
// incident ended the process, which ends says. begun is false if the steady state never began.
func judgedWindow(
	v bundle.View,
	arm string,
	ended time.Time,
) (w bundle.Window, ends, begun bool) {
	steady, begun := v.Phase(arm, check.Steady)
	if !begun {
		return w, false, false
	}
	w.Start = steady.Start
	for _, phase := range []string{check.Steady, check.Baseline, check.Fault, check.Recovery} {
		if p, ok := v.Phase(arm, phase); ok {
			w.End = p.Until(v.Timeline())
		}
	}
	if !ended.IsZero() && ended.Before(w.End) {
		w.End, ends = ended, true
	}
	return w, ends, true
}

// checkBinary compares each recorded digest with that of the binary that was built. digests are those of the arm's
// builds in order: each but the first is asked for from when a fault put it in place. One digest is needed before the
// fault and one in the recovery. An arm that never got past its steady state only needs the first. A process that the
// incident ended may have lived too shortly to be hashed in the fault, so the processes that were started in its place
// count, too.
func checkBinary(
	v bundle.View,
	arm string,
	digests []string,
	judged bundle.Window,
	ended bool,
) check.Finding {
	late, latePhases := check.Recovery, []string{check.Recovery}
	if ended {
		late, latePhases = "fault or after it", []string{
			check.Fault,
			check.Lifting,
			check.Recovery,
		}
		judged, _, _ = judgedWindow(v, arm, time.Time{})
	}
	_, went := v.Phase(arm, check.Baseline)
	all, paths, doubt := question.Looks(v, arm)
	runs := stretchesOf(v, arm, digests)
	f := check.Finding{Name: CheckBinary, Evidence: append(paths, runs.paths...),
		Wanted: fmt.Sprintf("SHA-256 %s in every sample, at least one before the fault", runs.wanted())}
	if went {
		f.Wanted += " and one in the " + late
	}
	before, after, taken := 0, 0, 0
	for _, one := range all {
		if one.SHA256 == "" || one.Time.Before(judged.Start) || one.Time.After(judged.End) {
			continue
		}
		taken++
		if digest := runs.take(one); digest != "" && one.SHA256 != digest &&
			(runs.doubt == nil || !slices.Contains(digests, one.SHA256)) { // whose turn it was may be what isn't known
			f.Met = check.False
			f.Seen = fmt.Sprintf(
				"SHA-256 %s in process %d at %s: it isn't the binary that was built",
				short(one.SHA256),
				one.PID,
				stamp(one.Time),
			)
			return nonNil(f)
		}
		switch {
		case within(v, arm, one.Time, check.Steady, check.Baseline):
			before++
		case within(v, arm, one.Time, latePhases...):
			after++
		}
	}
	f.Seen = fmt.Sprintf(
		"SHA-256 %s, %d before the fault and %d in the %s",
		runs.seen(),
		before,
		after,
		late,
	)
	if !went {
		f.Seen = fmt.Sprintf(
			"SHA-256 %s, all in the steady state, which is where it stayed",
			runs.seen(),
		)
	}
	switch {
	case slices.Contains(digests, ""):
		f.Code, f.Seen = check.NotRecorded, "no digest was recorded when the arm was built"
	case doubt != nil:
		f.Code, f.Seen = check.CodeOf(doubt), "samples can't be read: "+doubt.Error()
	case taken == 0:
		f.Code, f.Seen = check.NotRecorded, "no sample with a digest"
	case went && runs.wrong() != nil:
		f.Code, f.Seen = check.CodeOf(runs.wrong()), f.Seen+"; "+runs.wrong().Error()
	case before > 0 && (after > 0 || !went):
		f.Met = check.True
	default:
		f.Code = check.TooFew
	}
	return nonNil(f)
}

// within reports whether t lies in one of an arm's phases.
func within(v bundle.View, arm string, t time.Time, phases ...string) bool {
	for _, p := range phases {
		w, ok := v.Phase(arm, p)
		if ok && !t.Before(w.Start) && (w.End.IsZero() || !t.After(w.End)) {
			return true
		}
	}
	return false
}

// noticedLate is how long after a process ended its supervisor may notice that.
const noticedLate = 5 * time.Second

// firstGone returns when, shortly before t, the looks began to find no process; t if they didn't.
func firstGone(v bundle.View, arm string, t time.Time) time.Time {
	first := t
	all, _, _ := question.Looks(v, arm)
	for _, one := range slices.Backward(all) {
		if one.Time.After(t) {
			continue
		}
		if one.PID != 0 || t.Sub(one.Time) > noticedLate {
			break
		}
		first = one.Time.Add(-time.Nanosecond)
	}
	return first
}

// checkProcess checks that the subject was one process in the judged window, by the kernel's records and by the
// subject's own data; where faults ended its process, that it was one in each part of the window. If the subject's data
// contradicts the kernel's, there was another process. If the incident ended the process, the process may be gone a
// little before its end was noted.
func checkProcess(v bundle.View, arm string, judged bundle.Window, ended bool) check.Finding {
	f, parts := lookedAt(v, arm, judged, ended)
	for _, part := range parts {
		if f.Met == check.False {
			break
		}
		if why, paths := question.OtherProcess(v, arm, part); why != "" {
			f.Met, f.Code, f.Seen, f.Evidence = check.False, "", f.Seen+"; but "+why, append(f.Evidence, paths...)
		}
	}
	return f
}

// lookedAt does what checkProcess does by the kernel's records alone, and returns the parts of the window in which the
// subject was to be one process.
func lookedAt(
	v bundle.View,
	arm string,
	judged bundle.Window,
	ended bool,
) (check.Finding, []bundle.Window) {
	if ended {
		judged.End = firstGone(v, arm, judged.End)
	}
	f, parts := question.AsPlanned(v, arm, judged, question.MaxIdentityGap)
	f.Name = CheckProcess
	if ended {
		f.Seen += ", up to when the incident ended it at " + stamp(judged.End)
	}
	return nonNil(f), parts
}

// OneProcess checks during a trial whether an arm's subject has been one process since its steady state began, but for
// those that faults ended. It uses the kernel's records alone, because it is called again and again, and dumps take long
// to compare. The second result is false if the steady state never began.
func OneProcess(v bundle.View, arm string) (check.Finding, bool) {
	steady, ok := v.Phase(arm, check.Steady)
	if !ok {
		return check.Finding{}, false
	}
	f, _ := lookedAt(v, arm, bundle.Window{Start: steady.Start, End: time.Now()}, false)
	return f, true
}

func short(digest string) string {
	if digest == "" {
		return "(unknown)"
	}
	return fmt.Sprintf("%.12s", digest)
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000Z") }
