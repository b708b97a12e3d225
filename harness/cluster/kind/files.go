package kind

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// hostPath returns the path on the host of the file that a node has at nodePath. dir is the node's folder.
func hostPath(dir, nodePath string) string {
	return filepath.Join(dir, "root", filepath.FromSlash(nodePath))
}

// writeFiles writes each file to the path that hostPath returns for it.
func writeFiles(dir string, files []cluster.File) error {
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o700); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return fmt.Errorf("the file %q: want a clean absolute path", f.Path)
		}
		if seen[f.Path] {
			return fmt.Errorf("the file %q is given twice", f.Path)
		}
		seen[f.Path] = true
		if err := writeFile(hostPath(dir, f.Path), f); err != nil {
			return err
		}
	}
	return nil
}

// writeFile replaces the file at the path in one step: a file that is mounted or running keeps its content.
func writeFile(at string, f cluster.File) (err error) {
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(at), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	err = fill(tmp, f)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	mode := os.FileMode(f.Mode)
	if mode == 0 {
		mode = 0o644
	}
	if err := os.Chmod(tmp.Name(), mode); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), at)
}

// fill writes the content of f, or copies its source. It makes no link, which would share mode and content with a
// foreign file.
func fill(w io.Writer, f cluster.File) error {
	if f.Source == "" {
		_, err := w.Write(f.Content)
		return err
	}
	src, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = io.Copy(w, src)
	return err
}
