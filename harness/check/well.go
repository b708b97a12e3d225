package check

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// Tolerance is how much may be amiss in what is well on the whole. One slow answer is a matter of the machine that everything runs on; two in a row
// are one of what is asked.
type Tolerance struct {
	Tolerate string `json:"tolerate,omitempty" jsonschema:"which share of the looks may show something else, as long as no two in a row do: 5%; none where it is left out"`
}

func (t Tolerance) validate() error {
	share, err := t.share()
	switch {
	case err != nil:
		return err
	case share < 0 || share > 0.5:
		return fmt.Errorf("tolerate is %s (want 0%% to 50%%)", t.Tolerate)
	}
	return nil
}

// share is the tolerated share as a fraction.
func (t Tolerance) share() (float64, error) {
	if t.Tolerate == "" {
		return 0, nil
	}
	return percent("tolerate", t.Tolerate)
}

// percent reads a share as a fraction: 5% is 0.05.
func percent(field, text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%s is %q (want a share: 5%%)", field, text)
	}
	return n / 100, nil
}

// but is what the tolerance adds to what is wanted.
func (t Tolerance) but(noun string) string {
	if t.Tolerate == "" {
		return ""
	}
	return fmt.Sprintf(", but for %s of the %s and no two in a row", t.Tolerate, noun)
}

// reading is one look at something that is well or isn't.
type reading struct {
	asked, done time.Time
	bad         string // what was wrong; "" if nothing was
	mute        string // why there is no answer, which nobody can read anything from; "" if there is one
}

// lastOf is the last stretch of a window.
func lastOf(w bundle.Window, hold time.Duration) bundle.Window {
	return bundle.Window{Start: later(w.Start, w.End.Add(-hold)), End: w.End}
}

// tally counts looks: those that were well, those that weren't, and those that got no answer. Of the latter two it knows whether there were two in a row.
type tally struct {
	good, bad, mute    int
	lastBad, lastAmiss bool // of the look before, where a bad one is remembered past mute ones
	badTwice, twice    bool
}

func (t *tally) add(r reading) {
	switch {
	case r.bad != "":
		t.bad++
		t.badTwice, t.twice = t.badTwice || t.lastBad, t.twice || t.lastAmiss
		t.lastBad, t.lastAmiss = true, true
	case r.mute != "":
		t.mute++
		t.twice, t.lastAmiss = t.twice || t.lastAmiss, true
	default:
		t.good++
		t.lastBad, t.lastAmiss = false, false
	}
}

// judge says what a tally amounts to, and why: not met by what was bad, unknown by what got no answer.
func (t tally) judge(share float64) (Tri, string) {
	may := int(share * float64(t.good+t.bad+t.mute))
	switch amiss := t.bad + t.mute; {
	case t.badTwice && may > 0:
		return NotMet, "; two in a row are not"
	case t.bad > may && may > 0:
		return NotMet, fmt.Sprintf("; %d may be otherwise", may)
	case t.bad > may:
		return NotMet, ""
	case t.twice || amiss > may:
		return Unknown, "; the others say nothing"
	case amiss > 0:
		return Met, fmt.Sprintf(", and %d of the others tolerated", amiss)
	}
	return Met, ""
}

// well is the finding over what was read in the last stretch of a window, which ends with the last reading: an answer counts from when it was asked
// for, so that one under way when the stretch began is of it.
func (t Tolerance) well(all []reading, paths []string, doubt string, w bundle.Window, hold time.Duration, wanted, noun string) Finding {
	share, _ := t.share() // validate has read it
	f := Finding{Wanted: wanted, Evidence: paths}
	var in []reading
	for _, r := range all {
		if !r.asked.Before(w.Start) && !r.done.After(w.End) {
			in = append(in, r)
		}
	}
	if len(in) == 0 {
		if doubt == "" {
			doubt = fmt.Sprintf("there are no %s in %s", noun, span(w))
		}
		return unknown(wanted, doubt, paths)
	}
	last := bundle.Window{Start: later(w.Start, in[len(in)-1].done.Add(-hold)), End: in[len(in)-1].done}
	looked := last.Start
	var count tally
	for _, r := range in {
		if !r.done.After(last.Start) {
			looked = later(looked, r.done)
			continue
		}
		if r.asked.Sub(looked) > hole && doubt == "" {
			doubt = fmt.Sprintf("there are no %s in %s", noun, span(bundle.Window{Start: looked, End: r.asked}))
		}
		looked = r.done
		count.add(r)
		switch {
		case r.bad != "":
			f.Detail = clock(r.asked) + ": " + r.bad
			f.Differs = append(f.Differs, f.Detail)
		case r.mute != "":
			f.Differs = append(f.Differs, clock(r.asked)+": no answer: "+r.mute)
		}
	}
	met, why := count.judge(share)
	f.Seen = fmt.Sprintf("%d of %d %s are well in %s%s", count.good, count.good+len(f.Differs), noun, span(last), why)
	f.Differs = few(f.Differs)
	if met == NotMet {
		f.Met = NotMet
		return f
	}
	f.Detail = "" // nothing that was tolerated decided
	if so := last.End.Sub(last.Start); so < hold && doubt == "" {
		doubt = fmt.Sprintf("that is %s only", so.Round(100*time.Millisecond))
	}
	if missed := w.End.Sub(last.End); missed > slack(w) && doubt == "" {
		doubt = fmt.Sprintf("nobody looked in the last %s", missed.Round(100*time.Millisecond))
	}
	if doubt != "" {
		f.Seen += "; " + doubt
		return f
	}
	f.Met = met
	return f
}
