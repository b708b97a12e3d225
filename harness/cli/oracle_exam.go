package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/campaign"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/host"
)

// exam is one scenario with the candidates that are to be run.
type exam struct {
	scenario *scenario.Scenario
	flags    planFlags
	options  campaign.OracleOptions
}

// exams returns one exam for each scenario to run. It refuses what can't be planned, before anything is built.
func (f *oracleFlags) exams(cmd *cobra.Command, args []string) ([]exam, error) {
	var files, candidates []string
	if len(args) > 0 {
		files, candidates = args[:1], args[1:]
	} else {
		var err error
		if files, err = scenarioFiles(cmd); err != nil {
			return nil, err
		}
	}
	var out []exam
	for _, name := range files {
		s, err := loadScenario(cmd, name)
		if err != nil {
			return nil, err
		}
		if len(args) == 0 && f.provider != autoProvider && !slices.Contains(s.Spec.RunsOn(), f.provider) {
			continue
		}
		e, err := f.exam(cmd, s, candidates)
		if err != nil {
			return nil, err
		}
		if len(e.options.Candidates) > 0 {
			out = append(out, e)
		} else if len(args) > 0 {
			return nil, usage(
				fmt.Errorf("scenario %s has no candidates for pair %s", s.Metadata.Name,
					e.options.Settings.Pair),
				"relapse list candidates",
			)
		}
	}
	if len(out) == 0 {
		return nil, usage(errors.New("no scenario has candidates for the pair and the provider"),
			"relapse list candidates")
	}
	return out, nil
}

func (f *oracleFlags) exam(
	cmd *cobra.Command,
	s *scenario.Scenario,
	wanted []string,
) (exam, error) {
	e := exam{scenario: s, flags: f.planFlags}
	set, err := e.settings(f.full)
	if err != nil {
		return e, err
	}
	all, err := s.Candidates()
	if err != nil {
		return e, asInput(err)
	}
	chosen, err := choose(all, wanted, s.Metadata.Name, set.Pair)
	if err != nil {
		return e, err
	}
	e.options = campaign.OracleOptions{
		Scenario: s.Metadata.Name, Settings: set, Candidates: chosen,
		Dir: filepath.Join(f.out, harness.NewID()+"-oracle-"+s.Metadata.Name),
	}
	if len(chosen) > 0 {
		p, err := e.plan(cmd, chosen[:1])
		if err != nil {
			return e, err
		}
		e.options.Beside = cmp.Or(f.beside, candidatesBeside(s, p))
		if _, err = e.plan(cmd, chosen); err != nil {
			return e, err
		}
	}
	for _, k := range chosen {
		if len(k.Spec.Set) > 0 {
			if _, err := e.plan(cmd, []scenario.CandidateFile{k}); err != nil {
				return e, fmt.Errorf("candidate %s: %w", k.Metadata.Name, err)
			}
		}
	}
	return e, nil
}

// registerBeside registers the flag that says how many candidates, under a name of their own, share a trial.
func registerBeside(fl *pflag.FlagSet, most *int, what string) {
	fl.IntVar(
		most,
		"beside",
		0,
		"the most "+what+" that share a trial (default: as many as this machine's cores and memory "+
			"and the scenario's oracle.beside allow)",
	)
}

func besideFits(most int) error {
	if most < 0 {
		return usage(
			fmt.Errorf("--beside is %d (want at least 1)", most),
			"leave out --beside for as many as this machine allows",
		)
	}
	return nil
}

// candidatesBeside returns how many candidates may share a trial, by this machine's cores and memory and by the scenario.
func candidatesBeside(s *scenario.Scenario, p *plan.Plan) int {
	most := p.Trials[0].Place().Beside(runtime.NumCPU(), host.FreeMemory())
	if o := s.Spec.Oracle; o != nil && o.Beside > 0 {
		return min(most, o.Beside)
	}
	return most
}

