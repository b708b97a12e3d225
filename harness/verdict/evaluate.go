package verdict

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// Evaluate asks a list of checks about one arm, during a trial or afterwards. It returns their findings and the answer
// over all of them, which is True if every finding is. phase is for checks that name none. An error means that a check
// couldn't be asked, which is a failure of the harness and no answer.
func Evaluate(
	v bundle.View,
	arm, phase string,
	list []plan.Check,
) ([]check.Finding, check.Truth, error) {
	findings := make([]check.Finding, 0, len(list))
	var met []check.Truth
	for _, c := range list {
		f, err := evaluate(v, arm, phase, c)
		if err != nil {
			return nil, check.Unknown, err
		}
		findings = append(findings, f)
		met = append(met, f.Met)
	}
	return findings, check.All(met...), nil
}

// EvaluateSignature asks the signature over the arm's own evidence alone: other evidence can be context and exposure,
// but never one arm's signature. If a part is unknown the signature is unknown, even if another part is False: missing
// evidence must not free an arm of the incident.
func EvaluateSignature(
	v bundle.View,
	arm string,
	list []plan.Check,
) ([]check.Finding, check.Truth, error) {
	findings, met, err := Evaluate(armView{v, arm}, arm, check.Recovery, list)
	if len(only(findings, check.Unknown)) > 0 {
		met = check.Unknown
	}
	return findings, met, err
}

// evaluateBaseline asks the whole signature in the baseline. Here one part that is False is enough for the answer
// False: a baseline of some seconds is too short for a symptom that has to persist.
func evaluateBaseline(
	v bundle.View,
	arm string,
	list []plan.Check,
) ([]check.Finding, check.Truth, error) {
	return Evaluate(armView{v, arm}, arm, check.Baseline, InPhase(list, check.Baseline))
}

// InPhase returns the checks moved to another phase. It drops their offsets, which belong to the old phase.
func InPhase(list []plan.Check, phase string) []plan.Check {
	out := make([]plan.Check, 0, len(list))
	for _, c := range list {
		c.Phase, c.After = phase, nil
		c.AnyOf = InPhase(c.AnyOf, phase)
		out = append(out, c)
	}
	return out
}

func evaluate(v bundle.View, arm, phase string, c plan.Check) (check.Finding, error) {
	phase = cmp.Or(c.Phase, phase)
	if len(c.AnyOf) > 0 {
		return anyOf(v, arm, phase, c)
	}
	f, err := ask(c.Spec, v, check.Scope{Arm: arm, Phase: phase, After: scenario.Length(c.After)})
	if err != nil {
		return f, fmt.Errorf("evaluating check %q: %w", c.Name, err)
	}
	f.Name = c.Name
	return nonNil(f), nil
}

// ask evaluates a check, and turns its panic into an error: a panic is a mistake of the harness, never an answer.
func ask(k check.Check, v bundle.View, s check.Scope) (f check.Finding, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return k.Eval(v, s), nil
}

// anyOf asks a check's alternatives and says which of them held.
func anyOf(v bundle.View, arm, phase string, c plan.Check) (check.Finding, error) {
	parts, _, err := Evaluate(v, arm, phase, c.AnyOf)
	if err != nil {
		return check.Finding{}, fmt.Errorf("evaluating alternatives %q: %w", c.Name, err)
	}
	out := check.Finding{Name: c.Name, AnyOf: parts}
	var met []check.Truth
	var seen, wanted []string
	for _, p := range parts {
		met = append(met, p.Met)
		seen = append(seen, fmt.Sprintf("%s %s: %s", p.Name, p.Met, p.Seen))
		wanted = append(wanted, p.Wanted)
		out.Evidence = append(out.Evidence, p.Evidence...)
		if out.Detail == "" && p.Met == check.True {
			out.Detail = p.Detail
		}
	}
	if out.Met = check.Any(met...); out.Met == check.Unknown {
		i := slices.IndexFunc(parts, func(p check.Finding) bool { return p.Met == check.Unknown })
		out.Code = parts[i].Code
	}
	out.Seen, out.Wanted = strings.Join(seen, "; "), "any of: "+strings.Join(wanted, "; ")
	return nonNil(out), nil
}

// nonNil replaces a finding's nil lists with empty ones, so that JSON shows them as lists.
func nonNil(f check.Finding) check.Finding {
	if f.Differs == nil {
		f.Differs = []string{}
	}
	if f.Evidence == nil {
		f.Evidence = []string{}
	}
	for i := range f.AnyOf {
		f.AnyOf[i] = nonNil(f.AnyOf[i])
	}
	return f
}

// armView is a view of one arm's own evidence. World, phases and timeline stay, because they are no evidence of a
// subject. Objects that all arms share, such as nodes, stay, too: they show when the rest of the world was still, not
// what an arm did. The record of the host stays because it shows how much of the CPUs an arm could get.
type armView struct {
	v   bundle.View
	arm string
}

func (o armView) Artifacts(q bundle.Query) []bundle.Artifact {
	if q.Kind == bundle.Host {
		return o.v.Artifacts(q)
	}
	if q.Arm == "" {
		q.Arm = o.arm
	}
	if q.Arm != o.arm && !(q.Arm == bundle.Shared && q.Kind == bundle.Objects) {
		return nil
	}
	return o.v.Artifacts(q)
}

func (o armView) Open(a bundle.Artifact) (io.ReadCloser, error) {
	if err := o.allows(a); err != nil {
		return nil, err
	}
	return o.v.Open(a)
}

func (o armView) Remember(
	a bundle.Artifact,
	as string,
	grow func(any, io.Reader) (any, error),
) (any, error) {
	if err := o.allows(a); err != nil {
		return nil, err
	}
	return o.v.Remember(a, as, grow)
}

func (o armView) allows(a bundle.Artifact) error {
	if a.Arm != o.arm && a.Kind != bundle.Host && !(a.Arm == bundle.Shared && a.Kind == bundle.Objects) {
		return fmt.Errorf("opening %s: it belongs to arm %q and is no evidence of %q's signature", a.Path, a.Arm,
			o.arm)
	}
	return nil
}

func (o armView) Phase(arm, phase string) (bundle.Window, bool) { return o.v.Phase(arm, phase) }
func (o armView) Timeline() []event.Event                       { return o.v.Timeline() }
func (o armView) Constant(arm, name string) (int64, bool)       { return o.v.Constant(arm, name) }
func (o armView) World() bundle.World                           { return o.v.World() }
