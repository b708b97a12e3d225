package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// every is the interval at which a running stage is reported. tail is how many of the last lines of output an error
// shows.
const (
	every = 5 * time.Second
	tail  = 30
)

// ErrNoGo says that there is no go command. Without it nothing is built, and nobody can tell what the cache has, because
// the keys of builds contain Go's version.
var ErrNoGo = errors.New("no go command on PATH: install Go 1.26 or later and put its bin folder on PATH, or relapse cache import FILE what a host with Go exported")

// Toolchain holds what determines the output of the go command: its version and its environment.
type Toolchain struct {
	GOVERSION, GOOS, GOARCH, GOAMD64, GOARM64, GOEXPERIMENT, GOFLAGS, GOFIPS140 string
}

// settings lists the environment of a source's build for the report, without unset variables.
func (t Toolchain) settings(src Source) []string {
	out := []string{src.cgo(), "GOOS=" + t.GOOS, "GOARCH=" + t.GOARCH}
	for _, s := range []struct{ name, value string }{
		{"GOAMD64", t.GOAMD64}, {"GOARM64", t.GOARM64}, {"GOEXPERIMENT", t.GOEXPERIMENT}, {"GOFLAGS", t.GOFLAGS},
	} {
		if s.value != "" {
			out = append(out, s.name+"="+s.value)
		}
	}
	return out
}

// Toolchain returns what Go says of itself here, or what the Go said that built the imported programs which are looked for.
func (b *Builder) Toolchain(ctx context.Context) (Toolchain, error) {
	if b.imported != nil {
		return *b.imported, nil
	}
	return b.toolchainIn(ctx, command{})
}

// toolchainIn returns what go reports about itself in the environment of c.
func (b *Builder) toolchainIn(ctx context.Context, c command) (t Toolchain, err error) {
	c.args = []string{"env", "-json", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "GOFIPS140"}
	out, err := b.run(ctx, c)
	if err != nil {
		return t, err
	}
	return readToolchain(out)
}

// outsideFlags are flags of go build that name a file or a program whose content determines the output as well. A build's
// key has the name, and couldn't tell two contents apart.
var outsideFlags = []string{"modfile", "overlay", "pgo", "toolexec"}

func readToolchain(out []byte) (t Toolchain, err error) {
	if err := json.Unmarshal(out, &t); err != nil {
		return t, fmt.Errorf("reading go env: %w", err)
	}
	for _, flag := range strings.Fields(t.GOFLAGS) {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if slices.Contains(outsideFlags, name) && value != "auto" && value != "off" {
			return t, fmt.Errorf(
				"GOFLAGS has %s, and what that brings into a build could change without anybody noticing (want GOFLAGS without -%s)",
				flag,
				name,
			)
		}
	}
	// The number of parallel compilers doesn't change the output.
	t.GOFLAGS = strings.Join(slices.DeleteFunc(strings.Fields(t.GOFLAGS),
		func(flag string) bool { return strings.HasPrefix(flag, "-p=") }), " ")
	return t, nil
}

// buildFlags returns the flags of go build that determine its output. They don't depend on mutations. DWARF is left out
// for speed and size; stacks don't need it.
func buildFlags(src Source) []string {
	ld := append([]string{"-w"}, stamps(src)...)
	flags := append([]string{"-trimpath", "-buildvcs=false"}, src.choosing()...)
	if src.Race { // a component's image may have no C library
		ld = append(ld, "-linkmode=external", "-extldflags=-static")
	}
	flags = append(flags, "-ldflags="+strings.Join(append(ld, src.LDFlags...), " "))
	for _, pkg := range src.Unoptimized {
		flags = append(flags, "-gcflags="+pkg+"=-N")
	}
	return flags
}

// choosing returns the flags of go build and go list that choose the files of a package, beside the cgo setting.
func (s Source) choosing() []string {
	if s.Race {
		return []string{"-race", "-tags=netgo,osusergo"}
	}
	return nil
}

// cgo returns the cgo setting for a source's build. Go's race detector is written in C, so it needs cgo.
func (s Source) cgo() string {
	if s.Race {
		return "CGO_ENABLED=1"
	}
	return "CGO_ENABLED=0"
}

// linking describes how a source's programs are linked.
func (s Source) linking() string {
	if s.Race {
		return "with the race detector and static"
	}
	return "without cgo"
}

var major = regexp.MustCompile(`^v[0-9]+$`)

// programName returns the name of a main package's program. It is go build's name, the last path element that isn't a
// major version, except for the packages in renamed.
func programName(pkg string) string {
	if name := renamed[pkg]; name != "" {
		return name
	}
	return defaultName(pkg)
}

// renamed lists the programs that go build would name differently.
var renamed = map[string]string{"go.etcd.io/etcd/server/v3": "etcd"}

