package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-relapse/relapse/internal/sums"
)

// graphSum returns the SHA-256 over go.mod and go.sum of a generated module. These files decide every version and every
// byte of the module graph.
func graphSum(work string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		sum, err := sums.File(filepath.Join(work, name))
		if err != nil {
			return "", fmt.Errorf("hashing the module graph: %w", err)
		}
		fmt.Fprintln(h, name, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// placeSum returns the SHA-256 over the names and contents of all that a build in place may read of a directory: what it
// may embed, too, and what links lead to, which Go follows to files and to the folder of a package.
func placeSum(dir string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("looking for the source in %s: %w", dir, err)
	}
	return sums.Files(root, func(path, rel string, d fs.DirEntry) (read bool, err error) {
		if d.IsDir() && rel == ".git" {
			return false, fs.SkipDir
		}
		return sums.IsFile(path)
	})
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
