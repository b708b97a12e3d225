package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// starved takes back that a process used little of the CPU, where one that always wants a CPU might have got no more
// than limit: where its control group was throttled, and where too many others wanted the host's cores. The weight of
// its control group is not known, so that such a one may also get less than its share of the tasks.
func (q *question) starved(used, limit float64) {
	if q.phase == Baseline {
		return
	}
	own := q.allowance()
	if own.doubt != "" {
		q.Met, q.Seen = Unknown, q.Seen+"; "+own.doubt
		return
	}
	of := bundle.Query{Kind: bundle.Host}
	if len(q.view.Artifacts(of)) == 0 {
		if q.view.World().Format > 0 { // before that, not every trial recorded the host
			q.Met, q.Seen = Unknown, q.Seen+"; nobody knows how much it could have got: no record of the host"
		}
		return
	}
	host := readWith(q, of, records[bundle.HostSample])
	q.Evidence = append(q.Evidence, host.paths...)
	var samples []bundle.HostSample
	tasks := 0
	for _, s := range host.records {
		if contains(q.window, s.Time) {
			samples, tasks = append(samples, s), tasks+s.Running
		}
	}
	if host.doubt != "" || len(samples) == 0 {
		q.Met, q.Seen = Unknown, q.Seen+"; nobody knows how much it could have got: "+host.doubt
		return
	}
	running, cores := float64(tasks)/float64(len(samples)), samples[0].Cores
	pinned := own.cores > 0 && own.cores < cores
	if pinned {
		cores = own.cores
	}
	// It gets about as much of a CPU as there are cores for each task that could run. A loop among 84 such tasks on two
	// cores was seen to get 0.07 CPUs, and passed for one at rest.
	share := float64(cores) / running
	if own.cores > 0 && !pinned {
		// Samples count the tasks when many of them wake up. What nobody used in between it could have had as well.
		share = max(share, used+spareCPU(samples))
	}
	if share < limit {
		q.Met = Unknown
		q.Seen += fmt.Sprintf("; with %.0f tasks for %d cores one that always wants a CPU may get no more than %.2g of it", running,
			cores, share)
	}
}

// spareCPU is how many CPUs one more thread could have had, 1 at most, because they were idle: the mean between the first
// and the last sample.
func spareCPU(all []bundle.HostSample) float64 {
	all = slices.SortedFunc(slices.Values(all), func(a, b bundle.HostSample) int { return a.Time.Compare(b.Time) })
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

// allowance is what the kernel let the subject's process have of the CPUs in a window.
type allowance struct {
	cores int    // on how many it could run; 0 is not known
	doubt string // why it may have got less than it wanted
}

// allowance reads the limits of the window, from the last look before it to the first after it. Identities without
// limits are of versions that did not record them.
func (q *question) allowance() (out allowance) {
	var looks []bundle.CPULimits
	unread := false
	for _, r := range q.looksAround() {
		looks = append(looks, *r.Limits)
		unread = unread || !r.Limits.Known || r.Limits.Cores == 0
	}
	if unread {
		return allowance{doubt: "nobody knows how much it could have got: its limits could not be read"}
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
		out.doubt = fmt.Sprintf("it was throttled in %d of %d periods, by a quota of %.3g CPUs, and may have wanted more",
			throttled, periods, looks[len(looks)-1].Quota)
	}
	return out
}

// looksAround are the looks at the subject's process in the window that have limits, with the one before and the one
// after.
func (q *question) looksAround() (out []bundle.IdentitySample) {
	for _, r := range read[bundle.IdentitySample](q, bundle.Identity).records {
		switch {
		case r.Limits == nil || r.Expected || r.PID <= 0:
		case r.Time.Before(q.window.Start):
			out = []bundle.IdentitySample{r}
		case r.Time.After(q.window.End):
			return append(out, r)
		default:
			out = append(out, r)
		}
	}
	return out
}
