package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/verdict"
)

func TestVerdictsForGitBisect(t *testing.T) {
	for _, tc := range []struct {
		name   string
		run    verdict.Verdict
		trials []verdict.Verdict
		want   int
	}{
		{"validated", verdict.Validated, []verdict.Verdict{verdict.Validated}, 0},
		{"still vulnerable", verdict.StillVulnerable, []verdict.Verdict{verdict.StillVulnerable}, 1},
		{"broken is not the incident", verdict.VerdictBroken, []verdict.Verdict{verdict.VerdictBroken}, 125},
		{"broken in a later trial than the incident", verdict.VerdictBroken, []verdict.Verdict{verdict.StillVulnerable, verdict.VerdictBroken}, 1},
		{"broken in one of two", verdict.VerdictBroken, []verdict.Verdict{verdict.Validated, verdict.VerdictBroken}, 125},
		{"an error beside the incident", verdict.VerdictError, []verdict.Verdict{verdict.VerdictError, verdict.StillVulnerable}, 1},
		{"inconclusive", verdict.VerdictInconclusive, []verdict.Verdict{verdict.VerdictInconclusive}, 125},
		{"no answer in one of two", verdict.VerdictInconclusive, []verdict.Verdict{verdict.Validated, verdict.VerdictInconclusive}, 125},
		{"validated, with a trial set aside", verdict.Validated, []verdict.Verdict{verdict.Validated, verdict.VerdictInconclusive}, 0},
		{"error", verdict.VerdictError, []verdict.Verdict{verdict.VerdictError}, 125},
		{"the controls alone", verdict.VerdictNotReproduced, []verdict.Verdict{verdict.VerdictNotReproduced}, 125},
		{"no verdict", "", nil, 125},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := judge.Verdict{Verdict: tc.run}
			for _, one := range tc.trials {
				v.Trials = append(v.Trials, judge.Trial{Trial: verdict.Trial{Verdict: one}})
			}
			if got := bisectCode(v); got != tc.want {
				t.Errorf("exit %d, want %d", got, tc.want)
			}
		})
	}
}

func TestErrorsForGitBisect(t *testing.T) {
	interrupted, stop := context.WithCancel(t.Context())
	stop()
	refused := &candidate.Error{Given: "src:.", Err: errors.New("it has no program kubelet"), Hint: "mend the source"}
	for _, tc := range []struct {
		name string
		err  error
		ctx  context.Context
		want int
	}{
		{"a commit that can't be built", usage(refused, refused.Hint), t.Context(), 125},
		{"a commit that can't be built, and a failure to clean up", errors.Join(usage(refused, ""), errors.New("no space")), t.Context(), 125},
		{"a flag with a mistake", usage(errors.New("--repeat is 0"), ""), t.Context(), 128},
		{"a host without an engine", hostHint(newRootCmd(), "", fmt.Errorf("running: %w", &cluster.HostError{Problems: []string{"no engine"}, Hint: "start it"})), t.Context(), 128},
		{"a full disk", fmt.Errorf("arm candidate: %w", &cache.FullError{Err: syscall.ENOSPC}), t.Context(), 128},
		{"a disk without room for the builds", hinted(&build.RoomError{}, ""), t.Context(), 128},
		{"a failure of relapse", errors.New("the cluster didn't come up"), t.Context(), 125},
		{"an interrupt", context.Canceled, interrupted, 130},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := finish(tc.ctx, newRootCmd(), forBisect(tc.err)); got != tc.want {
				t.Errorf("exit %d, want %d", got, tc.want)
			}
		})
	}
	if err := forBisect(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
