package track

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Found is what a directory has for a scenario's record.
type Found struct {
	Scenario string
	Runs     []Run
	Oracles  []Oracle
}

// Read reads the results in the directory of a run, or in that of an oracle. It judges a run's bundles again, and takes
// an oracle's grades from its oracle.json. A run that says nothing about the scenario's own arms is an error.
func Read(dir string) (Found, error) {
	dir, err := filepath.EvalSymlinks(dir) // runs/latest is a link, and a result names the run
	if err != nil {
		return Found{}, fmt.Errorf("reading a run: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, campaign.OracleFile))
	if err == nil {
		return readOracle(dir, raw)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Found{}, err
	}
	v, err := report.JudgeRun(dir)
	if err != nil {
		return Found{}, err
	}
	runs, err := RunsOf(v)
	if err == nil && !v.Index.Complete {
		err = errors.New("it isn't a whole run, and whoever ends one chooses when")
	}
	if err != nil {
		return Found{}, fmt.Errorf("recording %s: %w", dir, err)
	}
	for i := range runs {
		runs[i].Run = filepath.Base(dir)
	}
	return Found{Scenario: v.Scenario, Runs: runs}, nil
}

// RunsOf returns the results of a judged run: one for each pair.
func RunsOf(v report.Verdict) ([]Run, error) {
	var out []Run
	for _, t := range v.Trials {
		if err := ownArms(v, t); err != nil {
			return nil, fmt.Errorf("trial %s: %w", t.ID, err)
		}
		i := slices.IndexFunc(out, func(r Run) bool { return r.Pair == t.Pair })
		if i < 0 {
			i = len(out)
			out = append(out, Run{conditionsOf(v, t), map[string]int{}})
		}
		out[i].Verdicts[string(t.Verdict)]++
	}
	return out, nil
}

// ownArms returns an error unless a trial had the scenario's vulnerable and fixed arms, as they are, under its faults.
func ownArms(v report.Verdict, t report.Trial) error {
	if v.NoFaults {
		return errors.New("it had no faults")
	}
	digests := map[string]string{}
	for _, a := range t.World.Arms {
		digests[a.Arm] = a.Digest
	}
	program := map[string]string{} // by role
	for _, a := range t.Arms {
		if a.Role == scenario.Candidate {
			return fmt.Errorf("it is about the candidate %s: relapse oracle makes a record of candidates", a.Name)
		}
		program[a.Role] = digests[a.Name]
	}
	vulnerable, fixed := program[scenario.Vulnerable], program[scenario.Fixed]
	if len(program) != 2 {
		return errors.New("it lacks the vulnerable or the fixed arm")
	}
	if vulnerable != "" && vulnerable == fixed {
		return errors.New("its two arms are the same program")
	}
	return nil
}

// series returns the first two numbers of a kernel's release, 6.18 of 6.18.44-amd64: the rest says whose build it is, and
// nothing of what it does.
func series(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// conditionsOf returns the conditions of a trial.
func conditionsOf(v report.Verdict, t report.Trial) Conditions {
	c := Conditions{
		Date: v.StartedAt.UTC().Format(time.DateOnly), Pair: t.Pair, Provider: t.Provider, Set: v.Params,
		Arms: map[string]string{}, Kubernetes: t.World.Versions["kubernetes"],
		NodeImage: t.World.Versions["nodeImageOrigin"], Engine: t.World.Versions["engine"],
		Linux: series(t.World.Versions["kernel"]), Cores: t.Cores, Relapse: t.World.Versions["relapse"],
	}
	for _, a := range t.Arms {
		if a.Role != scenario.Candidate {
			c.Arms[a.Role] = t.Versions[a.Name]
		}
	}
	return c
}

// readOracle reads what an oracle graded. Its conditions are those of the first run that gave an answer.
func readOracle(dir string, raw []byte) (Found, error) {
	var s campaign.OracleSummary
	if err := json.Unmarshal(raw, &s); err != nil {
		return Found{}, fmt.Errorf("reading %s: %w", filepath.Join(dir, campaign.OracleFile), err)
	}
	i := slices.IndexFunc(s.Candidates, func(g campaign.Graded) bool { return len(g.Given) > 0 })
	if i < 0 {
		return Found{}, fmt.Errorf("recording %s: none of its candidates was run", dir)
	}
	v, err := report.JudgeRun(filepath.Join(filepath.Dir(dir), s.Candidates[i].Dir))
	if err != nil {
		return Found{}, err
	}
	o := OracleOf(s, conditionsOf(v, v.Trials[0]))
	o.Run = filepath.Base(dir)
	return Found{Scenario: s.Scenario, Oracles: []Oracle{o}}, nil
}

// OracleOf returns the result of an oracle, one of whose runs had these conditions. Candidates that were not run are
// counted and have no answer.
func OracleOf(s campaign.OracleSummary, c Conditions) Oracle {
	c.Date = s.StartedAt.UTC().Format(time.DateOnly)
	c.Pair, c.Provider = cmp.Or(s.Settings.Pair, c.Pair), cmp.Or(s.Settings.Provider, c.Provider)
	c.Set, c.Full, c.Relapse = s.Settings.Set, s.Settings.Full, cmp.Or(s.Relapse, c.Relapse)
	o := Oracle{Conditions: c, Grades: map[campaign.Grade]int{}}
	for _, g := range s.Candidates {
		o.Grades[g.Grade]++
		if g.Grade != campaign.NotRun {
			o.Answers = append(o.Answers, Answer{Candidate: g.Name, Right: g.Right, Given: g.Given, Grade: g.Grade})
		}
	}
	return o
}

// validated is the verdict of a trial that reproduced the incident in the vulnerable arm, and not in the fixed one.
const validated = string(verdict.Validated)
