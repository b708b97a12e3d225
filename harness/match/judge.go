package match

import (
	"cmp"
	"fmt"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// subject is the evidence of one component in one place. It comes from one process, or from several that followed each
// other.
type subject struct {
	component string // "" if it isn't known to be the component's: it can show the incident, never its absence
	owner     owner  // whose it is, and what shows that
	place     string
	versions  []string // as the evidence itself says
	unsure    string   // why these may not be the versions of all of the evidence; "" if they are
	changed   string   // how a build of relapse's own differs from that version
	teaches   bool     // some of it stands in a text that explains something to others
	fixture   bool     // the only change: it is a program of relapse's own
	arm       string
	view      view
	lines     []line
	counted   []counted // dumps without states, which no sign asks for
}

// evidencePhase is the name of the phase that covers all of the evidence.
const evidencePhase = "evidence"

// judge asks all signs of one subject, and weighs them together with the subject's version.
func (e *evidence) judge(s *scenario.Scenario, sub *subject) (Judgment, error) {
	signs, err := sub.signs(s)
	if err != nil {
		return Judgment{}, err
	}
	versions, unsure := e.versionsOf(s, sub)
	g := gate(s, versions, unsure)
	if sub.anothers(s.Spec.Subject) {
		versions, g = nil, gated{why: "its version says nothing"}
	}
	if sub.changed != "" && !(sub.fixture && s.Spec.Match.Module != "") {
		g = gated{
			why: "it is " + cmp.Or(sub.version(), "a build") + " with changes: " + sub.changed,
		}
	}
	j := weigh(s, sub, signs, g)
	if len(versions) == 1 && (unsure == "" || len(sub.versions) > 0) {
		j.Version = versions[0]
	}
	return j, nil
}

// version returns the version that a subject says it has, "" if it says none or several.
func (sub *subject) version() string {
	if len(sub.versions) != 1 {
		return ""
	}
	return sub.versions[0]
}

// anothers reports whether something shows that the evidence is of another program than the component.
func (sub *subject) anothers(component string) bool {
	return sub.owner.program != "" && sub.owner.program != component
}

// signs answers all signs of a scenario from the subject's evidence.
func (sub *subject) signs(s *scenario.Scenario) (out []Sign, err error) {
	for _, sign := range s.Spec.Match.Signs {
		one, err := sub.sign(sign)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// weigh draws a judgment from the signs, and from whether the version is affected.
func weigh(s *scenario.Scenario, sub *subject, signs []Sign, g gated) Judgment {
	j := Judgment{
		Component: sub.component,
		Whose:     sub.owner.String(),
		Place:     sub.place,
		Version:   sub.version(),
		Signs:     signs,
	}
	var decisive, suspicious, out, open *Sign
	settle := map[string]string{}
	for i, sign := range s.Spec.Match.Signs {
		one := &signs[i]
		settle[sign.Name] = sign.Settle
		switch {
		case one.Met == check.True && sign.Is == scenario.Decisive:
			decisive = cmp.Or(decisive, one)
		case one.Met == check.True, one.Likely:
			suspicious = cmp.Or(suspicious, one)
		case one.Met == check.False && sign.RulesOut:
			out = cmp.Or(out, one)
		case one.Met == check.Unknown && (sign.Is == scenario.Decisive || sign.RulesOut):
			open = cmp.Or(open, one)
		}
	}
	switch {
	case g.affected == check.False && decisive != nil:
		j.Suspected, j.Why = true, fmt.Sprintf(
			"%s, which is decisive, but %s: a regression, another bug of the same shape, "+
				"or not that version",
			decisive.describe(),
			g.why,
		)
	case g.affected == check.False && !g.unsure && sub.component != "":
		j.Met, j.Why = check.False, g.why
	case decisive != nil && sub.owner.program != s.Spec.Subject:
		j.Suspected, j.Why = true, decisive.describe()+", which is decisive, but "+sub.owner.describe(s.Spec.Subject)
	case decisive != nil && sub.teaches:
		j.Suspected, j.Why = true, decisive.describe()+", which is decisive, but the text explains something to others: it may be an example"
	case decisive != nil:
		j.Met, j.Why = check.True, decisive.describe()+"; "+g.why+"; "+sub.owner.describe(s.Spec.Subject)
	case sub.anothers(s.Spec.Subject):
		j.Why = sub.owner.describe(s.Spec.Subject)
	case out != nil && g.required && sub.component != "": // two things speak against it
		j.Met, j.Why = check.False, fmt.Sprintf("%s: %s; and %s", out.Name, out.Seen, g.why)
	case suspicious != nil:
		j.Suspected, j.Why = g.affected != check.False || g.unsure ||
			suspicious.Likely, suspicious.describe()
		if g.affected == check.False {
			j.Why += "; but " + g.why
		}
		if out != nil {
			j.Why += fmt.Sprintf("; but when %s was taken: %s", out.Name, out.Seen)
		}
	case sub.component == "":
		j.Why = "it isn't known whose evidence it is"
	case out != nil:
		j.Met, j.Why = check.False, fmt.Sprintf("%s: %s", out.Name, out.Seen)
	case open != nil:
		j.Why = fmt.Sprintf("%s: %s", open.Name, open.Seen)
	default:
		j.Why = "nothing that is here could rule it out"
	}
	if g.unsure && j.Met == check.Unknown && !j.Suspected {
		j.Why += "; it may have the fix: " + g.why
	}
	if j.Met == check.Unknown {
		j.Settle = settle[j.Signs[0].Name]
		if open != nil {
			j.Settle = settle[open.Name]
		}
	}
	return j
}

// versionsOf returns the versions that a subject may have: those of the scenario's module, or those that the subject
// says, or those that are known of the component: resources list all of its processes, and each other process says only
// its own. unsure says why these may not be its own, "" if they are.
func (e *evidence) versionsOf(s *scenario.Scenario, sub *subject) (all []string, unsure string) {
	switch m := s.Spec.Match.Module; {
	case m != "":
		return sub.moduleVersions(m)
	case len(sub.versions) > 0:
		return sub.versions, sub.unsure
	}
	for _, o := range e.objects {
		if o.component == s.Spec.Subject {
			all = union(all, o.version)
		}
	}
	if len(all) > 0 {
		return all, ""
	}
	if others := e.versions[s.Spec.Subject]; len(others) > 0 {
		return others, "as another process of it says"
	}
	for _, other := range e.sources {
		for _, v := range other.versionsOf(s.Spec.Subject) {
			if v.by == s.Spec.Subject {
				all = union(all, v.version)
			}
		}
	}
	return all, "as another file says"
}

// describe returns the name of a sign that is met, and what was seen.
func (s *Sign) describe() string { return fmt.Sprintf("%s: %s", s.Name, s.Seen) }
