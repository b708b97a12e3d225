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
	h := sha256.New()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() && skipped(rel, false) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
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
