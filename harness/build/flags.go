package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// helpLimit bounds how long a program may take to print its flags.
const helpLimit = 30 * time.Second

// flagLine matches a line of a program's help that begins with a flag: "-v, --v Level" or "  -addr string".
var flagLine = regexp.MustCompile(`(?m)^\s+(?:-[a-zA-Z0-9], )?--?([a-zA-Z][-.a-zA-Z0-9_]*)`)

// Flags returns the flags that a source's program knows, by its own help. They are nil if the program isn't in the
// cache, or if its help lists none.
func (b *Builder) Flags(ctx context.Context, src Source) ([]string, error) {
	tc, err := b.Toolchain(ctx)
	if err != nil {
		return nil, err
	}
	key, err := src.key(tc)
	if err != nil {
		return nil, err
	}
	dir, found, err := b.Cache.Find(ctx, "build", key)
	if err != nil || !found {
		return nil, err
	}
	var r Result
	if err := readJSON(filepath.Join(dir, resultFile), &r); err != nil {
		return nil, err
	}
	var out []string
	for _, p := range r.Binaries {
		ctx, cancel := context.WithTimeout(ctx, helpLimit)
		help, err := exec.CommandContext(ctx, filepath.Join(dir, p.Path), "--help").
			CombinedOutput()
		cancel()
		var ended *exec.ExitError // package flag exits with 2 once it has printed the flags
		if err != nil && !errors.As(err, &ended) {
			return nil, fmt.Errorf("asking %s for its flags: %w", src, err)
		}
		for _, m := range flagLine.FindAllSubmatch(help, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out, nil
}
