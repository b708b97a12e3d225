package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kube-relapse/relapse/harness/build/cache"
)

// List prints what the cache holds: builds and the engine's assembled node images.
func (a *Artifacts) List(ctx context.Context, w io.Writer) error {
	entries, err := a.cache.List()
	if err != nil {
		return err
	}
	images, err := a.store.List(ctx)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tKEY\tSIZE\tLAST USED\tWHAT")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%.12s\t%s\t%s\t%s\n", e.Kind, e.Key, mib(e.Bytes), e.LastUsed.Format("2006-01-02 15:04"), e.Note)
	}
	for _, i := range images {
		fmt.Fprintf(t, "image\t%.12s\t%s\t%s\t%s\n", i.Key, mib(i.Size), i.Created.Local().Format("2006-01-02 15:04"), i.Ref)
	}
	return t.Flush()
}

// Prune removes what nobody is using and prints what it removed.
func (a *Artifacts) Prune(ctx context.Context, w io.Writer) error {
	entries, freed, err := a.cache.Prune(cache.PruneOptions{})
	for _, e := range entries {
		fmt.Fprintf(w, "removed %s %.12s %s\n", e.Kind, e.Key, e.Note)
	}
	images, err2 := a.store.Prune(ctx)
	for _, i := range images {
		fmt.Fprintf(w, "removed image %s\n", i.Ref)
		freed += i.Size
	}
	fmt.Fprintf(w, "%s freed (images share layers, so the disk may have gained less)\n", mib(freed))
	return errors.Join(err, err2)
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

// Clean removes what killed runs left half made: images and scratch of builds. Each is told.
func (a *Artifacts) Clean(ctx context.Context, say func(string)) error {
	left, err := a.store.Clean(ctx)
	for _, x := range left {
		say("removed the " + x.Kind + " " + x.Name + " of an unfinished node image")
	}
	scratch, err2 := a.cache.Clean(ctx)
	for _, x := range scratch {
		say("removed scratch " + x)
	}
	return errors.Join(err, err2)
}
