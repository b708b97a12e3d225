package build

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// timesFile is the file in the cache's folder that has one line for each build that a host has done.
const timesFile = "times.jsonl"

// goKeeps is how long Go keeps a compiled package that nobody asks for.
const goKeeps = 5 * 24 * time.Hour

// took says how long a build took, and how much disk.
type took struct {
	At       time.Time `json:"at"`
	Host     string    `json:"host"` // a cache may be copied from another one
	Programs string    `json:"programs"`
	Tree     string    `json:"tree"`  // what Go has compiled packages of afterwards; "" for a fixture
	Fresh    bool      `json:"fresh"` // Go had none of them before, as far as this file tells
	Seconds  float64   `json:"seconds"`
	Bytes    int64     `json:"bytes,omitempty"` // of disk that it needed; 0 if that isn't known
}

// times are the builds that this host has done, oldest first.
type times []took

func readTimes(cache string) (times, error) {
	text, err := os.ReadFile(filepath.Join(cache, timesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how long builds took: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading how long builds took on this host: %w", err)
	}
	var out times
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var t took
		if json.Unmarshal(lines.Bytes(), &t) == nil && t.Host == host { // a line that a crash cut short tells nothing
			out = append(out, t)
		}
	}
	return out, nil
}

// fresh reports whether Go has no compiled packages of a tree at a time. since is when its oldest ones were used.
func (all times) fresh(tree string, at, since time.Time) bool {
	return tree != "" && !slices.ContainsFunc(all,
		func(t took) bool { return t.Tree == tree && at.Sub(t.At) < goKeeps && !t.At.Before(since) })
}

// last returns the newest build of the same programs, of which Go had as much before.
func (all times) last(programs string, fresh bool) (took, bool) {
	for _, t := range slices.Backward(all) {
		if t.Programs == programs && t.Fresh == fresh {
			return t, true
		}
	}
	return took{}, false
}

// record adds a build to the file. A build stands without its time, so a failure is only reported.
func (b *Builder) record(programs, tree string, began *start) {
	all, err := readTimes(b.Cache.Dir())
	if err == nil {
		err = appendTime(b.Cache.Dir(), took{
			At:       time.Now().UTC(),
			Programs: programs,
			Tree:     tree,
			Fresh: all.fresh(
				tree,
				began.at,
				began.since,
			),
			Seconds: time.Since(began.at).Seconds(),
			Bytes:   began.needed(b.Cache),
		})
	}
	if err != nil {
		b.report("how long it took, and how much disk, is not recorded: %v", err)
	}
}

// appendTime writes a whole line at once, so that builds of several processes don't mix.
func appendTime(cache string, t took) (err error) {
	if t.Host, err = os.Hostname(); err != nil {
		return err
	}
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(
		filepath.Join(cache, timesFile),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY,
		0o644,
	)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// programs names what a build of the source makes, whatever its version and mutations.
func (s Source) programs() string {
	s.Version, s.Fork, s.Dir, s.Mutations, s.Replace = "any", "", "", nil, nil
	return s.String()
}

// tree names what Go has compiled packages of once the source was built.
func (s Source) tree(tc Toolchain) string {
	return fmt.Sprintf(
		"%s@%s %s %s race=%t %s",
		s.Module,
		s.Version,
		s.Fork,
		s.Dir,
		s.Race,
		tc.GOVERSION,
	)
}
