package trial_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/internal/disktest"
)

// A disk that fills up in a run's second trial costs that trial alone: its faults are lifted, its bundle isn't sealed, and
// the first trial is judged as it was recorded.
func TestADiskThatFillsUpInATrial(t *testing.T) {
	dir := disktest.Small(t, "16")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRun(t, pair, plan.Options{Repeat: 2})
		var err error
		if r.dir, err = trial.CreateRunDir(filepath.Join(dir, "run"), runName, r.plan); err != nil {
			t.Fatal(err)
		}
		if err := r.trial(t.Context(), t, 0); err != nil {
			t.Fatal(err)
		}
		disktest.Fill(t, dir, 256<<10)
		if err := r.trial(t.Context(), t, 1); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the trial on the full disk: %v", err)
		}
		if err := errors.Join(ledger.RemoveUnsealed(r.dir.Path()), ledger.RemoveIfEmpty(r.dir.Path())); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(r.dir.Trial("002")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("half of a bundle is left: %v", err)
		}
		v, err := judge.Run(r.dir.Path())
		if err != nil || len(v.Trials) != 1 || !strings.Contains(strings.Join(v.Deviates, "; "), "1 of 2 trials were sealed") {
			t.Errorf("the finished trial: %v, %d trials, %q", err, len(v.Trials), v.Deviates)
		}
		for _, a := range v.Arms {
			if a.Outcome != a.Expected {
				t.Errorf("%s is %s: %s", a.Name, a.Outcome, a.Reason)
			}
		}
	})
}
