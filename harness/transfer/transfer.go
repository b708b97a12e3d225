// Package transfer carries what runs need from one host to another: Gather makes it, Export writes it into an archive,
// and Import puts an archive into the cache of a host that may have neither Go nor a network.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build"
	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/transfer/carry"
)

// Parts are what runs of a plan take from the cache and from the container engine. They stay until Close.
type Parts struct {
	Toolchain build.Toolchain // that built the programs

	made    *artifacts.Artifacts
	carrier cluster.Carrier // nil if the clusters start from no images
	images  []cluster.Image
}

// Gather makes what runs of a plan need, as harness.Build does, and returns it. Then it takes the steps of a run again, and what
// these take from the cache is what a run takes. on makes the clusters, and o says where artifacts are made.
func Gather(
	ctx context.Context,
	planned *plan.Plan,
	on cluster.Provider,
	o artifacts.Options,
) (p *Parts, err error) {
	if err := makeAll(ctx, planned, on, o); err != nil {
		return nil, err
	}
	o.Events = nil // harness.Build said it all
	made, err := artifacts.Open(o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	p = &Parts{made: made}
	if err := made.Decide(ctx, planned); err != nil {
		return nil, err
	}
	n := planned.Needs(made)
	made.Forecast(ctx, planned, on, n) // decides which Go's programs are taken
	if err := made.Build(ctx, planned); err != nil {
		return nil, err
	}
	if carrier, ok := on.(cluster.Carrier); ok { // what its images are made of isn't needed beside them
		p.carrier, p.images = carrier, carrier.Images(n)
	} else if _, err := on.Prepare(ctx, n); err != nil {
		return nil, err
	}
	p.Toolchain, err = made.Toolchain(ctx)
	return p, err
}

// makeAll makes what runs of a plan need.
func makeAll(
	ctx context.Context,
	p *plan.Plan,
	on cluster.Provider,
	o artifacts.Options,
) (err error) {
	made, err := artifacts.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	_, err = harness.Build(ctx, harness.Options{Plan: p, Provider: on, Artifacts: made})
	return err
}

// Close lets others prune the parts.
func (p *Parts) Close() error { return p.made.Close() }

// Export writes an archive of parts to w, for Import on another host. about says which runs it is for and which relapse
// exported it. Images are saved in dir first, a folder with room for them, and removed again.
func Export(
	ctx context.Context,
	w io.Writer,
	dir string,
	about carry.Manifest,
	parts []*Parts,
) (_ carry.Manifest, err error) {
	var sources []carry.Source
	for _, p := range parts {
		if about.Toolchain = p.Toolchain; about.Toolchain != parts[0].Toolchain {
			return about, fmt.Errorf(
				"some programs were built by %s with other settings than the rest by %s "+
					"(want one Go: relapse cache prune, and export again)",
				p.Toolchain.GOVERSION,
				parts[0].Toolchain.GOVERSION,
			)
		}
		for _, e := range p.made.Taken() {
			s := carry.Source{Name: path.Join(carry.Entries, e.Kind, e.Key), Path: e.Path}
			if !slices.Contains(sources, s) {
				sources = append(sources, s)
			}
		}
	}
	tmp, err := os.MkdirTemp(dir, ".relapse-export-")
	if err != nil {
		return about, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	files := map[string]string{} // by the image's id
	for _, p := range parts {
		for _, img := range p.images {
			if files[img.ID] == "" {
				files[img.ID] = path.Join(carry.Images, strconv.Itoa(len(files)+1)+".tar")
				at := filepath.Join(tmp, path.Base(files[img.ID]))
				if err := save(ctx, p.carrier, img, at); err != nil {
					return about, err
				}
				sources = append(sources, carry.Source{Name: files[img.ID], Path: at})
			}
			if img.File = files[img.ID]; !slices.Contains(about.Images, img) {
				about.Images = append(about.Images, img)
			}
		}
	}
	return carry.Pack(ctx, w, about, sources)
}

func save(ctx context.Context, c cluster.Carrier, img cluster.Image, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Save(ctx, img, f), f.Close()); err != nil {
		return fmt.Errorf("saving the image %s: %w", img.Ref, err)
	}
	return nil
}

// Arrived says what an import brought.
type Arrived struct {
	carry.Manifest
	Added, Kept int   // entries of the cache: those that are new, and those that were there
	NoImages    error // why the images were not loaded; nil if they were, or there are none
}

// Import verifies an archive of Export and puts what it has into the cache of a host. Nothing is put there before all of
// it was verified. images gives who loads the archive's images, if there are any: its error says why nobody can, and is no
// failure. What is wrong with the archive is a *carry.Error.
func Import(
	ctx context.Context,
	r io.Reader,
	cacheDir string,
	images func() (cluster.Carrier, error),
) (a Arrived, err error) {
	store, err := cache.Open(cacheDir)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	dir, release, err := store.Scratch(ctx, "import")
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if a.Manifest, err = carry.Unpack(ctx, r, dir); err != nil {
		return a, err
	}
	if err := build.AddToolchain(store.Dir(), a.Toolchain); err != nil {
		return a, err
	}
	entries, err := filepath.Glob(filepath.Join(dir, carry.Entries, "*", "*"))
	if err != nil {
		return a, err
	}
	for _, at := range entries {
		added, err := store.Adopt(ctx, filepath.Base(filepath.Dir(at)), filepath.Base(at), at)
		if err != nil {
			return a, err
		}
		if added {
			a.Added++
		} else {
			a.Kept++
		}
	}
	return a, a.load(ctx, dir, images)
}

// load loads the images of an archive that was unpacked into dir.
func (a *Arrived) load(
	ctx context.Context,
	dir string,
	images func() (cluster.Carrier, error),
) error {
	if len(a.Images) == 0 {
		return nil
	}
	carrier, err := images()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		a.NoImages = err
		return nil
	}
	of := map[string][]cluster.Image{}
	for _, i := range a.Images {
		of[i.File] = append(of[i.File], i)
	}
	for file, all := range of {
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if err := errors.Join(carrier.Load(ctx, all, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
