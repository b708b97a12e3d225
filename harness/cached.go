package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kube-relapse/relapse/harness/cache"
)

// ListCache prints what the cache holds: builds and the engine's assembled node images.
func (l *Lab) ListCache(ctx context.Context, w io.Writer) error {
	entries, err := l.cache.List()
	if err != nil {
		return err
	}
	images, err := l.store.List(ctx)
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

// PruneCache removes what nobody is using and prints what it removed.
func (l *Lab) PruneCache(ctx context.Context, w io.Writer) error {
	entries, freed, err := l.cache.Prune(cache.PruneOptions{})
	for _, e := range entries {
		fmt.Fprintf(w, "removed %s %.12s %s\n", e.Kind, e.Key, e.Note)
	}
	images, err2 := l.store.Prune(ctx)
	for _, i := range images {
		fmt.Fprintf(w, "removed image %s\n", i.Ref)
		freed += i.Size
	}
	fmt.Fprintf(w, "%s freed (images share layers, so the disk may have gained less)\n", mib(freed))
	return errors.Join(err, err2)
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
