package kind

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// retry calls try at once, and then at the interval every until try returns no error. If ctx ends first, retry returns
// the last error, or ctx's cause if there was none.
func retry(ctx context.Context, every time.Duration, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if ctx.Err() == nil { // an error because ctx ended says nothing
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return cmp.Or(last, context.Cause(ctx))
}
