package verdict

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/bundle"
	"github.com/kube-relapse/relapse/harness/check"
)

// The names of the checks that every arm of every scenario gets.
const (
	CheckBinary  = "the binary that runs is the one that was built"
	CheckProcess = "it is one process from steady state to the last capture"
	CheckAlike   = "it was built like its counterpart"
)

// MaxIdentityGap is for how long nobody may have looked which process the subject is.
const MaxIdentityGap = 15 * time.Second

// samples are the identities of a cell's subject in its judged window.
type samples struct {
	window   bundle.Window // steady state to the end of the last phase, or to the end of the process where the incident ended it
	ended    bool          // by the incident
	list     []bundle.IdentitySample
	evidence []string
	trouble  []string // what couldn't be read
}

// judgedIdentity gathers the samples from the beginning of the steady state to the end of the last phase, or to when the incident ended the process.
func judgedIdentity(v bundle.View, cell string, ended time.Time) (samples, bool) {
	var s samples
	steady, ok := v.Phase(cell, check.Steady)
	if !ok {
		return s, false
	}
	s.window.Start = steady.Start
	for _, phase := range []string{check.Steady, check.Baseline, check.Fault, check.Recovery} {
		if w, ok := v.Phase(cell, phase); ok {
			s.window.End = w.Until(v.Timeline())
		}
	}
	if !ended.IsZero() && ended.Before(s.window.End) {
		s.window.End, s.ended = ended, true
	}
	s.gather(v, cell)
	return s, true
}

// gather reads the samples of the window, without those after a restart that the harness made.
func (s *samples) gather(v bundle.View, cell string) {
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.Identity, Cell: cell}) {
		if a.Path != "" {
			s.evidence = append(s.evidence, a.Path)
		}
		if err := s.read(v, a); err != nil {
			s.trouble = append(s.trouble, err.Error())
		}
	}
	slices.SortStableFunc(s.list, func(a, b bundle.IdentitySample) int { return a.Time.Compare(b.Time) })
}

func (s *samples) read(v bundle.View, a bundle.Artifact) error {
	r, err := v.Open(a)
	if err != nil {
		return err
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var one bundle.IdentitySample
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("reading %s: %w", a.Path, err)
		}
		if !one.Expected && !one.Time.Before(s.window.Start) && !one.Time.After(s.window.End) {
			s.list = append(s.list, one)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", a.Path, err)
	}
	return nil
}

// checkBinary compares each digest that was taken with the one that was built. One is needed before the fault and one in the recovery.
func checkBinary(v bundle.View, cell, digest string, s samples) check.Finding {
	late := check.Recovery
	if s.ended {
		late = check.Fault
	}
	f := check.Finding{Name: CheckBinary, Evidence: s.evidence,
		Wanted: fmt.Sprintf("SHA-256 %s in every sample, at least one before the fault and one in the %s", short(digest), late)}
	before, after, taken := 0, 0, 0
	for _, one := range s.list {
		if one.SHA256 == "" {
			continue
		}
		taken++
		if digest != "" && one.SHA256 != digest {
			f.Met = check.NotMet
			f.Seen = fmt.Sprintf("SHA-256 %s in process %d at %s: it isn't the binary that was built", short(one.SHA256), one.PID, stamp(one.Time))
			return whole(f)
		}
		switch {
		case within(v, cell, one.Time, check.Steady, check.Baseline):
			before++
		case within(v, cell, one.Time, late):
			after++
		}
	}
	f.Seen = fmt.Sprintf("SHA-256 %s in %d samples, %d before the fault and %d in the %s", short(digest), taken, before, after, late)
	switch {
	case digest == "":
		f.Seen = "no digest was recorded when the arm was built"
	case len(s.trouble) > 0:
		f.Seen = "samples can't be read: " + strings.Join(s.trouble, "; ")
	case taken == 0:
		f.Seen = "no sample with a digest"
	case before > 0 && after > 0:
		f.Met = check.Met
	}
	return whole(f)
}

// within reports whether t lies in one of a cell's phases.
func within(v bundle.View, cell string, t time.Time, phases ...string) bool {
	for _, p := range phases {
		w, ok := v.Phase(cell, p)
		if ok && !t.Before(w.Start) && (w.End.IsZero() || !t.After(w.End)) {
			return true
		}
	}
	return false
}

// checkProcess compares every sample with the first. Any difference is a restart that nobody asked for; a time without samples is a
// time in which one could have gone unnoticed.
func checkProcess(s samples) check.Finding {
	f := check.Finding{Name: CheckProcess, Evidence: s.evidence,
		Wanted: fmt.Sprintf("one PID, start time and restart count in samples at most %s apart", MaxIdentityGap)}
	if len(s.list) == 0 {
		f.Seen = strings.Join(append([]string{"no sample"}, s.trouble...), "; ")
		return whole(f)
	}
	first := s.list[0]
	last, gap, gapAt := s.window.Start, time.Duration(0), time.Time{}
	for _, one := range s.list {
		if one.PID != first.PID || one.StartTicks != first.StartTicks || one.Restarts != first.Restarts {
			f.Met = check.NotMet
			f.Seen = fmt.Sprintf("%s, then %s at %s", process(first), process(one), stamp(one.Time))
			return whole(f)
		}
		if d := one.Time.Sub(last); d > gap {
			gap, gapAt = d, last
		}
		last = one.Time
	}
	if d := s.window.End.Sub(last); d > gap {
		gap, gapAt = d, last
	}
	f.Seen = fmt.Sprintf("%s in %d samples", process(first), len(s.list))
	if s.ended {
		f.Seen += ", up to when the incident ended it at " + stamp(s.window.End)
	}
	switch {
	case first.PID <= 0:
		f.Met, f.Seen = check.NotMet, "no process at "+stamp(first.Time)
	case len(s.trouble) > 0:
		f.Seen += "; more can't be read: " + strings.Join(s.trouble, "; ")
	case gap > MaxIdentityGap:
		f.Seen += fmt.Sprintf(", but none for %s from %s on", gap.Round(time.Millisecond), stamp(gapAt))
	default:
		f.Met = check.Met
	}
	return whole(f)
}

// OneProcess asks while a trial runs whether a cell's subject has been one process since its steady state began; false if that never began.
func OneProcess(v bundle.View, cell string) (check.Finding, bool) {
	steady, ok := v.Phase(cell, check.Steady)
	if !ok {
		return check.Finding{}, false
	}
	s := samples{window: bundle.Window{Start: steady.Start, End: time.Now()}}
	s.gather(v, cell)
	return checkProcess(s), true
}

func process(s bundle.IdentitySample) string {
	return fmt.Sprintf("process %d started at tick %d with %d restarts", s.PID, s.StartTicks, s.Restarts)
}

func short(digest string) string {
	if digest == "" {
		return "(unknown)"
	}
	return fmt.Sprintf("%.12s", digest)
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000Z") }
