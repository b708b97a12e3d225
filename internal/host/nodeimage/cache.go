package nodeimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is an assembled image in the engine, as `relapse cache ls` shows it.
type Entry struct {
	Ref     string
	ID      string
	Layer   string // "base" or "node"
	Key     string // the hash of its inputs
	Created time.Time
	Size    int64 // bytes, with the layers that it shares with its base
}

// List returns the assembled images, newest first. Official and given images
// aren't ours to list.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	out, err := s.engine.Output(ctx, "image", "ls", "--quiet", "--no-trunc", "--filter",
		"label="+labelCache+"="+cacheNodeImage)
	if err != nil {
		return nil, fmt.Errorf("listing node images: %w", err)
	}
	ids := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	if len(ids) == 0 {
		return nil, nil
	}
	out, err = s.engine.Output(ctx, append([]string{"image", "inspect"}, ids...)...)
	if err != nil {
		return nil, fmt.Errorf("listing node images: %w", err)
	}
	var images []struct {
		ID       string `json:"Id"`
		RepoTags []string
		Created  time.Time
		Size     int64
		Config   struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(out, &images); err != nil {
		return nil, fmt.Errorf("listing node images: %w", err)
	}
	var entries []Entry
	for _, i := range images {
		for _, tag := range i.RepoTags {
			if !strings.HasPrefix(tag, baseRepository+":") && !strings.HasPrefix(tag, nodeRepository+":") {
				continue // someone's own name for it, or an image built on it
			}
			l := i.Config.Labels
			entries = append(entries, Entry{
				Ref:     tag,
				ID:      i.ID,
				Layer:   l[labelLayer],
				Key:     l[labelKey],
				Created: i.Created,
				Size:    i.Size,
			})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Ref, b.Ref)
	})
	return entries, nil
}

// Has returns the origin of the image that Get would find in the engine in a mode, or "" if Get would have to pull or
// make one. An assembled image counts if it is of the version, whatever it was made of.
func (s *Store) Has(ctx context.Context, version, mode string) (origin string, err error) {
	minor, err := minorOf(version)
	if err != nil {
		return "", err
	}
	ref, origin := mode, OriginGiven
	if mode == Auto || mode == Official || mode == Assembled {
		ref, origin = s.official[minor].ref, OriginOfficial
	}
	if ref != "" && mode != Assembled {
		if _, there, err := s.imageID(ctx, ref); err != nil || there {
			return origin, err
		}
	}
	if mode != Auto && mode != Assembled {
		return "", nil
	}
	all, err := s.List(ctx)
	if !slices.ContainsFunc(all, func(e Entry) bool { return strings.HasPrefix(e.Ref, nodeRepository+":"+version+"-") }) {
		return "", err
	}
	return OriginAssembled, err
}

// Prune removes the assembled images, except those whose reference or id is in keep, and returns what it removed. The
// engine keeps an image that a container uses, and Prune reports that as an error.
func (s *Store) Prune(ctx context.Context, keep ...string) ([]Entry, error) {
	entries, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	var removed []Entry
	var problems []error
	for _, e := range entries {
		if slices.Contains(keep, e.Ref) || slices.Contains(keep, e.ID) {
			continue
		}
		if _, err := s.engine.Output(ctx, "image", "rm", e.Ref); err != nil {
			problems = append(problems, fmt.Errorf("removing %s: %w", e.Ref, err))
			continue
		}
		removed = append(removed, e)
		if e.Layer == layerBase && e.Key != "" {
			if err := os.Remove(filepath.Join(s.dir, "userland-"+e.Key+".tar")); err != nil &&
				!errors.Is(err, os.ErrNotExist) {
				problems = append(problems, err)
			}
		}
	}
	return removed, errors.Join(problems...)
}
