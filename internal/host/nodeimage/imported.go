package nodeimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Imported is an image that another host got, and whose archive was loaded here. The engine knows it by another name
// and id here: an archive has no digest, which is what an official image is pinned by.
type Imported struct {
	Version string // of Kubernetes, for which it was got
	Mode    string // by which it was got
	From    string // its id there
	Origin  string
	Ref, ID string // here
	Recipe  string // of this package
}

// importedFile is the file in the store's folder that lists the imported images.
const importedFile = "imported.json"

func (s *Store) imported() (all []Imported, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, importedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which node images were imported: %w", err)
	}
	return all, nil
}

// Imported returns the image that was imported for a version and a mode, or false if there is none, or the engine has
// it no more. In mode Auto any will do.
func (s *Store) Imported(ctx context.Context, version, mode string) (Image, bool, error) {
	all, err := s.imported()
	if err != nil {
		return Image{}, false, err
	}
	for _, i := range all {
		if i.Version != version || i.Recipe != recipeVersion || mode != Auto && mode != i.Mode && mode != i.Origin {
			continue
		}
		if id, there, err := s.imageID(ctx, i.Ref); err != nil || there && id == i.ID {
			return Image{Ref: i.Ref, ID: i.ID, Origin: i.Origin, Version: version, Cached: true,
				What: []string{"imported; it was " + i.From + " on the host that exported it"}}, true, err
		}
	}
	return Image{}, false, nil
}

// Save writes an image's archive to w.
func (s *Store) Save(ctx context.Context, ref string, w io.Writer) error {
	return s.engine.Stream(ctx, nil, w, "save", ref)
}

// Load loads an image's archive, unless all that it is for is there. as says what it is for: the versions, modes, origins
// and the id on the host that saved it.
func (s *Store) Load(ctx context.Context, as []Imported, archive io.Reader) error {
	unlock, err := s.lock(ctx, importedFile)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.imported()
	if err != nil {
		return err
	}
	if there, err := s.haveAll(ctx, all, as); err != nil || there {
		return err
	}
	ref, err := s.load(ctx, archive)
	if err != nil {
		return err
	}
	id, there, err := s.imageID(ctx, ref)
	if err != nil || !there {
		return errors.Join(
			err,
			fmt.Errorf(
				"loading a node image: the engine doesn't know %s after it loaded it",
				ref,
			),
		)
	}
	for _, i := range as {
		i.Ref, i.ID, i.Recipe = ref, id, recipeVersion
		all = append(
			slices.DeleteFunc(
				all,
				func(o Imported) bool { return o.Version == i.Version && o.Mode == i.Mode },
			),
			i,
		)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = renameio.WriteFile(filepath.Join(s.dir, importedFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("recording which node images were imported: %w", err)
	}
	return nil
}

// haveAll reports whether all of as were imported, and the engine has them still.
func (s *Store) haveAll(ctx context.Context, all, as []Imported) (bool, error) {
	for _, want := range as {
		i := slices.IndexFunc(all, func(i Imported) bool {
			return i.Version == want.Version && i.Mode == want.Mode && i.From == want.From &&
				i.Recipe == recipeVersion
		})
		if i < 0 {
			return false, nil
		}
		if id, there, err := s.imageID(ctx, all[i].Ref); err != nil || !there || id != all[i].ID {
			return false, err
		}
	}
	return true, nil
}

// load has the engine load an archive, and returns the image's name. An image without one, as it was pulled by its
// digest, gets one of ours.
func (s *Store) load(ctx context.Context, archive io.Reader) (ref string, err error) {
	var said strings.Builder
	if err := s.engine.Stream(ctx, archive, &said, "load"); err != nil {
		return "", fmt.Errorf("loading a node image: %w", err)
	}
	for line := range strings.Lines(said.String()) {
		if name, ok := strings.CutPrefix(line, "Loaded image: "); ok {
			return strings.TrimSpace(name), nil
		}
		if id, ok := strings.CutPrefix(line, "Loaded image ID: "); ok {
			id = strings.TrimSpace(id)
			_, hash, _ := strings.Cut(id, ":")
			ref = nodeRepository + ":imported-" + hash[:min(12, len(hash))]
			_, err := s.engine.Output(ctx, "tag", id, ref)
			return ref, err
		}
	}
	return "", fmt.Errorf(
		"loading a node image: the engine doesn't say what it loaded: %q",
		said.String(),
	)
}
