package bundle

import "time"

// World is what was resolved at run time and can't be known from the plan: what the verdict names as versions and
// digests.
type World struct {
	Format    int               `json:"format,omitempty"` // see Format; the writer sets it
	StartedAt time.Time         `json:"startedAt"`
	Run       string            `json:"run"`
	Plan      string            `json:"plan"`     // SHA-256 of the run's plan.json
	Scenario  string            `json:"scenario"` // SHA-256 of the scenario file that was planned
	Versions  map[string]string `json:"versions"` // relapse, go, kind, kubernetes, engine, nodeImage, kernel
	Arms      []ArmWorld        `json:"arms"`
	Modelled  []string          `json:"modelled"` // what was only imitated, one sentence each
	Computed  map[string]string `json:"computed"` // fault parameter -> value and how it follows from the constants
	Deviates  []string          `json:"deviates"` // options that weaken the trial: --no-faults, swapped arms, …
}

// Format is the number of what every trial records. Bundles without one are of versions that told no number, some of
// which had no record of the host. From 1 on each has it, and limits are not only relative.
const Format = 1

// ArmWorld is what was resolved for one arm.
type ArmWorld struct {
	Arm       string           `json:"arm"`
	Node      string           `json:"node,omitempty"`
	Namespace string           `json:"namespace,omitempty"` // the arm's own, where it has one
	Digest    string           `json:"digest"`              // SHA-256 of the binary that was built for the arm, hex
	Graph     string           `json:"graph"`               // hash of the module graph it was built from
	Flags     []string         `json:"flags"`
	GoVersion string           `json:"goVersion"`
	Changes   []string         `json:"changes"` // everything that was changed to build it: mutations, replaced modules
	Constants map[string]int64 `json:"constants"`
	// Assumed are the values that faults and checks use for constants of the subject that are unknown.
	Assumed map[string]int64 `json:"assumed,omitempty"`
}
