package nodeimage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	// containerPrefix begins the name of every container that is filled or looked into here. No node's name begins with
	// it.
	containerPrefix = "relapse-node-image-"
	// inspectKey is the key of a container that is made only to look into an image.
	inspectKey = "inspect"

	scratchDir = "scratch"
	lockRetry  = 200 * time.Millisecond
)

// Leftover is something that a killed assembly left behind.
type Leftover struct {
	Kind string // "container", "image" or "scratch"
	Name string // the container's name, the image's reference, the folder's path
	Key  string // what was being made
}

// lock takes the lock of a key, and waits until nobody else has it: two runs that want one image make it once. The
// kernel gives the lock back when its holder dies.
func (s *Store) lock(ctx context.Context, key string) (unlock func(), err error) {
	file := flock.New(s.lockPath(key))
	got, err := file.TryLock()
	if err == nil && !got {
		if key != inspectKey {
			s.say("waiting for another process that makes the same image")
		}
		got, err = file.TryLockContext(ctx, lockRetry)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", s.lockPath(key), err)
	}
	if !got {
		return nil, fmt.Errorf("locking %s: not granted", s.lockPath(key))
	}
	return func() { _ = file.Close() }, nil
}

func (s *Store) lockPath(key string) string { return filepath.Join(s.dir, key+".lock") }

// scratch makes and returns the one folder that key's assembly may use.
func (s *Store) scratch(key string) (string, error) {
	dir := filepath.Join(s.dir, scratchDir, key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making scratch space: %w", err)
	}
	return dir, nil
}

// create creates a container that discard finds, and returns its id. It does not start the container.
func (s *Store) create(ctx context.Context, key string, args ...string) (string, error) {
	name := fmt.Sprintf("%s%s-%d", containerPrefix, key[:min(12, len(key))], time.Now().UnixNano())
	out, err := s.engine.Output(ctx, append([]string{"create", "--name", name, "--label", labelBuild + "=" + key,
		"--label", labelStore + "=" + s.id}, args...)...)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// removeContainer removes a container and its volumes, even if ctx was cancelled.
func (s *Store) removeContainer(ctx context.Context, id string) error {
	_, err := s.engine.Output(context.WithoutCancel(ctx), "rm", "--force", "--volumes", id)
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("removing container %s: %w", id, err)
	}
	return nil
}

// discard removes everything that an earlier assembly of key left. The caller
// holds key's lock, so nothing of it is in use.
func (s *Store) discard(ctx context.Context, key string) error {
	all, err := s.Leftovers(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, l := range all {
		if l.Key == key {
			problems = append(problems, s.remove(ctx, l))
		}
	}
	return errors.Join(problems...)
}

func (s *Store) remove(ctx context.Context, l Leftover) error {
	switch l.Kind {
	case "container":
		return s.removeContainer(ctx, l.Name)
	case "image":
		// Only the name goes: the layer stays with the base image made of it.
		if _, err := s.engine.Output(ctx, "image", "rm", l.Name); err != nil && !isNotFound(err) {
			return fmt.Errorf("removing image %s: %w", l.Name, err)
		}
		return nil
	default:
		return removeTree(l.Name)
	}
}

// Leftovers lists what this cache folder's assemblies have in the engine and on disk at this moment. Assemblies that
// are still at work are included.
func (s *Store) Leftovers(ctx context.Context) ([]Leftover, error) {
	var left []Leftover
	containers, err := s.table(ctx, "ps", "--all", "--filter", "label="+labelBuild, "--filter",
		"label="+labelStore+"="+s.id,
		"--format", `{"name":{{json .Names}},"key":{{json (.Label "`+labelBuild+`")}}}`)
	if err != nil {
		return nil, fmt.Errorf("listing containers in the making: %w", err)
	}
	for _, c := range containers {
		if c["key"] != "" && strings.HasPrefix(c["name"], containerPrefix) {
			left = append(left, Leftover{"container", c["name"], c["key"]})
		}
	}
	images, err := s.table(
		ctx,
		"image",
		"ls",
		"--filter",
		"reference="+baseRepository+":*-"+s.id+"-raw",
		"--format",
		`{"name":"{{.Repository}}:{{.Tag}}"}`,
	)
	if err != nil {
		return nil, fmt.Errorf("listing images in the making: %w", err)
	}
	scratch, err := os.ReadDir(filepath.Join(s.dir, scratchDir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listing scratch space: %w", err)
	}
	keys, err := filepath.Glob(s.lockPath("*"))
	if err != nil {
		return nil, err
	}
	for _, i := range images {
		// A tag has room for a part of its key only. The name of the lock file has the whole key.
		key := strings.TrimSuffix(
			strings.TrimPrefix(i["name"], baseRepository+":"),
			"-"+s.id+"-raw",
		)
		for _, k := range keys {
			if k = strings.TrimSuffix(filepath.Base(k), ".lock"); strings.HasPrefix(k, key) {
				key = k
			}
		}
		left = append(left, Leftover{"image", i["name"], key})
	}
	for _, d := range scratch {
		left = append(
			left,
			Leftover{"scratch", filepath.Join(s.dir, scratchDir, d.Name()), d.Name()},
		)
	}
	return left, nil
}

// Clean removes what killed assemblies left, and returns what it removed. It leaves alone what belongs to a living
// assembly, which holds the lock.
func (s *Store) Clean(ctx context.Context) ([]Leftover, error) {
	all, err := s.Leftovers(ctx)
	if err != nil {
		return nil, err
	}
	var removed []Leftover
	var problems []error
	for _, l := range all {
		file := flock.New(s.lockPath(l.Key))
		got, err := file.TryLock()
		if err != nil {
			problems = append(problems, fmt.Errorf("locking %s: %w", s.lockPath(l.Key), err))
			continue
		}
		if !got {
			continue
		}
		if err := s.remove(ctx, l); err != nil {
			problems = append(problems, err)
		} else {
			removed = append(removed, l)
		}
		problems = append(problems, file.Close())
	}
	return removed, errors.Join(problems...)
}

// table runs the engine's client and decodes a JSON object per line.
func (s *Store) table(ctx context.Context, args ...string) ([]map[string]string, error) {
	out, err := s.engine.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	var rows []map[string]string
	for line := range strings.Lines(string(out)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		row := map[string]string{}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, fmt.Errorf("decoding %q: %w", line, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// removeTree unmounts whatever is mounted in dir, deepest first, and then removes dir. If an unmount fails it removes
// nothing: through the mount it would remove files outside of dir.
func removeTree(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := syscall.Unmount(m, 0); err != nil {
			return fmt.Errorf("unmounting %s: %w", m, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing scratch space: %w", err)
	}
	return nil
}

// mountsBelow lists this process's mount points at or below dir, deepest first.
func mountsBelow(dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	defer file.Close()
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var mounts []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if at := unescape.Replace(fields[4]); at == dir || strings.HasPrefix(at, dir+"/") {
			mounts = append(mounts, at)
		}
	}
	slices.Reverse(mounts) // later mounts lie on earlier ones
	return mounts, lines.Err()
}
