package trial

import (
	"fmt"
	"strings"
	"sync"

	"github.com/kube-relapse/relapse/harness/check"
)

// pendingChecks holds the check that each arm was last seen to wait for.
type pendingChecks struct {
	mu   sync.Mutex
	arms map[string]string
}

// seenLength is how much of a finding a progress line shows, in characters. The verdict has all of it.
const seenLength = 100

// note keeps the first of the findings as the one that arm waits for. Without findings the arm waits for nothing.
func (p *pendingChecks) note(arm string, findings []check.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arms == nil {
		p.arms = map[string]string{}
	}
	delete(p.arms, arm)
	if len(findings) > 0 {
		seen := []rune(findings[0].Seen)
		if len(seen) > seenLength {
			seen = append(seen[:seenLength:seenLength], '…')
		}
		p.arms[arm] = fmt.Sprintf("%s is %s: %s", findings[0].Name, findings[0].Met, string(seen))
	}
}

// describe lists the arms, each with the check that it waits for.
func (p *pendingChecks) describe(arms []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range arms {
		if why := p.arms[c]; why != "" {
			out = append(out, c+" ("+why+")")
		} else {
			out = append(out, c)
		}
	}
	return strings.Join(out, ", ")
}
