package loads

import (
	"context"
	"fmt"
	"time"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
)

// looks is how often a list is repeated to see whether the number of objects that a round left still falls. lookFor is
// how long each list is tried.
const (
	looks   = 4
	lookFor = 20 * time.Second
)

// noteLeft records how many objects a round left, once their number stands still. While the number falls, somebody goes
// on deleting and no call was cut short. Without an answer, for example of an API server that was killed, the number
// stays unknown.
func (r *rounds) noteLeft(ctx context.Context, round *bundle.LoadRound) {
	if r.spec.Still.Duration == 0 || round.Cut == nil {
		return
	}
	n, err := r.remaining(ctx)
	for range looks {
		was := n
		if err != nil || wait(ctx, r.spec.Still.Duration) != nil {
			break
		}
		if n, err = r.remaining(ctx); err == nil && n == was {
			round.Cut.Left = &n
			r.emit(
				event.Note,
				round.Round,
				"left %d of %d objects, of %d calls that deleted when it began %d or more were ended",
				n,
				r.spec.Items,
				round.Cut.Deleting,
				round.Cut.AtLeast(),
			)
			return
		}
	}
	why := fmt.Sprintf("their number has not stood still for %s", r.spec.Still.Duration)
	switch {
	case ctx.Err() != nil:
		why = "it was cut off"
	case err != nil:
		why = err.Error()
	}
	r.emit(event.Warning, round.Round, "how many objects it left is not known: %s", why)
}

// remaining counts the objects in the namespace that the calls delete from.
func (r *rounds) remaining(ctx context.Context) (n int, err error) {
	err = insist(ctx, lookFor, func(ctx context.Context) error {
		have, err := r.items(ctx, r.namespace(0))
		n = len(have)
		return err
	})
	return n, err
}
