package collectors

import (
	"context"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// digestEvery is how often the running executable is hashed: rarely, because it is read whole each time.
const digestEvery = 30 * time.Second

func init() {
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "identity",
		Doc: "Which process the subject is, its CPU time and its CPU limits, every 2s, and from time to time the " +
			"SHA-256 of its executable.\n\n" +
			"A process is identified by its id, its start time and the address of its arguments: a process that " +
			"replaces itself by execve keeps the first two. The collector hashes the executable every 30s, in each " +
			"phase, and when the process is another one.\n\n" +
			"Every trial has this collector, even if the scenario doesn't list it: an arm that restarted, or that " +
			"isn't the binary that was built for it, must not be judged.",
		Example: "name: identity\nkind: identity\n",
		New:     func() capture.Collector { return &Identity{} },
	})
}

// Identity collects process identities.
type Identity struct{}

// Makes returns the kind of artifact that the collector records: identities of processes.
func (*Identity) Makes() []bundle.Kind { return []bundle.Kind{bundle.Identity} }

// Stream records which process the component is, until ctx ends. The executable of a new process is hashed at once.
func (*Identity) Stream(ctx context.Context, t capture.Target, w *bundle.Writer) error {
	st, err := w.Stream(t.Meta(bundle.Identity), "jsonl")
	if err != nil {
		return err
	}
	var last cluster.Identity
	var hashed time.Time
	var hashedIn string // the phase of the last digest: each phase gets one, however short it is
	Follow(ctx, 2*time.Second, st, func(ctx context.Context) error {
		now, err := observe(ctx, st, t.Component, false)
		if err != nil {
			return err
		}
		phase := t.Meta(bundle.Identity).Phase
		another := now.PID != 0 &&
			(now.PID != last.PID || now.StartTicks != last.StartTicks || now.ArgStart != last.ArgStart)
		if another || time.Since(hashed) > digestEvery || phase != hashedIn {
			// The digest is a separate request: reading a whole executable takes seconds on a busy host, and a short
			// phase would begin without a sample.
			if now, err = observe(ctx, st, t.Component, true); err != nil {
				return err
			}
		}
		if last = now; now.SHA256 != "" {
			hashed, hashedIn = time.Now(), phase
		}
		return nil
	})
	return st.Close()
}

// observe asks a component which process it is, and records the answer.
func observe(
	ctx context.Context,
	st *bundle.Stream,
	of cluster.Component,
	digest bool,
) (cluster.Identity, error) {
	now, err := of.Identity(ctx, digest)
	if err != nil {
		return now, err
	}
	return now, st.JSON(bundle.IdentitySample{
		Time: time.Now().UTC(), PID: now.PID, StartTicks: now.StartTicks, Restarts: now.Restarts,
		SHA256:       now.SHA256,
		Arguments:    &bundle.Arguments{Address: now.ArgStart, Randomize: now.Randomize},
		CPUSeconds:   float64(now.CPUTicks) / cluster.TicksPerSecond,
		ChildSeconds: float64(now.ChildTicks) / cluster.TicksPerSecond,
		Limits:       limitsOf(now),
	})
}

// limitsOf returns the CPU limits of a process, nil if there is no process.
func limitsOf(id cluster.Identity) *bundle.CPULimits {
	if id.PID == 0 {
		return nil
	}
	return new(bundle.CPULimits(id.Limits))
}
