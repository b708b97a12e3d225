package rate

import (
	"fmt"
	"math"
)

// BelowTarget is the name of the only rule.
const BelowTarget = "below-target"

// Rules lists the names of all rules.
var Rules = []string{BelowTarget}

// Rule says when the trials of a pair end: once the judged arm is proven to show the incident in less than Target of
// the trials that count, or as soon as that can no longer be proven.
//
// A trial counts if its controls were as expected. The others are set aside, whatever the judged arm did in them.
// Setting a trial aside must not depend on the judged arm: an incident that destroys its own evidence would otherwise
// remove the trials that show it. So a trial that counts but gave no answer counts against the arm. It may have shown
// the incident, and ends the proof.
//
// One counting trial that shows the incident proves that the arm has it and ends the run. So the proof takes Needed
// trials in a row without the incident. An arm with a rate of Target or more gets through them with a probability of
// (1-Target)^Needed <= 1-Confidence. Looking after each trial doesn't raise that probability, because nothing is
// claimed after the first trial that shows the incident. So a pair with such a rate ends as Below with a probability of
// at most 1-Confidence. With several pairs, this holds for each of them.
type Rule struct {
	Confidence float64 // 0.95
	Target     float64 // 0.2: the judged arm is to be shown to have a lower rate than this
	Max        int     // trials in all, including those that are set aside
}

// Tally is what is known about a pair after some trials.
type Tally struct {
	Judged   string // the name of the arm that is judged
	Clear    int    // counting trials in which it didn't show the incident
	Shown    int    // counting trials in which it did
	Broken   int    // counting trials in which it failed in another way
	Failed   int    // trials in which something of relapse failed
	Silent   int    // counting trials that gave no answer about it
	SetAside int    // trials that don't count, because a control was not as expected
	Doubtful int    // trials set aside in which it showed the incident

	Control string // the name of the vulnerable arm
	Bites   Count  // how often the control showed it, of all trials in which it gave an answer
}

// End is how a pair's trials end; "" means that they go on.
type End string

// The ends.
const (
	Below     End = "below"     // the judged arm has a rate below the target
	Shown     End = "shown"     // the judged arm showed the incident
	Broken    End = "broken"    // the judged arm failed in another way, while its controls were well
	Failed    End = "failed"    // something of relapse failed
	Undecided End = "undecided" // the target can't be shown any more, and none of the others is the case
)

// Decision is the rule's answer after some trials. Why says what is known then, or what is missing, without a full
// stop.
type Decision struct {
	End End
	Why string
}

// Done reports whether the pair's trials end.
func (d Decision) Done() bool { return d.End != "" }

// Needed returns how many counting trials without the incident prove a rate below the target: 14 for 20 % at 95 %. It
// returns 0 for a rule that makes no sense.
func (r Rule) Needed() int {
	if r.sensible() != nil {
		return 0
	}
	n := 1
	for math.Pow(1-r.Target, float64(n)) > 1-r.Confidence+1e-12 {
		n++
	}
	return n
}

// Limit returns how many trials may be set aside. If one more is, Needed trials no longer fit into Max.
func (r Rule) Limit() int { return r.Max - r.Needed() }

// DefaultMax returns a Max with room to set aside half as many trials as are needed.
func (r Rule) DefaultMax() int { return r.Needed() + (r.Needed()+1)/2 }

// Validate refuses a rule that can't work. Max is at most twice Needed: if more trials are set aside than count, too
// little is known to call an arm cured.
func (r Rule) Validate() error {
	if err := r.sensible(); err != nil {
		return err
	}
	if n := r.Needed(); r.Max < n || r.Max > 2*n {
		return fmt.Errorf("at most %d trials of each pair: a rate below %s at %s takes %d without the incident (want "+
			"%d to %d)",
			r.Max, Exactly(r.Target), Exactly(r.Confidence), n, n, 2*n)
	}
	return nil
}

