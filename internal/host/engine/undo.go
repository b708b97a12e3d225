package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/kube-relapse/relapse/internal/docker"
)

// record holds what Undo needs: the content of the settings file before and after Fix, byte by byte.
type record struct {
	ConfigFile string `json:"configFile"`
	Existed    bool   `json:"existed"`
	Original   []byte `json:"original"`
	Written    []byte `json:"written"`
}

// before returns the settings from before Fix. Their file was parsed when it was recorded.
func (r *record) before() settings {
	s, err := parseSettings(r.ConfigFile, r.Original)
	if err != nil {
		return settings{}
	}
	return s
}

// previous returns the default runtime from before Fix.
func (r *record) previous() string { return cmp.Or(r.before().defaultRuntime(), stockRuntime) }

// inUseError says that containers were made with the bounded runtime: without
// it they can be neither started nor stopped.
type inUseError struct{ containers []string }

// Error names the containers and the command that removes them.
func (e *inUseError) Error() string {
	return fmt.Sprintf(
		"%d containers use the bounded runtime; remove them first: docker rm --force %s",
		len(e.containers),
		strings.Join(e.containers, " "),
	)
}

// Undo takes back what Fix did. If nobody has touched the settings file since, it gets its old bytes back, or is
// removed if there was none. From a file that was edited since, only what Fix added is removed. If there is nothing to
// undo, Undo changes nothing and returns no error. Without root it returns errNotRoot, and while containers still use
// the runtime an *inUseError; in both cases it touches nothing.
func Undo(ctx context.Context, d *docker.Client, w io.Writer) error {
	_, err := newMender(d, w).undo(ctx)
	return err
}

func (m *mender) undo(ctx context.Context) (changed bool, err error) {
	rec, err := m.readRecord()
	if err != nil {
		return false, err
	}
	if rec == nil {
		m.printf("Nothing to undo: no record in %s.", m.lib)
		return false, nil
	}
	if m.uid != 0 {
		m.printf("Run as root: relapse doctor --undo")
		return false, errNotRoot
	}
	unlock, err := m.locked(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	d, err := findDaemon(m.proc, m.pidfile)
	if err != nil {
		return false, err
	}
	if d.configFile != rec.ConfigFile {
		return false, fmt.Errorf(
			"dockerd now reads %s, but %s was changed: start it with that file to undo",
			d.configFile,
			rec.ConfigFile,
		)
	}
	if err := m.unused(ctx); err != nil {
		return false, err
	}
	if err := m.restore(ctx, d, rec); err != nil {
		return false, err
	}
	m.printf("Undone: the default runtime is %s again.", rec.previous())
	return true, nil
}

// unused returns an *inUseError if a container has the bounded runtime.
func (m *mender) unused(ctx context.Context) error {
	ids, err := m.docker.Output(ctx, "ps", "--all", "--quiet", "--no-trunc")
	if err != nil {
		return err
	}
	var using []string
	for _, id := range strings.Fields(string(ids)) {
		out, err := m.docker.Output(
			ctx,
			"inspect",
			"--format",
			"{{.HostConfig.Runtime}} {{.Name}}",
			id,
		)
		if err != nil {
			if strings.Contains(err.Error(), "No such") {
				continue // removed meanwhile
			}
			return err
		}
		if runtime, name, _ := strings.Cut(strings.TrimSpace(string(out)), " "); runtime == runtimeName {
			using = append(using, strings.TrimPrefix(name, "/"))
		}
	}
	if len(using) > 0 {
		return &inUseError{containers: using}
	}
	return nil
}

// restore brings the settings file back to rec's first state in two steps. First it writes settings that name the old
// default runtime, and has dockerd read them. Then it writes the file as it was.
func (m *mender) restore(ctx context.Context, d daemon, rec *record) error {
	current, _, err := readIfThere(rec.ConfigFile)
	if err != nil {
		return err
	}
	interim, err := rec.before().explicit().encode()
	if err != nil {
		return err
	}
	final, keep := rec.Original, rec.Existed
	if !bytes.Equal(current, rec.Written) && !bytes.Equal(current, interim) && !bytes.Equal(current, rec.Original) {
		s, err := parseSettings(rec.ConfigFile, current)
		if err != nil {
			return err
		}
		s.unregister(rec.before())
		if interim, err = s.explicit().encode(); err != nil {
			return err
		}
		if final, err = s.encode(); err != nil {
			return err
		}
		keep = true
	}
	m.printf("Restoring %s.", rec.ConfigFile)
	if err := writeSettings(rec.ConfigFile, interim); err != nil {
		return err
	}
	s, err := parseSettings(rec.ConfigFile, interim)
	if err != nil {
		return err
	}
	// The file gets its final content even if dockerd didn't follow. In that case the record stays, so that another
	// undo can have dockerd follow.
	err = m.reload(ctx, d, s.defaultRuntime())
	if keep {
		err = errors.Join(err, writeSettings(rec.ConfigFile, final))
	} else {
		err = errors.Join(err, os.Remove(rec.ConfigFile))
	}
	if err != nil {
		return err
	}
	m.printf("Removing %s.", m.lib)
	// The record goes last: until then a second undo can finish the first.
	return errors.Join(
		removeIfThere(m.wrapper()),
		removeIfThere(m.recordFile()),
		removeIfEmpty(m.lib),
	)
}

func (m *mender) recordFile() string { return filepath.Join(m.lib, "undo.json") }

// readRecord returns nil if there is none.
func (m *mender) readRecord() (*record, error) {
	data, existed, err := readIfThere(m.recordFile())
	if err != nil || !existed {
		return nil, err
	}
	rec := &record{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, fmt.Errorf("reading %s: %w", m.recordFile(), err)
	}
	return rec, nil
}

func (m *mender) writeRecord(rec *record) error {
	data, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(m.recordFile(), data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", m.recordFile(), err)
	}
	return nil
}

// writeSettings replaces file in one step, keeping its mode if it has one.
func writeSettings(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if err := renameio.WriteFile(file, data, 0o644, renameio.WithExistingPermissions()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

func readIfThere(file string) (data []byte, existed bool, err error) {
	data, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", file, err)
	}
	return data, true, nil
}

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeIfEmpty removes a folder, unless it holds what others put there.
func removeIfEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return nil
	}
	return os.Remove(dir)
}
