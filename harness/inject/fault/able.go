package fault

import (
	"encoding/json"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// What only some faults do or have. Whoever plans or runs a fault asks for these.

// Computer is a Fault whose parameters follow from the subject's constants and from the trial's other faults. Compute
// returns the fault with its open parameters filled in, for all arms alike, and explains each in a sentence; the
// receiver doesn't change. It is called once for each trial, before anything is injected. constants has a map for each
// arm, without unknown constants.
type Computer interface {
	Compute(
		constants []map[string]int64,
		others []Fault,
	) (computed Fault, explained map[string]string, err error)
}

// TooLargeError is the error of a Computer for which no possible parameters are large enough for the known constants.
type TooLargeError struct{ Why string }

func (e *TooLargeError) Error() string { return e.Why }

// RuntimeSlower is a Fault that delays each call of a kubelet to its container runtime. RuntimeDelay returns by how
// much.
type RuntimeSlower interface{ RuntimeDelay() time.Duration }

// Assumer is a Computer that assumes values for constants that are unknown in some arm. Assumed returns these values,
// which checks must use, too.
type Assumer interface{ Assumed() map[string]int64 }

// Maker is a Fault that records what it sees of the subject. Makes returns the kinds of artifacts that it records.
type Maker interface{ Makes() []bundle.Kind }

// ForAll is a Fault that may act on more than the arm's own part of a cluster. ForAll returns whether it does: then arms
// that share a cluster can't each have it.
type ForAll interface{ ForAll() bool }

// Modeller is a Fault that only imitates something. Modelled returns sentences about that for the verdict.
type Modeller interface{ Modelled() []string }

// Restarter is a Fault that can make a component another process. Restarts reports whether it does so to a component
// that runs on its nodes. It records each process that it ends as a bundle.EndedProcess, before it ends the process:
// whoever sees the other process must be able to know why.
type Restarter interface{ Restarts(component string) bool }

// Reflagger is a Fault that gives a component other flags. Flagged returns the component and the flags, none if the
// fault leaves flags alone.
type Reflagger interface {
	Flagged() (component string, flags map[string]string)
}

// Replacer is a Fault that can put another of its arm's builds in place of the one that runs. Replaces returns the
// component and the number of the build, from 1, or 0 for the last. The component is "" if the fault replaces none.
type Replacer interface {
	Replaces() (component string, build int)
}

// LeaseLoser is a Fault that can keep a component from renewing its lease for so long that the component, which elects a
// leader, ends itself. LosesLease returns the component, "" if there is none.
type LeaseLoser interface{ LosesLease() (component string) }

// Converter is a Fault that can change by what a CustomResourceDefinition converts. Converts returns the definition's
// name, "" if there is none.
type Converter interface{ Converts() (definition string) }

// Redefiner is a Fault that can change CustomResourceDefinitions, and later brings back what it found. Redefines reports
// whether it changes the one with a name.
type Redefiner interface{ Redefines(definition string) bool }

// Webhooker is a Fault that can make webhooks. MakesWebhooks reports whether it makes some that the API server calls.
type Webhooker interface{ MakesWebhooks() bool }

// Prover is a Fault that counts as in force once the harness's own request felt it, which proves nothing of the subject.
// Proof returns the kind and the spec of the check by which the exposure has to show that the subject met the fault with a
// name; kind is "" if nothing more is to be shown.
type Prover interface {
	Proof(name string) (kind string, spec json.RawMessage)
}