func (r Rule) sensible() error {
	switch {
	case !(r.Confidence > 0.5 && r.Confidence < 1):
		return fmt.Errorf("a confidence of %v: want one above 0.5 and below 1, as 0.95", r.Confidence)
	case !(r.Target >= 0.01 && r.Target <= 0.5):
		return fmt.Errorf("a target rate of %v: want one from 0.01 to 0.5, as 0.2", r.Target)
	}
	return nil
}

// Decide returns the rule's decision. It may be called after every trial.
func (r Rule) Decide(t Tally) Decision {
	counted := t.Clear + t.Shown + t.Broken + t.Silent
	switch {
	case t.Failed > 0:
		return Decision{Failed, "something of relapse's own failed"}
	case t.Shown > 0:
		return Decision{Shown,
			fmt.Sprintf("%s showed it in %d of %d trials that count, and one is proof that it has it", t.Judged,
				t.Shown, counted)}
	case t.Broken > 0:
		return Decision{Broken, fmt.Sprintf("%s failed in another way in %d of %d trials that count", t.Judged,
			t.Broken, counted)}
	case t.Silent > 0:
		return Decision{Undecided,
			fmt.Sprintf("%s gave no answer in %d of %d trials whose controls were as expected, which counts against it, as "+
				"an incident may destroy its own evidence: a rate below %s can't be shown any more",
				t.Judged, t.Silent, counted, Exactly(r.Target)) + r.aside(t)}
	case t.Clear >= r.Needed() && t.Doubtful > 0:
		return Decision{Undecided,
			fmt.Sprintf("%s showed it in %d of the trials that were set aside, beside a control that was not as "+
				"expected: that is no proof, and it can't be called cured",
				t.Judged, t.Doubtful) + r.aside(t)}
	case t.Clear >= r.Needed() && r.bites(t):
		return Decision{Below, r.below(t) + r.aside(t)}
	case t.SetAside > r.Limit(), t.Clear+t.SetAside >= r.Max:
		return Decision{Undecided,
			fmt.Sprintf("a rate below %s can't be shown any more: %d of %d trials count, and %d without the incident "+
				"are needed%s",
				Exactly(r.Target), t.Clear, t.Clear+t.SetAside, r.Needed(), r.short(t)) + r.aside(t)}
	}
	return Decision{Why: fmt.Sprintf("%s showed it in none of %d trials that count, and %d are needed%s", t.Judged,
		t.Clear, r.Needed(), r.short(t)) + r.aside(t)}
}

// bites reports whether the vulnerable arm's rate is proven to lie above the target, by an interval that holds after
// every trial. Only then is the judged arm's lower rate the effect of a cure. Below claims both at once, so its
// probability of being wrong is no larger than that of either claim.
func (r Rule) bites(t Tally) bool {
	least, _ := Sequence(t.Bites, 1-r.Confidence)
	return least > r.Target
}

func (r Rule) below(t Tally) string {
	least, _ := Sequence(t.Bites, 1-r.Confidence)
	return fmt.Sprintf("%s showed it in none of %d trials that count: its rate is %s, whenever one stops; %s showed it "+
		"in %s: %s", t.Judged, t.Clear, Named("below "+Exactly(r.Target), oneSided, r.Confidence), t.Control, t.Bites,
		Named("at least "+Percent(least, false), ByTrial, r.Confidence))
}

// short says that the control is what is lacking, if it is. Otherwise it returns "".
func (r Rule) short(t Tally) string {
	if t.Clear < r.Needed() || r.bites(t) {
		return ""
	}
	return fmt.Sprintf("; %s showed it in %s only, which doesn't show a rate above %s", t.Control, t.Bites,
		Exactly(r.Target))
}

func (r Rule) aside(t Tally) string {
	if t.SetAside == 0 {
		return ""
	}
	return fmt.Sprintf("; %d set aside (limit %d)", t.SetAside, r.Limit())
}
