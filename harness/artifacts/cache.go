package artifacts

import (
	"context"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// Kept returns the builds in the cache.
func (a *Artifacts) Kept() ([]cache.Entry, error) { return a.cache.List() }

// Prune removes the builds that nobody is using. It returns them and the number of bytes freed.
func (a *Artifacts) Prune() ([]cache.Entry, int64, error) { return a.cache.Prune(cache.PruneOptions{}) }

// Clean removes the scratch directories of builds that were killed, and reports each.
func (a *Artifacts) Clean(ctx context.Context, say func(string)) error {
	scratch, err := a.cache.Clean(ctx)
	for _, x := range scratch {
		say("removed scratch " + x)
	}
	return err
}
