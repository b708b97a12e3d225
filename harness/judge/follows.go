package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// follows returns an error if a trial's own plan differs from what the run's plan has for the trial. Both are written
// in one form and compared byte for byte. A trial is judged by its own plan, but the run's plan is the one that was
// made, shown and signed. If the trial's plan lacked a check that the run's plan has, the trial would be judged more
// mildly than anybody can see.
func (e *bundles) follows(name string, own plan.Plan) error {
	mine := path.Join(trialsDir, name, bundle.PlanFile)
	planned, err := e.planned(name, own.Trials[0].Pair)
	if err != nil {
		return fmt.Errorf("%s contradicts the run's %s: %w", mine, bundle.PlanFile, err)
	}
	want, err := canonical(planned)
	if err != nil {
		return err
	}
	have, err := canonical(&own)
	if err != nil {
		return err
	}
	if at := differAt(have, want); at != "" {
		return fmt.Errorf(
			"%s is not what the run's %s has for this trial: %s",
			mine,
			bundle.PlanFile,
			at,
		)
	}
	return nil
}

// planned returns the run's plan with only the named trial in it. An open-ended run plans the first trial of each pair,
// and all others are like that one.
func (e *bundles) planned(name, pair string) (*plan.Plan, error) {
	p := *e.plan
	at := slices.IndexFunc(p.Trials, func(t plan.Trial) bool { return t.ID == name })
	if at < 0 && p.Until != nil {
		at = slices.IndexFunc(p.Trials, func(t plan.Trial) bool { return t.Pair == pair })
	}
	if at < 0 {
		return nil, fmt.Errorf("that has no trial %s", name)
	}
	one := p.Trials[at]
	one.ID = name
	p.Trials = []plan.Trial{one}
	return &p, nil
}

// canonical returns a plan in the one form in which equal plans have equal bytes: keys in order, and each text escaped
// alike.
func canonical(p *plan.Plan) ([]byte, error) {
	raw, err := plan.Encode(p)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber() // a seed has more digits than a float64 holds
	var all any
	if err := in.Decode(&all); err != nil {
		return nil, fmt.Errorf("reading the plan of %s again: %w", p.Scenario, err)
	}
	return json.MarshalIndent(all, "", " ")
}

// differAt describes the first line in which two texts differ, "" if none does.
func differAt(have, want []byte) string {
	mine, runs := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(mine), len(runs)) {
		line := func(all []string) string {
			if i >= len(all) {
				return ""
			}
			return strings.TrimSpace(all[i])
		}
		if line(mine) != line(runs) {
			return fmt.Sprintf(
				"it says %.100q where the run's says %.100q",
				line(mine),
				line(runs),
			)
		}
	}
	return ""
}
