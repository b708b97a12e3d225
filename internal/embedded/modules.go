package embedded

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// modulesFile is the archive of the fixtures that are modules of their own, by its path from the root.
const modulesFile = "fixtures/modules.zip"

// PackModules writes the fixtures below root that are modules of their own into the archive that Tree embeds, and
// returns the archive's path. The same files give the same bytes.
func PackModules(root string) (string, error) {
	files, err := moduleFiles(root)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("packing a fixture: %w", err)
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate}) // without a time
		if err == nil {
			_, err = to.Write(text)
		}
		if err != nil {
			return "", fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("packing the fixtures: %w", err)
	}
	out := filepath.Join(root, filepath.FromSlash(modulesFile))
	return out, os.WriteFile(out, packed.Bytes(), 0o644)
}

// moduleFiles returns the paths from root of all files of fixtures that have a go.mod, in order.
func moduleFiles(root string) ([]string, error) {
	mods, err := filepath.Glob(filepath.Join(root, "fixtures", "*", "go.mod"))
	if err != nil || len(mods) == 0 {
		return nil, fmt.Errorf("there is no fixture with a go.mod below %s: %w", root, err)
	}
	var out []string
	for _, mod := range mods {
		err := filepath.WalkDir(filepath.Dir(mod), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, file)
			out = append(out, filepath.ToSlash(name))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing the files of fixtures: %w", err)
		}
	}
	slices.Sort(out)
	return out, nil
}

// unpackModules adds the files in the archive to files.
func unpackModules(archive []byte, files map[string][]byte) error {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return fmt.Errorf("reading %s: %w", modulesFile, err)
	}
	for _, f := range r.File {
		if !fs.ValidPath(f.Name) || !strings.HasPrefix(f.Name, "fixtures/") {
			return fmt.Errorf(
				"reading %s: it has %q, which is not below fixtures/",
				modulesFile,
				f.Name,
			)
		}
		in, err := f.Open()
		if err != nil {
			return fmt.Errorf("reading %s: %w", path.Base(f.Name), err)
		}
		text, err := io.ReadAll(in)
		in.Close()
		if err != nil {
			return fmt.Errorf("reading %s in %s: %w", f.Name, modulesFile, err)
		}
		files[f.Name] = text
	}
	return nil
}
