package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/rate"
)

// progressFlags say how progress is shown on stderr.
type progressFlags struct {
	progress       string
	quiet, verbose bool
}

// progressModes are the values of --progress.
var progressModes = []string{"auto", "terminal", "plain"}

func (f *progressFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.progress, "progress", "auto", "how progress is shown: auto, terminal or plain")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress: only warnings, errors and the verdict")
	fl.BoolVar(&f.verbose, "verbose", false, "also show what each check that is waited for has seen so far")
}

// fits refuses values that don't go together.
func (f *progressFlags) fits() error {
	if !slices.Contains(progressModes, f.progress) {
		return usage(fmt.Errorf("--progress %q %s", f.progress, oneOf(f.progress, progressModes)),
			"leave out --progress, which is auto then")
	}
	if f.quiet && f.verbose {
		return usage(
			errors.New("--quiet and --verbose are mutually exclusive"),
			"leave out one of them",
		)
	}
	return nil
}

// sink returns the sink for a writer, and a function that ends the display and may be called twice. Of several trials at
// once a terminal display could show the stages of one only.
func (f *progressFlags) sink(w io.Writer, trials int) (event.Sink, func(), error) {
	if err := f.fits(); err != nil {
		return nil, nil, err
	}
	file, isFile := w.(*os.File)
	tty := isFile && term.IsTerminal(int(file.Fd())) && os.Getenv("CI") == ""
	if f.quiet || f.progress != "terminal" && (f.progress == "plain" || !tty || trials > 1) {
		return &event.Lines{W: w, Quiet: f.quiet, Verbose: f.verbose}, func() {}, nil
	}
	t := event.NewTerminal(
		w,
		event.TerminalOptions{Width: func() int { return width(w) }, Verbose: f.verbose},
	)
	ended := false
	return t, func() {
		if !ended {
			ended = true
			_ = t.Close() // nothing can be lost
		}
	}, nil
}

// width returns how many columns a writer has, 0 if it is no terminal.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// note prints what a person may want to know, unless the command was asked to be quiet.
func note(cmd *cobra.Command, format string, args ...any) {
	if q := cmd.Flag("quiet"); q != nil && q.Value.String() == "true" {
		return
	}
	fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...)
}

// announce reports what the run will do and how long a trial took earlier, by the history in out.
func announce(p *plan.Plan, out string, events *event.Stream) {
	events.Say(event.Note, fmt.Sprintf("seed %d: --seed %d repeats the plan", p.Seed, p.Seed))
	for _, t := range p.Trials {
		var arms []string
		for _, c := range t.Arms {
			arms = append(arms, fmt.Sprintf("%s (expected %s)", c.Name, c.Expected))
		}
		events.Say(
			event.Note,
			fmt.Sprintf("%s, trial %s, pair %s: arms %s", p.Scenario, t.ID, t.Pair,
				strings.Join(arms, ", ")),
		)
	}
	if u := p.Until; u != nil {
		r := u.Asks()
		events.Say(
			event.Note,
			fmt.Sprintf(
				"trials go on until the judged arm is proven, at %s, to show the incident in less than %s of "+
					"them, or shows it: that takes %d trials without it; up to %d more may be set aside, because a "+
					"control was not as expected; one without an answer about the judged arm ends them",
				rate.Exactly(r.Confidence),
				rate.Exactly(r.Target),
				r.Needed(),
				r.Limit(),
			),
		)
	}
	for _, said := range trialTimes(out, p) {
		events.Say(event.Note, said)
	}
}
