package judge

import (
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/judge/history"
)

// Entries returns the lines of the history for one run, whose directory is dir.
func Entries(v Verdict, dir string) []history.Entry {
	var out []history.Entry
	for _, t := range v.Trials {
		began, took := t.World.StartedAt, t.Seconds()
		for _, a := range t.Arms {
			e := history.Entry{
				Time:     began,
				Scenario: v.Scenario,
				Pair:     t.Pair,
				Provider: t.Provider,
				Arm:      a.Name,
				Role:     a.Role,
				Outcome:  string(a.Outcome),
				Expected: string(a.Expected),
				Verdict:  string(t.Verdict), Versions: t.World.Versions, Seed: v.Seed, Seconds: took,
				Run: filepath.Base(dir), Trial: t.ID,
				Manifest: t.Manifest, Relapse: t.World.Versions["relapse"],
				Apart: t.Apart,
			}
			for _, c := range t.World.Arms {
				if c.Arm == a.Name {
					e.Digest = c.Digest
				}
			}
			out = append(out, e)
		}
	}
	return out
}

// Seconds returns how long a trial took, without what was built before it; 0 if its timeline is empty.
func (t Trial) Seconds() float64 {
	if len(t.Events) == 0 {
		return 0
	}
	return t.Events[len(t.Events)-1].Time.Sub(t.Events[0].Time).
		Seconds() -
		secondsOf(
			"build",
			t.Events,
		)
}

// secondsOf returns how long a stage took.
func secondsOf(stage string, events []event.Event) (sum float64) {
	for _, e := range events {
		if seconds, ok := e.Fields["seconds"].(float64); ok && e.Type == event.StageDone && e.Stage == stage {
			sum += seconds
		}
	}
	return sum
}
