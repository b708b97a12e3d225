package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/cluster/providers"
	"github.com/kube-relapse/relapse/harness/judge/history"
	"github.com/kube-relapse/relapse/harness/plan"
)

// recentTrials is how many trials of a pair say how long the next one will take.
const recentTrials = 5

// forecast writes what a plan's run would have to build here, and how long a run will take as far as this host knows.
func (f *runFlags) forecast(
	ctx context.Context,
	w io.Writer,
	root string,
	p *plan.Plan,
) (err error) {
	provider, err := newProvider(p.Provider, nil, false)
	if err != nil {
		return err
	}
	made, err := artifacts.Open(artifacts.Options{Root: root, MaxDisk: f.disk.max})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	missing := made.Forecast(ctx, p, provider, p.Needs(nil))
	writeForecast(w, missing)
	if room, err := missing.Fit(f.disk.max); err != nil {
		fmt.Fprintln(w, "relapse run would refuse it:", err)
	} else if room != "" {
		fmt.Fprintln(w, room)
	}
	for _, said := range trialTimes(f.out, p) {
		fmt.Fprintln(w, said)
	}
	return nil
}

func writeForecast(w io.Writer, f *build.Forecast) {
	for _, p := range f.ByReason() {
		if p.Sought {
			fmt.Fprint(w, "not in the cache: ")
		}
		if p.Unknown != "" {
			fmt.Fprintf(w, "%s: how long it takes is unknown: %s\n", p.What, p.Unknown)
		} else {
			fmt.Fprintf(w, "%s: about %s, as last time\n", p.What, p.Takes)
		}
	}
	switch all, known := f.Takes(); {
	case len(f.Missing) == 0:
		fmt.Fprintf(w, "nothing has to be built: the cache has all %d builds\n", f.Cached)
	case known:
		fmt.Fprintf(w, "what has to be built takes about %s\n", all)
	default:
		fmt.Fprintln(w, "how long building takes is unknown")
	}
}

// trialTimes says for each pair of a plan how long its last trials took, by the history in the folder out.
func trialTimes(out string, p *plan.Plan) (said []string) {
	path := filepath.Join(out, history.File)
	entries, _, err := history.Read(path) // without a history nothing is known
	for _, pair := range p.Pairs() {
		of := history.Durations(entries, p.Scenario, pair, cmp.Or(p.Provider, providers.Kind))
		of = of[max(0, len(of)-recentTrials):]
		switch {
		case err != nil || len(of) == 0:
			said = append(
				said,
				fmt.Sprintf(
					"how long a trial of pair %s takes is unknown: %s has none on this provider",
					pair,
					path,
				),
			)
		case len(of) == 1:
			said = append(
				said,
				fmt.Sprintf("the last trial of pair %s took %s", pair, of[0].Round(time.Second)),
			)
		default:
			said = append(
				said,
				fmt.Sprintf("the last %d trials of pair %s took %s to %s", len(of), pair,
					slices.Min(of).Round(time.Second), slices.Max(of).Round(time.Second)),
			)
		}
	}
	return said
}
