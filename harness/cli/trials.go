package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/rate"
	"github.com/kube-relapse/relapse/internal/host"
)

// untilFlags are the flags that make a run open-ended.
type untilFlags struct {
	confident  bool
	target     string
	maxTrials  int
	confidence float64
}

const targetRate = "20%"

func (f *untilFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.confident, "until-confident", false, "run trials of each pair until the judged arm is "+
		"proven to show the incident in less than --target-rate of them, or shows the incident; by default the proof "+
		"takes 14 trials without the incident")
	fl.StringVar(&f.target, "target-rate", targetRate,
		"the rate to rule out, with --until-confident, from 1% to 50%; at 95 %, 10% takes 29 trials and 5% takes 59")
	fl.IntVar(&f.maxTrials, "max-trials", 0, "the most trials of each pair, with --until-confident, "+
		"including trials that don't count; at most twice as many as are needed (default: 1.5 times as many)")
	fl.Float64Var(&f.confidence, "confidence", 0.95, "the confidence of the proof, with --until-confident, above 0.5 and below 1")
}

// resolve returns the rule of an open-ended run, or nil for a run with a fixed number of trials.
func (f *untilFlags) resolve(cmd *cobra.Command) (*plan.Until, error) {
	fl := cmd.Flags()
	if !f.confident {
		for _, name := range []string{"max-trials", "confidence", "target-rate"} {
			if fl.Changed(name) {
				return nil, usage(fmt.Errorf("--%s is for --until-confident", name),
					"add --until-confident, or use --repeat")
			}
		}
		return nil, nil
	}
	if fl.Changed("repeat") {
		return nil, usage(
			errors.New("--repeat and --until-confident both say how many trials there are"),
			"leave out --repeat; --max-trials limits --until-confident",
		)
	}
	target, err := share(f.target)
	if err != nil {
		return nil, usage(
			fmt.Errorf("--target-rate %w", err),
			"leave out --target-rate, which is "+targetRate+" then",
		)
	}
	u := &plan.Until{
		Rule:       rate.BelowTarget,
		Confidence: f.confidence,
		Target:     target,
		Max:        f.maxTrials,
	}
	if !fl.Changed("max-trials") {
		u.Max = u.Asks().DefaultMax()
	}
	if err := u.Asks().Validate(); err != nil {
		return nil, usage(err, "a lower --target-rate and a higher --confidence take more trials")
	}
	return u, nil
}

// share parses a rate: "20%" or "0.2".
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no rate (want one such as 20%% or 0.2)", text)
	}
	if percent {
		v /= 100
	}
	return v, nil
}

func registerSeed(cmd *cobra.Command, seed *int64) {
	cmd.Flags().Int64Var(seed, "seed", 0,
		"the seed of all random choices; the same seed gives the same plan (default: a random seed, which is recorded)")
}

// drawSeed draws a random seed if none was given.
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

// parallelFits refuses parallel trials if the run's other options or this machine don't allow them.
func (f *runFlags) parallelFits(p *plan.Plan) error {
	switch {
	case f.parallel == 1:
		return nil
	case f.parallel < 1:
		return fmt.Errorf("--parallel is %d (want at least 1)", f.parallel)
	case p.Until != nil:
		return errors.New(
			"--parallel is for a number of trials that is known (--repeat), and --until-confident looks " +
				"at each before it begins another",
		)
	case f.retain:
		return errors.New("--retain keeps the clusters of the last trial, and with --parallel several are the last")
	}
	if err := p.Parallel(f.parallel, runtime.NumCPU(), host.FreeMemory()); err != nil {
		return fmt.Errorf("--parallel: %w", err)
	}
	return nil
}
