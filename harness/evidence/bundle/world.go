package bundle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// World has the facts that were resolved at run time and can't be known from the plan. The verdict takes its versions
// and digests from here.
type World struct {
	Format    int               `json:"format,omitempty"` // see format; the writer sets it
	StartedAt time.Time         `json:"startedAt"`
	Run       string            `json:"run"`
	Plan      string            `json:"plan"`     // SHA-256 of the run's plan.json
	Scenario  string            `json:"scenario"` // SHA-256 of the scenario file that was planned
	Versions  map[string]string `json:"versions"` // relapse, go, kind, kubernetes, engine, nodeImage, kernel
	Arms      []ArmWorld        `json:"arms"`
	Modelled  []string          `json:"modelled"` // what was only imitated, one sentence for each
	Computed  map[string]string `json:"computed"` // fault parameter -> value and how it follows from the constants
	Redacted  *Redacted         `json:"redacted,omitempty"`
	Deviates  []string          `json:"deviates"` // what weakens the trial: --no-faults, swapped arms, programs that came by different ways, …
}

// format is the number of the set of records that every trial makes. Bundles without a number come from earlier
// versions, some of which did not record the host. From 1 on every bundle has that record, and a limit must not depend
// on the baseline alone.
const format = 1

// ArmWorld is what was resolved for one arm.
type ArmWorld struct {
	Arm       string           `json:"arm"`
	Node      string           `json:"node,omitempty"`
	Namespace string           `json:"namespace,omitempty"` // the arm's own namespace, if it has one
	Digest    string           `json:"digest"`              // SHA-256 of the binary that was built for the arm, hex
	Graph     string           `json:"graph"`               // hash of the module graph it was built from
	Flags     []string         `json:"flags"`
	GoVersion string           `json:"goVersion"`
	Changes   []string         `json:"changes"` // everything that was changed to build it: mutations, replaced modules
	Constants map[string]int64 `json:"constants"`
	// Before has the builds that the arm ran before that one, in order.
	Before []EarlierBuild `json:"before,omitempty"`
	// Assumed has the values that faults and checks use for unknown constants of the subject.
	Assumed map[string]int64 `json:"assumed,omitempty"`
}

// EarlierBuild is a build that an arm ran before its last one.
type EarlierBuild struct {
	Digest  string   `json:"digest"`
	Changes []string `json:"changes,omitempty"` // everything that was changed to build it
}

// Digests returns the digests of all builds of the arm, in order.
func (a ArmWorld) Digests() (all []string) {
	for _, b := range a.Before {
		all = append(all, b.Digest)
	}
	return append(all, a.Digest)
}

// Program returns what tells whether two arms run the same: the digests of all builds in order. It is "" if one is not
// known.
func (a ArmWorld) Program() string {
	all := a.Digests()
	if slices.Contains(all, "") {
		return ""
	}
	return strings.Join(all, " ")
}

// EarlierName returns what the index of a run calls the i-th build, from 0, that an arm ran before its last one: fixed/1.
func EarlierName(arm string, i int) string { return fmt.Sprintf("%s/%d", arm, i+1) }

// ArmDigests returns the SHA-256 of each arm's binary, by the arm's name. What the arm ran before has the name that
// EarlierName gives.
func (w World) ArmDigests() map[string]string {
	out := map[string]string{}
	for _, a := range w.Arms {
		out[a.Arm] = a.Digest
		for i, b := range a.Before {
			out[EarlierName(a.Arm, i)] = b.Digest
		}
	}
	return out
}
