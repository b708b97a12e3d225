package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func newValidateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check scenario files, and list all mistakes with file, line and column",
		Long: `Validate checks scenario files against the schema and the rules between fields. It then plans
every pair for every provider, which finds checks that no collector feeds and faults whose seam is missing. It also
checks the candidates of a scenario, or only one candidate if that candidate's file is named. Nothing is built or
started.

The exit code is 0 if all files are valid, else 64.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("validate takes at least one file"),
					"relapse validate scenarios/*/scenario.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			bad := 0
			for _, path := range args {
				v := validation{path: path}
				v.run()
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				if len(v.mistakes) > 0 {
					bad++
					fmt.Fprintln(cmd.ErrOrStderr(), strings.Join(v.mistakes, "\n"))
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", path)
			}
			if bad > 0 {
				return usage(fmt.Errorf("%d of %d files are not valid", bad, len(args)),
					"relapse explain KIND shows a kind's fields")
			}
			return nil
		},
	}
	return cmd
}

// validation collects the mistakes in one file, each once: several plans of a scenario have most of them in common.
type validation struct {
	path     string
	mistakes []string
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
func (v *validation) run() {
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
	for _, pair := range s.Spec.Pairs {
		for _, k := range all {
			if !k.For(pair.Name) {
				continue
			}
			_, err := plan.New(s, plan.Options{Pair: pair.Name, Candidates: []plan.Candidate{{Known: &k}}})
			if len(k.Spec.Set) > 0 { // without it the scenario can be planned
				err = k.Locate(scenario.InField(plain(err), "set"))
			}
			v.add(k.File, err)
		}
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
