package track

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// Found is what a directory has for a scenario's record.
type Found struct {
	Scenario string
	Runs     []Run
	Oracles  []Oracle
}

// Read reads the results in the directory of a run, or in that of an oracle, and judges all of its evidence again. load
// returns a scenario by its name. It is an error if the evidence is of another version of the scenario's file, or if it
// says nothing about the scenario's own arms or candidates.
func Read(dir string, load func(name string) (*scenario.Scenario, error)) (Found, error) {
	named := dir
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // runs/latest is a link
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Found{}, fmt.Errorf("reading %s: there is no such folder", named)
	}
	if err != nil {
		return Found{}, fmt.Errorf("reading a run: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, campaign.OracleFile))
	if err == nil {
		return readOracle(dir, raw, load)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Found{}, err
	}
	v, err := judge.Run(dir)
	if err != nil {
		return Found{}, err
	}
	if _, err := scenarioOf(v, load); err != nil {
		return Found{}, fmt.Errorf("recording %s: %w", dir, err)
	}
	runs, err := RunsOf(v)
	if err == nil && !v.Index.Complete {
		err = errors.New("it isn't a whole run, and whoever ends one chooses when")
	}
	if err != nil {
		return Found{}, fmt.Errorf("recording %s: %w", dir, err)
	}
	return Found{Scenario: v.Scenario, Runs: runs}, nil
}

// scenarioOf returns the scenario of a judged run. Its file must still be the one that was planned: another one asks
// other checks.
func scenarioOf(
	v judge.Verdict,
	load func(name string) (*scenario.Scenario, error),
) (*scenario.Scenario, error) {
	s, err := load(v.Scenario)
	if err != nil {
		return nil, err
	}
	if v.Index.Scenario != s.Origin.Digest {
		return nil, fmt.Errorf(
			"it was planned from another scenario file than %s is now (SHA-256 %.12s, not %.12s): record a run "+
				"before its scenario is changed",
			s.Origin.File,
			v.Index.Scenario,
			s.Origin.Digest,
		)
	}
	return s, nil
}

// RunsOf returns the results of a judged run: one for each pair.
func RunsOf(v judge.Verdict) ([]Run, error) {
	var out []Run
	for _, t := range v.Trials {
		if err := ownArms(v, t); err != nil {
			return nil, fmt.Errorf("trial %s: %w", t.ID, err)
		}
		i := slices.IndexFunc(out, func(r Run) bool { return r.Pair == t.Pair })
		if i < 0 {
			i = len(out)
			out = append(out, Run{Conditions: conditionsOf(v, t), Verdicts: map[string]int{}})
		}
		out[i].Verdicts[string(t.Verdict)]++
		if took := t.Seconds(); took > 0 && t.Verdict != verdict.VerdictError {
			out[i].Seconds = append(out[i].Seconds, math.Round(10*took)/10)
		}
	}
	return out, nil
}

// ownArms returns an error unless a trial was one of the scenario's vulnerable and fixed arms as the scenario has them,
// but for settings.
func ownArms(v judge.Verdict, t judge.Trial) error {
	for _, d := range t.Deviates {
		if _, set := v.Params[d.Name]; d.Code != plan.CodeSetting || !set {
			return fmt.Errorf("it isn't the scenario's pair as it is: %s", d.Text)
		}
	}
	digests := map[string]string{}
	for _, a := range t.World.Arms {
		digests[a.Arm] = a.Program()
	}
	program := map[string]string{} // by role
	for _, a := range t.Arms {
		if a.Role == scenario.Candidate {
			return fmt.Errorf(
				"it is about the candidate %s: relapse oracle makes a record of candidates",
				a.Name,
			)
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

// series returns the first two numbers of a kernel's release, 6.18 of 6.18.44-amd64: the rest says whose build it is,
// and nothing of what it does.
func series(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// conditionsOf returns the conditions of a trial.
func conditionsOf(v judge.Verdict, t judge.Trial) Conditions {
	c := Conditions{
		Date: v.StartedAt.UTC().Format(time.DateOnly), Began: v.StartedAt.UTC(), Pair: t.Pair, Provider: t.Provider, Set: v.Params,
		Run:  strings.TrimPrefix(v.Index.Run, "relapse-") + "-" + v.Scenario,
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

// readOracle grades an oracle's candidates again. Its platform is that of the first run that gave an answer.
func readOracle(
	dir string,
	raw []byte,
	load func(name string) (*scenario.Scenario, error),
) (Found, error) {
	var was campaign.OracleSummary
	if err := json.Unmarshal(raw, &was); err != nil {
		return Found{}, fmt.Errorf("reading %s: %w", filepath.Join(dir, campaign.OracleFile), err)
	}
	i := slices.IndexFunc(
		was.Candidates,
		func(g campaign.Graded) bool { return len(g.Given) > 0 },
	)
	if i < 0 {
		return Found{}, fmt.Errorf("recording %s: none of its candidates was run", dir)
	}
	v, err := judge.Run(filepath.Join(filepath.Dir(dir), was.Candidates[i].Dir))
	if err != nil {
		return Found{}, err
	}
	s, err := scenarioOf(v, load)
	if err != nil {
		return Found{}, fmt.Errorf("recording %s: %w", dir, err)
	}
	known, err := s.Candidates()
	if err != nil {
		return Found{}, err
	}
	graded, err := campaign.Regrade(was.Scenario, known, dir)
	if err != nil {
		return Found{}, err
	}
	o := OracleOf(graded, conditionsOf(v, v.Trials[0]))
	o.Run = filepath.Base(dir)
	return Found{Scenario: was.Scenario, Oracles: []Oracle{o}}, nil
}

// OracleOf returns the result of an oracle, one of whose runs had these conditions.
func OracleOf(s campaign.OracleSummary, c Conditions) Oracle {
	c.Began = s.StartedAt.UTC()
	c.Date = c.Began.Format(time.DateOnly)
	c.Pair, c.Provider = cmp.Or(s.Settings.Pair, c.Pair), cmp.Or(s.Settings.Provider, c.Provider)
	c.Set, c.Full = s.Settings.Set, s.Settings.Full
	o := Oracle{Conditions: c}
	for _, g := range s.Candidates {
		if g.Grade != campaign.NotRun {
			o.Answers = append(
				o.Answers,
				Answer{Candidate: g.Name, Right: g.Right, Given: g.Given, Grade: g.Grade},
			)
		}
	}
	return o
}

// validated is the verdict of a trial that reproduced the incident in the vulnerable arm, and not in the fixed one.
const validated = string(verdict.Validated)
