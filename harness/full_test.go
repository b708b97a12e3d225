package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kube-relapse/relapse/harness/build/cache"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

// A run that a full disk ended says where the trials are that it had finished, and says nothing of trials it has not.
func TestARunOnAFullDiskSaysThatItsFinishedTrialsAreKept(t *testing.T) {
	dir, err := trial.CreateRunDir(filepath.Join(t.TempDir(), "run"), "relapse-test", &plan.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{dir: dir}
	full := cache.Full(syscall.ENOSPC, t.TempDir())
	if err := r.kept(full); err != full {
		t.Errorf("without a finished trial: %v", err)
	}
	w, err := bundle.Create(dir.Trial("001"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir.Trial("002"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := "the trials that were finished are kept, and relapse judge " + dir.Path() + " judges them"
	if err := r.kept(full); !errors.As(err, new(*cache.FullError)) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("with a finished trial: %v, want it to end with %q", err, want)
	}
	other := errors.New("the API server is gone")
	if err := r.kept(other); err != other {
		t.Errorf("another error: %v", err)
	}
	if err := r.kept(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
