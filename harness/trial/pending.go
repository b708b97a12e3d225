package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/plan"
)

// pendingChecks holds what each arm was last seen to wait for.
type pendingChecks struct {
	mu   sync.Mutex
	arms map[string]pending
}

// pending is what an arm waits for.
type pending struct {
	what  string // for people: the kubelet to call its PLEG unhealthy
	state string // the name of the open check, and what it saw
}

// seenLength is how much of a finding a progress line shows, in characters. The verdict has all of it.
const seenLength = 100

// note keeps a check that isn't met as what arm waits for, with the first of its findings.
func (p *pendingChecks) note(arm string, c plan.Check, findings []check.Finding) {
	if len(findings) == 0 {
		p.clear(arm)
		return
	}
	seen := []rune(findings[0].Seen)
	if len(seen) > seenLength {
		seen = append(seen[:seenLength:seenLength], '…')
	}
	p.set(
		arm,
		pending{
			awaited(c),
			fmt.Sprintf("%s is %s: %s", findings[0].Name, findings[0].Met, string(seen)),
		},
	)
}

// awaited says what is waited for until a check is met.
func awaited(c plan.Check) string {
	if c.Await != "" {
		return c.Await
	}
	for _, one := range c.AnyOf {
		if one.Await != "" {
			return one.Await
		}
	}
	return "the check " + c.Name
}

// clear notes that an arm waits for nothing.
func (p *pendingChecks) clear(arm string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.arms, arm)
}

func (p *pendingChecks) set(arm string, what pending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arms == nil {
		p.arms = map[string]pending{}
	}
	p.arms[arm] = what
}

// describe lists the arms, each with the check that it waits for and what that saw.
func (p *pendingChecks) describe(arms []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range arms {
		if why := p.arms[c].state; why != "" {
			out = append(out, c+" ("+why+")")
		} else {
			out = append(out, c)
		}
	}
	return strings.Join(out, ", ")
}

// sentence says what the arms that are missing wait for, as it goes on after "waiting for". It names arms only where not
// all of the arms wait for the same.
func (p *pendingChecks) sentence(missing, all []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var order []string
	of := map[string][]string{}
	for _, arm := range missing {
		what := cmp.Or(p.arms[arm].what, "its evidence")
		if !slices.Contains(order, what) {
			order = append(order, what)
		}
		of[what] = append(of[what], arm)
	}
	for i, what := range order {
		if len(of[what]) < len(all) {
			order[i] += " (" + strings.Join(of[what], ", ") + ")"
		}
	}
	return strings.Join(order, " and for ")
}