// chooseProvider chooses the provider on which all of the candidates run.
func (e *exam) chooseProvider(cmd *cobra.Command) error {
	single := len(e.scenario.Spec.RunsOn()) == 1
	return e.flags.firstProvider(cmd, e.scenario, func(name string) error {
		e.options.Settings.Provider = name
		if single || e.flags.provider != autoProvider {
			return nil // each run checks whether this host can do it
		}
		asked := *e
		asked.flags.provider = name
		p, err := asked.plan(cmd, e.options.Candidates)
		if err != nil {
			return err
		}
		provider, err := newProvider(name, nil, false)
		if err != nil {
			return err
		}
		if err := provider.Check(cmd.Context(), p.Needs(nil)); err != nil {
			return err
		}
		*e = asked
		return nil
	})
}

// settings returns the settings of the run. The scenario's oracle: section fills in what the flags leave open.
func (e *exam) settings(full bool) (campaign.Settings, error) {
	o := &e.flags.options
	if oracle := e.scenario.Spec.Oracle; oracle != nil && !full {
		o.Pair, o.Oracle = cmp.Or(o.Pair, oracle.Pair), true
	}
	for _, p := range e.scenario.Spec.Pairs {
		if o.Pair == "" && (p.Default || len(e.scenario.Spec.Pairs) == 1) {
			o.Pair = p.Name
		}
	}
	if o.Pair == plan.AllPairs {
		return campaign.Settings{}, usage(
			errors.New("--pair all is more than one pair (want the name of one)"),
			"relapse explain "+e.scenario.Metadata.Name+" shows its pairs",
		)
	}
	given, err := assignments("--set", e.flags.set, e.scenario.Metadata.Name)
	if err != nil {
		return campaign.Settings{}, err
	}
	all := plan.Options{Oracle: o.Oracle, Params: given}.Settings(e.scenario)
	return campaign.Settings{Pair: o.Pair, Set: all, Full: full}, nil
}

// choose returns the candidates that were named, or all candidates for the pair.
func choose(
	all []scenario.CandidateFile,
	wanted []string,
	name, pair string,
) ([]scenario.CandidateFile, error) {
	known := namesOf(all)
	for _, w := range wanted {
		i := slices.Index(known, w)
		if i < 0 {
			return nil, noCandidate(name, w, known)
		}
		if !all[i].For(pair) {
			return nil, usage(
				fmt.Errorf("the candidate %s is made for %s, and this is pair %s", w,
					strings.Join(all[i].Spec.Pairs, ", "), pair),
				"relapse oracle --pair",
			)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(k scenario.CandidateFile) bool {
		return !k.For(pair) || len(wanted) > 0 && !slices.Contains(wanted, k.Metadata.Name)
	}), nil
}

// namesOf returns the names of candidates.
func namesOf(all []scenario.CandidateFile) (out []string) {
	for _, k := range all {
		out = append(out, k.Metadata.Name)
	}
	return out
}

// noCandidate returns the error for a name that no candidate of a scenario has.
func noCandidate(scenario, name string, known []string) error {
	return usage(
		fmt.Errorf("scenario %s has no candidate %q %s", scenario, name, oneOf(name, known)),
		"relapse explain "+scenario,
	)
}

// plan plans a trial that some candidates share.
func (e *exam) plan(cmd *cobra.Command, list []scenario.CandidateFile) (*plan.Plan, error) {
	flags := e.flags
	flags.options.Candidates = nil
	for _, k := range list {
		flags.options.Candidates = append(flags.options.Candidates, plan.Candidate{Known: &k})
	}
	p, err := flags.resolve(cmd, e.scenario.Origin.File)
	if err != nil {
		return nil, err
	}
	p.Programs = &plan.Programs{
		From: plan.Built,
		Why:  "the oracle's candidates are, and its controls may differ from them in their source alone",
	}
	return p, nil
}

// roomForAll says how much disk the candidates of several scenarios need, and refuses them if they can't fit. Those of one
// scenario are looked at when they are built.
func (f *oracleFlags) roomForAll(cmd *cobra.Command, root string, exams []exam) error {
	if len(exams) < 2 {
		return nil
	}
	var plans []*plan.Plan
	for _, e := range exams {
		p, err := e.plan(cmd, e.options.Candidates)
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	return f.disk.room(cmd, root, plans, nil)
}
