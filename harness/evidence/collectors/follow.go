package collectors

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
)

const (
	// AskTimeout bounds one request to a component: a stuck request must not hold up the next one.
	AskTimeout = 20 * time.Second
	// tolerated is the longest time between two answers that is no gap. A single lost sample leaves less open. A longer
	// time is a gap, and a check can't judge a window with a gap.
	tolerated = 10 * time.Second
)

// ValidateInterval refuses an interval of 0 or less, with which nobody would know when to ask again.
func ValidateInterval(d metav1.Duration) error {
	if d.Duration <= 0 {
		return fmt.Errorf("interval is %s (want above 0)", d.Duration)
	}
	return nil
}

// Follow calls ask again and again until ctx ends. Failures for longer than tolerated become a gap with the last error
// as its reason. They never end the collection.
func Follow(
	ctx context.Context,
	every time.Duration,
	st *bundle.Stream,
	ask func(context.Context) error,
) {
	followed(ctx, every, st, ask, false)
}

// followKept works like follow, for a source that keeps its content until it is asked for, such as a file that only
// grows. A late answer leaves no gap. Only the time from the last answer to the end can be a gap.
func followKept(
	ctx context.Context,
	every time.Duration,
	st *bundle.Stream,
	ask func(context.Context) error,
) {
	followed(ctx, every, st, ask, true)
}

func followed(
	ctx context.Context,
	every time.Duration,
	st *bundle.Stream,
	ask func(context.Context) error,
	kept bool,
) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	answered := time.Now()
	var reason error
	for ctx.Err() == nil {
		asked := time.Now()
		one, cancel := context.WithTimeout(ctx, AskTimeout)
		err := ask(one)
		cancel()
		switch {
		case ctx.Err() != nil: // ctx ended, so the result says nothing
		case err != nil:
			reason = err
		default:
			if gap := asked.Sub(answered); gap > tolerated && !kept {
				st.Gap(answered, asked, why(reason, gap))
			}
			answered, reason = time.Now(), nil
			st.Alive(answered)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if reason != nil && time.Since(answered) > tolerated {
		st.Gap(answered, time.Now(), reason.Error())
	}
}

func why(reason error, gap time.Duration) string {
	if reason == nil {
		return fmt.Sprintf("no answer for %s", gap.Round(time.Second))
	}
	return reason.Error()
}

// Stamp records the answers of ask until ctx ends, each with its time.
func Stamp[T any](
	ctx context.Context,
	every time.Duration,
	t capture.Target,
	w *bundle.Writer,
	kind bundle.Kind,
	ask func(context.Context) (T, error),
) error {
	st, err := w.Stream(t.Meta(kind), "jsonl")
	if err != nil {
		return err
	}
	Follow(ctx, every, st, func(ctx context.Context) error {
		v, err := ask(ctx)
		if err != nil {
			return err
		}
		return st.JSON(bundle.Stamped[T]{Time: time.Now().UTC(), Value: v})
	})
	return st.Close()
}
