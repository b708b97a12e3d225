package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/internal/embedded"
)

// The program carries what the repository has: the archive of modules is made by hand, with go generate.
func TestWhatIsCarriedIsTheRepositorys(t *testing.T) {
	root, err := embedded.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"go.mod", "go.sum", "kind-config.yaml", "scenarios", "fixtures"} {
		compareTrees(t, filepath.Join("..", "..", top), filepath.Join(root, top), "is not carried as it is here; run go generate .")
		compareTrees(t, filepath.Join(root, top), filepath.Join("..", "..", top), "is carried, and not here; run go generate .")
	}
}

func compareTrees(t *testing.T, a, b, complaint string) {
	t.Helper()
	err := filepath.WalkDir(a, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(a, path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(filepath.Join(b, rel)); err != nil || string(got) != string(want) {
			t.Errorf("%s %s (%v)", path, complaint, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnUnpackedTreeThatWasChangedIsRefused(t *testing.T) {
	for want, change := range map[string]func(root string) error{
		"scenario.yaml was changed": func(root string) error {
			return os.WriteFile(filepath.Join(root, "scenarios/pleg-deadlock/scenario.yaml"), []byte("x"), 0o644)
		},
		"more.yaml was added": func(root string) error {
			return os.WriteFile(filepath.Join(root, "scenarios/pleg-deadlock/candidates/more.yaml"), nil, 0o644)
		},
		"go.sum was removed": func(root string) error { return os.Remove(filepath.Join(root, "fixtures/fleet-agent/go.sum")) },
		"go.mod was replaced": func(root string) error {
			at := filepath.Join(root, "go.mod")
			return errors.Join(os.Rename(at, root+".mod"), os.Symlink(root+".mod", at))
		},
	} {
		t.Run(want, func(t *testing.T) {
			dir := t.TempDir()
			root, err := embedded.Unpack(dir)
			if err == nil {
				err = change(root)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = embedded.Unpack(dir)
			var changed *embedded.ChangedError
			if !errors.As(err, &changed) || !strings.Contains(err.Error(), want+" since it was unpacked") {
				t.Errorf("unpacked again: %v, want %q", err, want)
			}
		})
	}
}

func TestAFolderThatCannotBeWrittenIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	root, err := embedded.Unpack(filepath.Join(os.DevNull, "below"), dir)
	if err != nil || filepath.Dir(root) != dir {
		t.Errorf("unpacked to %q: %v, want a folder in %s", root, err, dir)
	}
	if _, err := embedded.Unpack(filepath.Join(os.DevNull, "below")); err == nil || !strings.Contains(err.Error(), "unpacking the scenarios: ") {
		t.Errorf("nowhere to unpack to: %v", err)
	}
}
