package check

import (
	"fmt"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// starved takes back that a process used little of the CPU, where one that always wants a CPU might have got no more
// than limit: it gets about as much of one as there are cores for each task that could run. A loop among 84 such tasks
// on two cores was seen to get 0.07 CPUs, and passed for one at rest.
func (q *question) starved(limit float64) {
	of := bundle.Query{Kind: bundle.Host}
	if q.phase == Baseline || len(q.view.Artifacts(of)) == 0 { // a bundle of a time when it was not asked for
		return
	}
	host := readWith(q, of, records[bundle.HostSample])
	q.Evidence = append(q.Evidence, host.paths...)
	tasks, cores, samples := 0, 0, 0
	for _, s := range host.records {
		if contains(q.window, s.Time) {
			tasks, cores, samples = tasks+s.Running, s.Cores, samples+1
		}
	}
	if host.doubt != "" || samples == 0 {
		q.Met, q.Seen = Unknown, q.Seen+"; nobody knows how much it could have got: "+host.doubt
		return
	}
	running := float64(tasks) / float64(samples)
	if share := float64(cores) / running; share < limit {
		q.Met = Unknown
		q.Seen += fmt.Sprintf("; with %.0f tasks for %d cores one that always wants a CPU may get no more than %.2g of it", running,
			cores, share)
	}
}
