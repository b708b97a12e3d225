package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// FromNeighbours returns the modules of a release's own repository that can't be had in the release's version, such as
// one that a module proxy refuses, each with the version in which the first of the neighbours has it that can be had. It
// is empty if none lacks. A module that no neighbour has either is an error, as is a proxy that doesn't answer: what is
// there may not depend on the network of the moment.
func (b *Builder) FromNeighbours(
	ctx context.Context,
	module, version string,
	neighbours []string,
) (map[string]string, error) {
	_, mod, own, err := b.builtWith(ctx, module, version)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, path := range own {
		is := origin(mod, path)
		has, err := b.has(ctx, is)
		if err != nil {
			return nil, err
		}
		if has {
			continue
		}
		if out[path], err = b.firstOf(ctx, module, path, neighbours); err != nil {
			return nil, err
		}
		if out[path] == "" {
			return nil, fmt.Errorf("%s %s can't be had, nor that of another release of the branch: %s",
				path, is.Version, cmp.Or(strings.Join(neighbours, ", "), "there is none"))
		}
	}
	return out, nil
}

// firstOf returns the version of a module of the repository in the first of the releases with which it can be had; "" if
// there is none.
func (b *Builder) firstOf(
	ctx context.Context,
	module, path string,
	releases []string,
) (string, error) {
	for _, release := range releases {
		_, mod, own, err := b.builtWith(ctx, module, release)
		if err != nil {
			return "", err
		}
		if !slices.Contains(own, path) {
			continue
		}
		is := origin(mod, path)
		if has, err := b.has(ctx, is); has || err != nil {
			return is.Version, err
		}
	}
	return "", nil
}

// refused matches what the go command says of a module that a proxy, or the database of checksums, doesn't have.
var refused = regexp.MustCompile(`\b(403 Forbidden|404 Not Found|410 Gone)\b|reading file:.*no such file or directory`)

// has reports whether a module can be had. What doesn't say that there is none is an error: an overloaded proxy, a full
// disk or other content than was published may be over or mended later.
func (b *Builder) has(ctx context.Context, src Source) (bool, error) {
	_, err := b.locate(ctx, src)
	var unanswered *FetchError
	if err == nil || ctx.Err() == nil && !errors.As(err, &unanswered) && refused.MatchString(err.Error()) {
		return err == nil, nil
	}
	return false, err
}
