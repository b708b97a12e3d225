package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/rate"
)

// untilFlags make a run open-ended.
type untilFlags struct {
	confident  bool
	maxTrials  int
	confidence float64
}

func (f *untilFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.confident, "until-confident", false, "go on with trials until the arms of each pair are told apart, by a rule that keeps its error rate")
	fl.IntVar(&f.maxTrials, "max-trials", 30, "trials of each pair at most, with --until-confident")
	fl.Float64Var(&f.confidence, "confidence", 0.95, "how sure is sure, with --until-confident")
}

// resolve is nil for a run of a fixed number of trials.
func (f *untilFlags) resolve(cmd *cobra.Command) (*plan.Until, error) {
	fl := cmd.Flags()
	if !f.confident {
		for _, name := range []string{"max-trials", "confidence"} {
			if fl.Changed(name) {
				return nil, usage(fmt.Errorf("--%s is for --until-confident", name), "add --until-confident, or use --repeat")
			}
		}
		return nil, nil
	}
	if fl.Changed("repeat") {
		return nil, usage(errors.New("--repeat and --until-confident are two ways to say how many trials there are"), "--max-trials limits --until-confident")
	}
	return &plan.Until{Rule: rate.Separated, Confidence: f.confidence, Max: f.maxTrials}, nil
}

func registerSeed(cmd *cobra.Command, seed *int64) {
	cmd.Flags().Int64Var(seed, "seed", 0, "seed of whatever draws lots; the same seed gives the same plan (default: drawn, and recorded)")
}

// drawSeed draws a seed where none was given.
func drawSeed(cmd *cobra.Command, seed *int64) error {
	if cmd.Flags().Changed("seed") {
		return nil
	}
	n, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt32)) // small enough to be typed again
	if err != nil {
		return fmt.Errorf("drawing a seed: %w", err)
	}
	*seed = n.Int64() + 1
	return nil
}
