package verdict

import (
	"slices"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// BuiltIn holds the answers to the checks that every arm of every scenario gets, as the outcome table takes them. Ready
// is False for an arm that never got Ready although another arm did, and True for an arm whose steady state held.
type BuiltIn struct{ Binary, Process, Ready check.Truth }

func builtIn(in Inputs) BuiltIn {
	b := BuiltIn{Binary: in.Binary, Process: in.Process}
	switch {
	case in.NeverReady:
		b.Ready = check.False
	case in.Steady == check.True:
		b.Ready = check.True
	}
	return b
}

// Said returns the answers that an arm's findings give to the check that a ground names. The check may be an
// alternative of another one. Said returns nothing if the check was not asked.
func (a Arm) Said(g scenario.Ground) []check.Truth {
	if g.List == scenario.BuiltInList {
		return []check.Truth{*a.BuiltIn.truthOf(g.Name)}
	}
	var out []check.Truth
	var walk func([]check.Finding)
	walk = func(list []check.Finding) {
		for _, f := range list {
			if f.Name == g.Name {
				out = append(out, f.Met)
			}
			walk(f.AnyOf)
		}
	}
	walk(*a.list(g.List))
	return out
}

// Without returns the outcome that the same evidence gives without the answers of some checks, all left out at once. A
// check that is True vouches for something. Without the check nothing does, so its answer becomes Unknown. A check that
// is False or Unknown objects. Without it the other checks of its list decide, and a list without any other check
// doesn't object.
func (a Arm) Without(grounds []scenario.Ground) Outcome {
	for _, list := range lists {
		*a.list(list) = without(*a.list(list), namesInList(list, grounds))
	}
	in := a.inputs()
	for _, g := range grounds {
		if g.List != scenario.BuiltInList {
			continue
		}
		answer := a.BuiltIn.truthOf(g.Name)
		*answer = withdrawn(*answer)
		in.Binary, in.Process = a.BuiltIn.Binary, a.BuiltIn.Process
		in.NeverReady = a.BuiltIn.Ready == check.False
	}
	outcome, _ := OutcomeOf(in)
	return outcome
}

// inputs returns the arm's findings as columns of the outcome table.
func (a Arm) inputs() Inputs {
	in := Inputs{
		Steady:     sum(a.Steady),
		Baseline:   sum(a.Baseline),
		Exposure:   sum(a.Exposure),
		Signature:  sum(a.Signature),
		Healed:     sum(a.Healed),
		Binary:     a.BuiltIn.Binary,
		Process:    a.BuiltIn.Process,
		NeverReady: a.BuiltIn.Ready == check.False,
		Missed:     a.missed,
	}
	if len(only(a.Signature, check.Unknown)) > 0 {
		in.Signature = check.Unknown
	}
	if a.Outcome == Error {
		in.HarnessError = a.Reason
	}
	return in
}

func sum(list []check.Finding) check.Truth {
	var met []check.Truth
	for _, f := range list {
		met = append(met, f.Met)
	}
	return check.All(met...)
}

// lists are the lists of checks that a ground can be in.
var lists = []string{
	scenario.SteadyList,
	scenario.ExposureList,
	scenario.SignatureList,
	scenario.HealedList,
}

func (a *Arm) list(name string) *[]check.Finding {
	switch name {
	case scenario.SteadyList:
		return &a.Steady
	case scenario.ExposureList:
		return &a.Exposure
	case scenario.SignatureList:
		return &a.Signature
	}
	return &a.Healed
}

func (b *BuiltIn) truthOf(name string) *check.Truth {
	switch name {
	case scenario.BuiltInBinary:
		return &b.Binary
	case scenario.BuiltInProcess:
		return &b.Process
	}
	return &b.Ready
}

// namesInList returns the names of those grounds that are in a list.
func namesInList(list string, grounds []scenario.Ground) []string {
	var out []string
	for _, g := range grounds {
		if g.List == list {
			out = append(out, g.Name)
		}
	}
	return out
}

// withdrawn returns what is left of an answer that is taken back: Unknown if it was True, else True.
func withdrawn(t check.Truth) check.Truth {
	if t == check.True {
		return check.Unknown
	}
	return check.True
}

// without returns a list of findings without the answers of those with some names. If that drops all findings, one that
// doesn't object takes their place.
func without(list []check.Finding, names []string) []check.Finding {
	if len(names) == 0 {
		return list
	}
	out, dropped := []check.Finding{}, false
	for _, f := range list {
		if slices.Contains(names, f.Name) {
			if f.Met != check.True {
				dropped = true
				continue
			}
			f.Met = check.Unknown
		} else if len(f.AnyOf) > 0 {
			f.AnyOf = without(f.AnyOf, names)
			var met []check.Truth
			for _, alternative := range f.AnyOf {
				met = append(met, alternative.Met)
			}
			f.Met = check.Any(met...)
		}
		out = append(out, f)
	}
	if dropped && len(out) == 0 {
		out = append(out, check.Finding{Met: check.True})
	}
	return out
}
