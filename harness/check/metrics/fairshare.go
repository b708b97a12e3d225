package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// starved makes the finding unknown if even a process that always wants a CPU might have got less than limit CPUs, so
// that using little proves nothing. That is so if the subject's control group was throttled, or if too many others
// wanted the host's cores. The weight of that control group is not known, so a process in it may also get less than its
// share among the tasks. used is how many CPUs the subject used. In the baseline, starved changes nothing.
func starved(q *question.Question, used, limit float64) {
	if q.Phase == check.Baseline {
		return
	}
	own := allowanceOf(q)
	if own.doubt != nil {
		q.Doubt(own.doubt)
		return
	}
	of := bundle.Query{Kind: bundle.Host}
	if len(q.View.Artifacts(of)) == 0 {
		if q.View.World().Format > 0 { // without a format, not every trial recorded the host
			q.DoubtBy(
				check.NotRecorded,
				"; nobody knows how much it could have got: no record of the host",
			)
		}
		return
	}
	host := question.ReadWith(q, of, question.Records[bundle.HostSample])
	q.Evidence = append(q.Evidence, host.Paths...)
	var samples []bundle.HostSample
	tasks := 0
	for _, s := range host.Records {
		if question.Contains(q.Window, s.Time) {
			samples, tasks = append(samples, s), tasks+s.Running
		}
	}
	if host.Doubt != nil || len(samples) == 0 {
		q.Doubt(fmt.Errorf(
			"nobody knows how much it could have got: %w",
			cmp.Or(
				host.Doubt,
				check.Doubt(
					check.NotRecorded,
					"no sample of the host in %s",
					question.Span(q.Window),
				),
			),
		))
		return
	}
	running, cores := float64(tasks)/float64(len(samples)), samples[0].Cores
	pinned := own.cores > 0 && own.cores < cores
	if pinned {
		cores = own.cores
	}
	// A process gets about as much of a CPU as there are cores for each task that could run. A loop among 84 such tasks
	// on two cores was seen to get 0.07 CPUs, and passed for a process at rest.
	share := float64(cores) / running
	if own.cores > 0 && !pinned {
		// Samples count the tasks when many of them wake up. The process could also have had the CPU time that nobody
		// used in between.
		share = max(share, used+spareCPU(samples))
	}
	if share < limit {
		q.DoubtBy(check.Starved, "; with %.0f tasks for %d cores one that always wants a CPU may get no more than %.2g of it",
			question.N("tasks", running), question.N("cores", cores), question.N("fairShare", share))
	}
}

// spareCPU returns how many CPUs one more thread could have had because they were idle: the mean between the first and
// the last sample, and 1 at most.
func spareCPU(all []bundle.HostSample) float64 {
	all = slices.SortedFunc(
		slices.Values(all),
		func(a, b bundle.HostSample) int { return a.Time.Compare(b.Time) },
	)
	var had, long time.Duration
	for i := 1; i < len(all); i++ {
		was, is := all[i-1], all[i]
		passed := is.AllSeconds - was.AllSeconds
		if passed <= 0 { // nothing was counted, or two samples of one moment
			continue
		}
		idle := passed - (is.BusySeconds - was.BusySeconds) - (is.StealSeconds - was.StealSeconds)
		took := is.Time.Sub(was.Time)
		had += time.Duration(min(1, max(0, idle)/passed*float64(is.Cores)) * float64(took))
		long += took
	}
	if long <= 0 {
		return 0
	}
	return float64(had) / float64(long)
}

// allowance says how many CPUs the kernel let the subject's process have in a window.
type allowance struct {
	cores int   // how many cores the process could run on; 0 is not known
	doubt error // why the process may have got less than it wanted
}

// allowanceOf reads the CPU limits of the window, from the last sample before the window to the first sample after it.
// Identities without limits are of versions that did not record them.
func allowanceOf(q *question.Question) (out allowance) {
	var looks []bundle.CPULimits
	unread := false
	for _, r := range looksAround(q) {
		looks = append(looks, *r.Limits)
		unread = unread || !r.Limits.Known || r.Limits.Cores == 0
	}
	if unread {
		return allowance{doubt: check.Doubt(check.Unreadable,
			"nobody knows how much it could have got: its limits could not be read")}
	}
	var throttled, periods int64
	for i, l := range looks {
		if out.cores == 0 || l.Cores < out.cores {
			out.cores = l.Cores
		}
		if i > 0 {
			throttled += max(0, l.Throttled-looks[i-1].Throttled)
			periods += max(0, l.Periods-looks[i-1].Periods)
		}
	}
	if throttled > 0 {
		out.doubt = check.Doubt(
			check.Starved,
			"it was throttled in %d of %d periods, by a quota of %.3g CPUs, and may have wanted more",
			throttled,
			periods,
			looks[len(looks)-1].Quota,
		)
	}
	return out
}

// looksAround returns the identities of the subject's process in the window that have limits, and the nearest one
// before and after the window.
func looksAround(q *question.Question) (out []bundle.IdentitySample) {
	for _, r := range question.Read[bundle.IdentitySample](q, bundle.Identity).Records {
		switch {
		case r.Limits == nil || r.Expected || r.PID <= 0:
		case r.Time.Before(q.Window.Start):
			out = []bundle.IdentitySample{r}
		case r.Time.After(q.Window.End):
			return append(out, r)
		default:
			out = append(out, r)
		}
	}
	return out
}
