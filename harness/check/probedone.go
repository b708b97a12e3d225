package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

func init() {
	register(kind{
		Name: "probeDone",
		Doc: "The subject did a piece of work that a probe asked of it, to the end.\n\n" +
			"Heartbeats and counters show that a subject ticks, a probe that it works: a pod ran and is gone, a " +
			"collection was emptied. Met when every step was seen, not met when the subject was asked and didn't " +
			"do one in its time. A probe that the end of the phase cut off, that couldn't ask, or that left no " +
			"record in the phase is unknown.",
		Example: "name: pod-runs\nkind: probeDone\nphase: recovery\nspec:\n  probe: pod\n",
		Meets:   `{"probe":"works"}`,
		Differs: `{"probe":"idle"}`,
		New:     func() Check { return &ProbeDone{} },
	})
}

// ProbeDone asks how a probe ended.
type ProbeDone struct {
	Probe string `json:"probe" jsonschema:"the name of a load that is a probe, in the phase of the check"`
}

// Reads names the probes' records.
func (c *ProbeDone) Reads() []bundle.Kind { return []bundle.Kind{bundle.WorkProbe} }

// Needs names the probe.
func (c *ProbeDone) Needs() Needs { return Needs{Probes: []string{c.Probe}} }

// Validate refuses a check that names no probe.
func (c *ProbeDone) Validate() error {
	return refuse(c.Probe == "", "probe is empty (want the name of a load)")
}

// Describe says in words what is asked.
func (c *ProbeDone) Describe() string { return "every step of the probe " + c.Probe + " is done" }

// Eval reads the records of the probe that began in the window.
func (c *ProbeDone) Eval(v bundle.View, s Scope) Finding {
	q, ok := ask(c, v, s, c.Describe())
	if !ok {
		return q.Finding
	}
	var parts []Tri
	var seen []string
	for _, a := range v.Artifacts(bundle.Query{Kind: bundle.WorkProbe, Cell: q.cell}) {
		p, err := document[bundle.ProbeRecord](v, a, "a probe's record")
		if err != nil {
			parts, seen = append(parts, Unknown), append(seen, err.Error())
			continue
		}
		if p.Name != c.Probe || !contains(q.window, p.Start) {
			continue
		}
		met, said := judged(p)
		parts, seen = append(parts, met), append(seen, said)
		q.Evidence = append(q.Evidence, a.Path)
	}
	if len(parts) == 0 {
		return q.unknown(fmt.Sprintf("the probe %s left no record of the phase %s in %s", c.Probe, q.phase, q.cell))
	}
	return q.answer(All(parts...), strings.Join(seen, "; "))
}

// judged says what a record shows, step by step of the last try, and what that comes to.
func judged(p bundle.ProbeRecord) (Tri, string) {
	var said []string
	all := len(p.Steps) > 0
	for _, st := range p.Steps {
		if st.Try != p.Steps[len(p.Steps)-1].Try {
			continue // an earlier one is why there was another
		}
		if st.Seen.IsZero() {
			all = false
			said = append(said, "not "+st.Step)
			continue
		}
		one := fmt.Sprintf("%s after %s", st.Step, st.Seen.Sub(st.Asked).Round(10*time.Millisecond))
		if st.What != "" {
			one += " (" + st.What + ")"
		}
		said = append(said, one)
	}
	out := p.Work + ": " + strings.Join(said, ", ")
	if n := len(p.Steps); n > 0 && p.Steps[n-1].Try > 1 {
		out += fmt.Sprintf(", in try %d", p.Steps[n-1].Try)
	}
	switch {
	case p.Ended == bundle.ProbeDone && all:
		return Met, out
	case p.Ended == bundle.ProbeDone:
		return Unknown, out + "; it says that it is done, and not every step is there"
	case p.Ended == bundle.ProbeFailed:
		return NotMet, out + "; " + p.Why
	}
	return Unknown, out + "; " + strings.Join([]string{p.Ended, p.Why}, ": ")
}
