package kind

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// retry tries at once and then every so often until there is no error. When ctx ends first, it returns the last one, or
// ctx's cause if there was none.
func retry(ctx context.Context, every time.Duration, try func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		err := try(ctx)
		if ctx.Err() == nil { // what its end cut off says nothing
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	return cmp.Or(last, context.Cause(ctx))
}
