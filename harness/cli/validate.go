package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func newValidateCmd() *cobra.Command {
	var sources bool
	cmd := &cobra.Command{
		Use:   "validate FILE|FOLDER...",
		Short: "Check scenario files, and list all mistakes with file, line and column",
		Long: `Validate checks scenario files against the schema and the rules between fields. A folder stands for the
scenario.yaml in it, or for those in its folders: relapse validate scenarios checks them all. It then plans
every pair for every provider, which finds checks that no collector feeds and faults whose seam is missing. It also
checks the candidates of a scenario, or only one candidate if that candidate's file is named. Nothing is built or
started.

With --sources it also reads what arms are built from, and fetches modules for that: do the versions and packages
exist, do the mutations hit their sites, can the constants be read? Flags of components are compared with those that
a program knows if it is in the cache (relapse run builds it). What could not be tried is listed.

The exit code is 0 if all files are valid, else 64.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("validate takes at least one file"),
					"relapse validate scenarios/*/scenario.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := filesIn(args)
			if err != nil {
				return err
			}
			bad := 0
			for _, path := range files {
				v := validation{path: path}
				v.run(cmd, sources)
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				if len(v.mistakes) > 0 {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), strings.Join(v.mistakes, "\n"))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", path)
				for _, u := range v.untried {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: not tried: %s\n", path, u)
				}
			}
			if bad > 0 {
				return usage(fmt.Errorf("%d of %d files are not valid", bad, len(files)),
					"relapse explain KIND shows a kind's fields")
			}
			return nil
		},
	}
	cmd.Flags().
		BoolVar(&sources, "sources", false, "also read what arms are built from: versions, packages, mutations, constants and flags")
	return cmd
}

// filesIn returns the files that arguments name: a folder stands for the scenario in it, or for those in its folders.
func filesIn(args []string) (out []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage(fmt.Errorf("there is no file or folder %s", arg),
				"relapse validate scenarios checks all scenarios, relapse validate FILE one")
		}
		if err != nil || !info.IsDir() { // reading the file says why it can't be read
			out = append(out, arg)
			continue
		}
		found, err := filepath.Glob(filepath.Join(escaped(arg), scenario.FileName))
		if err == nil && len(found) == 0 {
			found, err = filepath.Glob(filepath.Join(escaped(arg), "*", scenario.FileName))
		}
		if err != nil {
			return nil, fmt.Errorf("looking for scenarios in %s: %w", arg, err)
		}
		if len(found) == 0 {
			return nil, usage(
				fmt.Errorf(
					"the folder %s has no %s, and none of its folders has one",
					arg,
					scenario.FileName,
				),
				"relapse validate FILE",
			)
		}
		out = append(out, found...)
	}
	return out, nil
}

// validation collects the mistakes in one file, each once: several plans of a scenario have most of them in common.
type validation struct {
	path              string
	mistakes, untried []string
}

// add adds the mistakes in err. What has no place in a file gets the name of one.
func (v *validation) add(file string, err error) {
	if err == nil {
		return
	}
	var placed scenario.Violations
	text := err.Error()
	if !errors.As(err, &placed) {
		text = file + ": " + text
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(v.mistakes, line) {
			v.mistakes = append(v.mistakes, line)
		}
	}
}

// run checks the file. Whatever rests on a part that is wrong isn't checked.
func (v *validation) run(cmd *cobra.Command, sources bool) {
	if dir := filepath.Dir(v.path); filepath.Base(dir) == scenario.CandidatesDir {
		s, err := scenario.Load(filepath.Join(filepath.Dir(dir), scenario.FileName))
		if err == nil {
			_, err = s.Candidate(v.path)
		}
		v.add(v.path, err)
		return
	}
	s, err := scenario.Load(v.path)
	if err != nil {
		v.add(v.path, err)
		return
	}
	v.add(v.path, s.CheckSurveyed())
	for _, provider := range s.Spec.RunsOn() {
		_, err := plan.New(s, plan.Options{Pair: plan.AllPairs, Provider: provider})
		v.add(v.path, err)
	}
	all, err := s.Candidates()
	v.add(v.path, err)
	if len(v.mistakes) > 0 {
		return
	}
	if o := s.Spec.Oracle; o != nil && len(o.Set) > 0 {
		_, err := plan.New(s, plan.Options{Pair: o.Pair, Oracle: true})
		v.add(v.path, s.Locate(scenario.InField(plain(err), "oracle", "set")))
	}
	p, err := plan.New(s, plan.Options{Pair: plan.AllPairs})
	v.add(v.path, err)
	plans := []planned{{p, nil}}
	for _, pair := range s.Spec.Pairs {
		for _, k := range all {
			if !k.For(pair.Name) {
				continue
			}
			p, err := plan.New(
				s,
				plan.Options{Pair: pair.Name, Candidates: []plan.Candidate{{Known: &k}}},
			)
			if len(k.Spec.Set) > 0 { // without it the scenario can be planned
				err = k.Locate(scenario.InField(plain(err), "set"))
			}
			v.add(k.File, err)
			plans = append(plans, planned{p, &k})
		}
	}
	if sources && len(v.mistakes) == 0 {
		v.examine(cmd, s, plans)
	}
}

// plain returns an error with the text of err alone, nil if err is nil: what settings of a file make wrong is the mistake
// of that file, wherever the place would be without them.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// planned is a plan, and the candidate in it if there is one.
type planned struct {
	*plan.Plan
	candidate *scenario.CandidateFile
}

// examine reads the sources of plans.
func (v *validation) examine(cmd *cobra.Command, s *scenario.Scenario, plans []planned) {
	root, _ := moduleRoot(cmd) // only scenarios with fixtures need it
	made, err := artifacts.Open(artifacts.Options{Root: root})
	if err != nil {
		v.add(v.path, err)
		return
	}
	defer made.Close()
	for _, p := range plans {
		untried, err := made.Examine(cmd.Context(), s, p.Plan, p.candidate)
		v.add(v.path, err)
		for _, u := range untried {
			if !slices.Contains(v.untried, u) {
				v.untried = append(v.untried, u)
			}
		}
	}
}
