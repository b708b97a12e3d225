package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FileSum returns the SHA-256 of a file, in hex.
func FileSum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// graphSum returns the SHA-256 over go.mod and go.sum of a generated module. These files decide every version and every
// byte of the module graph.
func graphSum(work string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		sum, err := FileSum(filepath.Join(work, name))
		if err != nil {
			return "", fmt.Errorf("hashing the module graph: %w", err)
		}
		fmt.Fprintln(h, name, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// TreeSum returns the SHA-256 over the names and contents of those files in a directory that copyTree copies from a
// checkout.
func TreeSum(root string) (string, error) {
	return sumFiles(root, func(path, rel string, d fs.DirEntry) (read bool, err error) {
		if d.IsDir() && skipped(rel, false) {
			return false, fs.SkipDir
		}
		return isFile(path)
	})
}

// placeSum returns the SHA-256 over the names and contents of all that a build in place may read of a directory: what it
// may embed, too, and what links lead to, which Go follows to files and to the folder of a package.
func placeSum(dir string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the source in %s: %w", dir, err)
	}
	return sumFiles(root, func(path, rel string, d fs.DirEntry) (read bool, err error) {
		if d.IsDir() && rel == ".git" {
			return false, fs.SkipDir
		}
		return isFile(path)
	})
}

// sumFiles returns the SHA-256 over the names and contents of those files below root that read chooses.
func sumFiles(
	root string,
	read func(path, rel string, d fs.DirEntry) (bool, error),
) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if ok, err := read(p, rel, d); err != nil || !ok {
			return err
		}
		sum, err := FileSum(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %s\n", filepath.ToSlash(rel), sum)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("hashing the source in %s: %w", root, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func readJSON(name string, v any) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}

func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	if err := os.WriteFile(name, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
