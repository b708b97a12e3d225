package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A new version of kind may say it in other words; then clusters would no longer be tried a second time.
func TestKindSaysThatANodeBootedTooSlowly(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(dir)), "pkg", "cluster"), func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || strings.Contains(string(text), slowBoot)
		return err
	})
	if err != nil || !found {
		t.Errorf("kind's source has no %q, %v", slowBoot, err)
	}
}
