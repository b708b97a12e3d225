package trial

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// neverComes is called for a fault or load that can't come any more in an arm, because what it comes after ended
// without an effect. If the arm is the reason it is judged by what there is. Else the error ends the trial: whatever came of it
// would prove nothing. missed is the event that records it.
func (i *injection) neverComes(arm, missed string, item scenario.ItemHeader) error {
	after, what := item.After.Name, "is not injected"
	if missed == event.LoadMissed {
		what = "doesn't run"
	}
	why := fmt.Sprintf(
		"%s never took effect, so %s, which comes after it, %s",
		after,
		item.Name,
		what,
	)
	reason, err := i.reasonOf(arm, after)
	if err != nil {
		return err
	}
	if reason == "" {
		return fmt.Errorf(
			"%s: %s; the arm is not the reason, because %s took effect in no other arm, and no restart of "+
				"the subject and no loss of its steady state was seen; see in the bundle what became of %s, and with "+
				"relapse explain when its kind takes effect",
			arm,
			why,
			after,
			after,
		)
	}
	i.miss(arm, missed, item.Name, why+": "+reason)
	return nil
}

// notInjected is called for a fault whose injection failed. If the subject restarted, the arm is the reason.
func (i *injection) notInjected(f aimedFault, err error) error {
	if restarted, _ := i.seesRestart(f.at.Arm); !restarted {
		return fmt.Errorf("injecting %s into %s: %w", f.Name, f.at.Arm, err)
	}
	i.miss(
		f.at.Arm,
		event.FaultMissed,
		f.Name,
		fmt.Sprintf("its subject restarted, and %s can't be injected any more: %v",
			f.Name, err),
	)
	return nil
}

// atDeadline is called before the end of a phase that ends at its deadline. Loads whose turn didn't come by then are
// missed. They are not if the phase ends because something failed.
func (i *injection) atDeadline() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.late = i.ctx.Err() == nil
}

// tooLate records that a load's turn hadn't come when the phase ended at its deadline, and what the load waited for. err
// is what ended the waiting; nil is that the load is missed for another reason.
func (i *injection) tooLate(arm string, item scenario.ItemHeader, err error) {
	i.mu.Lock()
	late := i.late
	i.mu.Unlock()
	if err == nil || !late {
		return
	}
	waits := fmt.Sprintf(
		"it starts %s after the beginning of the phase",
		scenario.Length(item.At),
	)
	if after := item.After; after != nil {
		waits = fmt.Sprintf("it comes after %s, which had not taken effect", after.Name)
		if i.progress.now(i.placeOf(arm, after.Name), after.Name).began > 0 {
			waits = fmt.Sprintf(
				"it starts %s after %s took effect",
				scenario.Length(after.Plus),
				after.Name,
			)
		}
	}
	i.miss(
		arm,
		event.LoadMissed,
		item.Name,
		fmt.Sprintf("%s had not run when the phase %s ended at its deadline: %s", item.Name,
			i.phase, waits),
	)
}

// miss records with an event that a fault or load didn't come in an arm, which is the reason.
func (i *injection) miss(arm, missed, name, why string) {
	i.mu.Lock()
	i.arms[arm].missed[name] = why
	i.mu.Unlock()
	field := "fault"
	if missed == event.LoadMissed {
		field = "load"
	}
	i.trial.events.Emit(event.Event{Type: missed, Arm: arm, Message: why, Fields: map[string]any{field: name}})
}

// reasonOf says why an arm is the reason that a load or fault never took effect in it; "" if nothing shows that it is.
func (i *injection) reasonOf(arm, name string) (string, error) {
	i.mu.Lock()
	missed := maps.Clone(i.arms[i.placeOf(arm, name)].missed)
	i.mu.Unlock()
	if why, ok := missed[name]; ok {
		return why, nil
	}
	other, err := i.elsewhere(arm, name)
	if err != nil || other != "" {
		return fmt.Sprintf("it did in %s", other), err
	}
	restarted, err := i.seesRestart(arm)
	if err != nil || restarted {
		return "its subject restarted", err
	}
	if ill := i.trial.live.ill(arm, i.phase); ill != "" || len(missed) == 0 {
		return ill, nil
	}
	return slices.Min(slices.Collect(maps.Values(missed))), nil // without that, nothing went as planned
}

// seesRestart reports whether an arm's subject restarted. It waits for the evidence, which may be recorded late.
func (i *injection) seesRestart(arm string) (bool, error) {
	for asked := time.Now(); !i.trial.live.restarted(arm); {
		if time.Since(asked) > evidenceLag {
			return false, nil
		}
		if err := wait(i.arms[arm].ctx, lookEvery); err != nil {
			return false, err
		}
	}
	return true, nil
}

// elsewhere returns another arm in which a load took effect; "" if it did in none. It waits for arms in which the load
// still may.
func (i *injection) elsewhere(arm, load string) (string, error) {
	for other := range i.arms {
		if other == arm || other == bundle.Shared || !slices.ContainsFunc(i.trial.items.loadsOf(other, i.phase),
			func(l plan.Load) bool { return l.Name == load }) {
			continue
		}
		if _, err := i.progress.await(i.arms[arm].ctx, other, load, func(p state) bool { return p.began > 0 || p.over }); err != nil {
			return "", err
		}
	}
	if other, ok := i.trial.began.Load(load); ok { // it may have been in an arm that had its turn before
		return other.(string), nil
	}
	return "", nil
}

// ill says which check of the steady state an arm is known to have lost in a phase; "" if there is none.
func (l *live) ill(arm, phase string) string {
	findings, _, err := verdict.Evaluate(
		l.writer.View(),
		arm,
		phase,
		verdict.InPhase(l.plan.Steady, phase),
	)
	if !l.asked(err) {
		return ""
	}
	for _, f := range findings {
		if f.Met == check.False {
			return fmt.Sprintf("its steady state is lost: %s: %s", f.Name, f.Seen)
		}
	}
	return ""
}