func defaultName(pkg string) string {
	if base := path.Base(pkg); !major.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(pkg))
}

// command is one call of the go command. Its standard error is read line by line. If it has a stage, its progress is
// reported.
type command struct {
	dir    string
	args   []string
	env    []string      // in addition to that of every call
	stage  string        // "" reports nothing
	line   func(string)  // sees each line of standard error; may be nil
	detail func() string // describes the progress; called under the same lock as line
	began  *start        // of a build, which has its own folder for temporary files; may be nil
}

// run runs the go command and returns its standard output. The command leads a process group, which is killed as a
// whole when ctx ends. The error contains the command and the last lines of its output.
func (b *Builder) run(ctx context.Context, c command) ([]byte, error) {
	goTool := b.Go
	if goTool == "" {
		goTool = "go"
	}
	if b.imported != nil {
		return nil, fmt.Errorf(
			"%s: this run takes all programs as they were imported, built by %s, and builds none (relapse cache import FILE again)",
			c.name(goTool),
			b.imported.GOVERSION,
		)
	}
	cmd := exec.CommandContext(ctx, goTool, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(
		os.Environ(),
		"CGO_ENABLED=0",
		"GOOS=linux",
		"GOARCH="+runtime.GOARCH,
		"GOWORK=off",
		"GOCACHE="+b.Cache.GoDir(),
	)
	cmd.Env = append(cmd.Env, c.env...)
	if c.dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+c.dir)
	}
	var stdout bytes.Buffer
	lines := &lineWriter{line: c.line}
	cmd.Stdout, cmd.Stderr = &stdout, lines
	group(cmd)
	cmd.WaitDelay = 5 * time.Second

	done, err := b.Cache.Compiling(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if c.began != nil {
		unwatch, err := c.began.watch()
		if err != nil {
			return nil, err
		}
		defer unwatch()
		cmd.Env = append(cmd.Env, "TMPDIR="+c.began.temp)
	}
	stop := b.follow(c, lines)
	err = runLocked(cmd)
	stop()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", c.name(goTool), context.Cause(ctx))
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, ErrNoGo
	}
	if err != nil {
		said := strings.Join(lines.last(), "\n")
		if full := lines.full; full != nil {
			return nil, fmt.Errorf("%s: %w\n%s", c.name(goTool), full, said)
		}
		return nil, fetching(
			ctx,
			goTool,
			said,
			fmt.Errorf("%s: %w\n%s", c.name(goTool), err, said),
		)
	}
	return stdout.Bytes(), nil
}

func (c command) name(goTool string) string {
	return "running " + goTool + " " + strings.Join(c.args, " ")
}

// runLocked runs a command and keeps the thread that started it alive until it ends, because the kernel kills the
// process when that thread ends.
func runLocked(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}

// follow reports a stage now and every few seconds, until stop is called.
func (b *Builder) follow(c command, w *lineWriter) (stop func()) {
	if c.stage == "" {
		return func() {}
	}
	start := time.Now()
	b.report("%s", c.stage)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				b.report(
					"%s: %s, %s so far",
					c.stage,
					w.detail(c.detail),
					time.Since(start).Round(time.Second),
				)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// lineWriter splits its input into lines and keeps the last of them.
type lineWriter struct {
	line func(string)

	mu      sync.Mutex
	partial []byte
	lines   []string
	full    error // the first line which says that a disk is full, as an error
}

// Write implements io.Writer; it never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partial = append(w.partial, p...)
	for {
		line, rest, ok := bytes.Cut(w.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.lines = append(w.lines, string(line))
		w.full = cmp.Or(w.full, noRoom(string(line)))
		if len(w.lines) > tail {
			w.lines = slices.Clone(w.lines[1:])
		}
		if w.line != nil {
			w.line(string(line))
		}
		w.partial = rest
	}
}

// noSpace matches what a program of Go's says when a disk is full, with the path if it names one: one in $WORK is none.
// Git says the same with capitals.
var noSpace = regexp.MustCompile(
	`(?:(?:^|\s)(/[^\s:]+): )?(?i:no space left on device|disk quota exceeded)`,
)

// noRoom returns the error of output which says that a disk is full, and nil for other output.
func noRoom(line string) error {
	switch m := noSpace.FindStringSubmatch(line); {
	case m == nil:
		return nil
	case m[1] == "":
		return syscall.ENOSPC
	default:
		return &fs.PathError{Op: "writing", Path: m[1], Err: syscall.ENOSPC}
	}
}

func (w *lineWriter) detail(f func() string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f == nil {
		return "working"
	}
	return f()
}

func (w *lineWriter) last() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(slices.Clone(w.lines), string(w.partial))
}
