package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

func newValidateCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check scenario files, and list all mistakes with file, line and column",
		Long: `Validate checks scenario files against the schema and the rules between fields. It then plans
every pair, which finds checks that no collector feeds and faults whose seam is missing. It also checks the
candidates of a scenario, or only one candidate if that candidate's file is named. Nothing is built or started.

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
				err := validateFile(path)
				if err == nil {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", path)
					continue
				}
				bad++
				fmt.Fprintln(cmd.ErrOrStderr(), err)
			}
			if bad > 0 {
				return usage(fmt.Errorf("%d of %d files are not valid", bad, len(args)),
					"relapse explain KIND shows a kind's fields")
			}
			return nil
		},
	}
}

func validateFile(path string) error {
	if dir := filepath.Dir(path); filepath.Base(dir) == scenario.CandidatesDir {
		s, err := scenario.Load(filepath.Join(filepath.Dir(dir), scenario.FileName))
		if err != nil {
			return err
		}
		_, err = s.Candidate(path)
		return err
	}
	s, err := scenario.Load(path)
	if err != nil {
		return err
	}
	if _, err := plan.New(s, plan.Options{Pair: plan.AllPairs}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	all, err := s.Candidates()
	if err != nil {
		return err
	}
	for _, p := range s.Spec.Pairs {
		for _, k := range all {
			if !k.For(p.Name) {
				continue
			}
			if _, err := plan.New(s, plan.Options{Pair: p.Name,
				Candidates: []plan.Candidate{{Known: &k}}}); err != nil {
				return fmt.Errorf("%s: %w", k.File, err)
			}
		}
	}
	return nil
}
