package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/kube-relapse/relapse/harness/build"
)

const (
	// leastGo is the go line of this module's go.mod.
	leastGo   = "go1.26.0"
	installGo = "install Go 1.26 or later and put its bin folder on PATH"
	// proxyTime is how long a module proxy may take to name one version.
	proxyTime = 30 * time.Second
)

type goEnv struct{ GOVERSION, GOTOOLCHAIN, GOFLAGS, GOPROXY, GOSUMDB string }

// toolchain checks the go command, its flags, and whether the go command can get the module that is asked for.
func toolchain(ctx context.Context, o Options) []Check {
	c := Check{Name: "go toolchain", Wanted: leastGo + " or later, with no -mod flag in GOFLAGS"}
	env, err := readGoEnv(ctx)
	if err != nil {
		c.Status, c.Seen, c.Remedy = Fail, err.Error(), installGo
		if errors.Is(err, exec.ErrNotFound) {
			c.Seen = "no go command on PATH"
		}
		if imported, err := build.Toolchains(o.CacheDir); o.CacheDir != "" && err == nil && len(imported) > 0 {
			c.Status, c.Remedy = Warn, installGo+", unless all that a run needs was imported"
		}
		return []Check{c}
	}
	c.judgeGo(env)
	return []Check{c, proxy(ctx, env, o.Module)}
}

func (c *Check) judgeGo(env goEnv) {
	c.Status = OK
	c.Seen = fmt.Sprintf(
		"%s, GOTOOLCHAIN=%s, GOFLAGS=%s",
		env.GOVERSION,
		env.GOTOOLCHAIN,
		env.GOFLAGS,
	)
	// A toolchain of a distribution may say "go1.26.8 X:something".
	have, _, _ := strings.Cut(env.GOVERSION, " ")
	old := version.Compare(have, leastGo) < 0
	switch {
	case old && (env.GOTOOLCHAIN == "local" || env.GOTOOLCHAIN == "path"):
		c.Status, c.Remedy = Fail, "go env -w GOTOOLCHAIN=auto"
	case old:
		c.Status, c.Remedy = Warn, installGo
	case strings.Contains(env.GOFLAGS, "-mod="):
		c.Status, c.Remedy = Warn, "go env -w GOFLAGS= ; unset GOFLAGS"
	}
}

func readGoEnv(ctx context.Context) (goEnv, error) {
	var env goEnv
	out, err := goOutput(ctx, "env", "-json", "GOVERSION", "GOTOOLCHAIN", "GOFLAGS", "GOPROXY", "GOSUMDB")
	if err != nil {
		return env, err
	}
	if err := json.Unmarshal(out, &env); err != nil {
		return env, fmt.Errorf("parsing `go env -json`: %w", err)
	}
	return env, nil
}

// goOutput runs go outside of any module, so that no module's settings count.
func goOutput(ctx context.Context, args ...string) ([]byte, error) {
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = os.TempDir(), &out, &stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, goFailed(args, cmp.Or(ctx.Err(), err), stderr.String())
	}
	return out.Bytes(), nil
}

// goFailed is the error of a go command that printed stderr.
func goFailed(args []string, err error, stderr string) error {
	err = fmt.Errorf("running `go %s`: %w", strings.Join(args, " "), err)
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		err = fmt.Errorf("%w: %s", err, redact(stderr))
	}
	return err
}

// proxy returns a check that shows the go command's module settings. If module isn't empty, the check says whether the
// go command can get it. Failure is only a warning: the cache may hold what is needed.
func proxy(ctx context.Context, env goEnv, module string) Check {
	c := Check{Name: "go modules", Status: OK, Wanted: "a GOPROXY to get modules from"}
	c.Seen = redact(fmt.Sprintf("GOPROXY=%s, GOSUMDB=%s", env.GOPROXY, env.GOSUMDB))
	if env.GOPROXY == "off" {
		c.Status, c.Remedy = Warn, "go env -u GOPROXY ; unset GOPROXY"
	}
	if module == "" {
		return c
	}
	c.Wanted = module + ", from GOPROXY or the module cache"
	ask, cancel := context.WithTimeout(ctx, proxyTime)
	defer cancel()
	if _, err := goOutput(ask, "list", "-m", module); err != nil {
		c.Status, c.Remedy = Warn, "go list -m "+module
		c.Seen += "; " + redact(err.Error())
		return c
	}
	c.Seen += "; " + module + " is there"
	return c
}

// userInfo is the part of a URL that may hold a password or a token.
var userInfo = regexp.MustCompile(`://[^/\s@]*@`)

// redact takes credentials out of the URLs in s.
func redact(s string) string { return userInfo.ReplaceAllString(s, "://***@") }
