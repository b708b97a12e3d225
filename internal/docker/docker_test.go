package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/internal/docker"
)

// script puts a docker on PATH, alone.
func script(t *testing.T, body string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestDetectSaysWhatIsMissing(t *testing.T) {
	t.Run("no client", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := docker.Detect(t.Context())
		if !errors.Is(err, docker.ErrNoCLI) || !strings.Contains(err.Error(), "install it") {
			t.Errorf("Detect: %v", err)
		}
	})
	t.Run("no daemon", func(t *testing.T) {
		script(t, "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
		_, err := docker.Detect(t.Context())
		if !errors.Is(err, docker.ErrNoDaemon) || !strings.Contains(err.Error(), "start it (`systemctl start docker`") ||
			!strings.Contains(err.Error(), "Cannot connect to the Docker daemon") {
			t.Errorf("Detect: %v", err)
		}
	})
}

func TestOutputErrorHasCommandLineAndStderr(t *testing.T) {
	script(t, `[ "$1" = version ] && exit 0; echo 'no such thing' >&2; exit 3`)
	c, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Output(t.Context(), "rm", "x")
	var failed *docker.CommandError
	if !errors.As(err, &failed) || err.Error() != "running `docker rm x`: exit status 3: no such thing" {
		t.Errorf("Output: %v", err)
	}
}

func TestOutputStopsWithItsContext(t *testing.T) {
	script(t, `[ "$1" = version ] && exit 0; exec /bin/sleep 60`)
	c, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := c.Output(ctx, "wait"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("Output ended after %s: %v", time.Since(began), err)
	}
}

func TestServerInfoRefusesAnAnswerWithoutServer(t *testing.T) {
	script(t, `[ "$1" = version ] || echo '{"ServerErrors":["Cannot connect"]}'`)
	c, err := docker.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ServerInfo(t.Context()); !errors.Is(err, docker.ErrNoDaemon) ||
		!strings.Contains(err.Error(), "Cannot connect") {
		t.Errorf("ServerInfo: %v", err)
	}
}
