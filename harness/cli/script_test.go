package cli

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/inject/fault"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/internal/host"
)

var update = flag.Bool("update", false, "write what the scripts compare with anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"relapse": func() { os.Exit(Main()) }, plugin: func() { os.Exit(Main()) }})
}

// TestScripts runs testdata/*.txtar: each shows one command as a user sees it.
func TestScripts(t *testing.T) {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           condition,
		Setup: func(e *testscript.Env) error {
			e.Setenv("REPO", repo)      // the repository's own scenarios
			e.Setenv("HOME", e.WorkDir) // a cache of its own
			e.Setenv("PROGRAM", os.Args[0])
			e.Setenv("COMPILED", strings.TrimSpace(string(compiled)))
			e.Setenv(release.MirrorEnv, "http://127.0.0.1:1") // nobody publishes anything there
			e.Values[silent{}] = make(chan struct{}, 1)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "alone": alone, "proxy": proxy, "asked": asked,
			"evidence": evidence, "keypair": keypair, "tamper": tamper, "onsmall": onSmall},
	})
}

// condition knows whether this user can mount file systems ("mounts"), whether the host has the memory and the disk that a run
// is refused without ("room"), and whether it has the inotify instances for kind's nodes, too ("roomy"). The engine is not asked.
func condition(name string) (bool, error) {
	switch name {
	case "mounts":
		return exec.Command("unshare", ownMounts(), "mount", "-t", "tmpfs", "none", os.TempDir()).Run() == nil, nil // root in a container may not
	case "room", "roomy":
	default:
		return false, fmt.Errorf("there is no condition %q", name)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return !slices.ContainsFunc(host.Preflight(ended, host.Options{NodeImage: "official", CacheDir: os.TempDir()}), func(c host.Check) bool {
		switch c.Name {
		case "memory":
			return c.Status == host.Fail
		case "inotify limits":
			return c.Status == host.Fail && name == "roomy"
		case "disk of the cache": // a build that is foreseen may need most of what is enough
			return c.Status != host.OK
		}
		return false
	}), nil
}

// exits CODE COMMAND... runs a command and wants that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		ts.Fatalf("%v: %s, want %s", args[1:], got, want)
	}
}

// ownMounts is the flag of unshare by which this user gets mounts of its own.
func ownMounts() string {
	if os.Getuid() != 0 {
		return "-rm"
	}
	return "-m"
}

// onSmall MIB COMMAND... runs a command with a cache on a file system of that size, which ends with it.
func onSmall(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: onsmall MIB COMMAND...")
	}
	mount := `mount -t tmpfs -o size=` + args[0] + `m none "$RELAPSE_CACHE" && exec "$@"`
	ts.Check(ts.Exec("unshare", append([]string{ownMounts(), "sh", "-c", mount, "sh"}, args[1:]...)...))
}

// alone leaves nothing on PATH but relapse itself.
func alone(ts *testscript.TestScript, _ bool, _ []string) {
	own, _, _ := strings.Cut(ts.Getenv("PATH"), string(os.PathListSeparator))
	ts.Setenv("PATH", own)
}

// silent is the key of a script's channel, which gets a value once somebody has asked its proxy.
type silent struct{}

// proxy starts a module proxy that never answers, and makes it the script's.
func proxy(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	called, _ := ts.Value(silent{}).(chan struct{})
	var open []net.Conn
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open = append(open, c)
			select {
			case called <- struct{}{}:
			default:
			}
		}
	}()
	ts.Defer(func() {
		_ = l.Close()
		<-done
		for _, c := range open {
			_ = c.Close()
		}
	})
	ts.Setenv("GOPROXY", "http://"+l.Addr().String())
}

// asked waits until somebody has asked the proxy.
func asked(ts *testscript.TestScript, _ bool, _ []string) {
	called, _ := ts.Value(silent{}).(chan struct{})
	select {
	case <-called:
	case <-time.After(5 * time.Minute):
		ts.Fatalf("nobody has asked the proxy")
	}
}

// Kinds that the scripts explain and plan with, so that a change of a real kind changes none of them.
type demoFault struct {
	Latency metav1.Duration `json:"latency" jsonschema:"how much later each call answers"`
	Calls   []string        `json:"calls,omitempty" jsonschema:"the calls that are delayed"`
}

func (*demoFault) Needs() fault.Needs                          { return fault.Needs{Seams: []string{"cri"}} }
func (*demoFault) Inject(context.Context, fault.Target) error  { return nil }
func (*demoFault) Recover(context.Context, fault.Target) error { return nil }

type demoCheck struct {
	Metric string  `json:"metric" jsonschema:"the metric's name"`
	Above  float64 `json:"above,omitempty" jsonschema:"the value to exceed"`
}

func (*demoCheck) Reads() []bundle.Kind                        { return []bundle.Kind{"demo"} }
func (*demoCheck) Eval(bundle.View, check.Scope) check.Finding { return check.Finding{} }

type demoCollector struct{}

func (*demoCollector) Makes() []bundle.Kind { return []bundle.Kind{"demo"} }
func (*demoCollector) Snapshot(context.Context, capture.Target, *bundle.Writer) error {
	return nil
}

func init() {
	kinds.Register(kinds.Fault, kinds.Kind[fault.Fault]{
		Name: "demoLatency", Doc: "Answers come late.\n\nOnly for tests.", ChaosMesh: "NetworkChaos",
		Example: "name: slow\nkind: demoLatency\ntarget: {mode: all, selector: {component: kubelet}}\nspec:\n  latency: 40ms\n",
		New:     func() fault.Fault { return &demoFault{Calls: []string{"List"}} },
	})
	kinds.Register(kinds.Check, kinds.Kind[check.Check]{
		Name: "demoAbove", Doc: "A metric is above a value.", New: func() check.Check { return &demoCheck{} },
	})
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "demoMetrics", Doc: "Scrapes.", New: func() capture.Collector { return &demoCollector{} },
	})
	kinds.Register(kinds.Collector, kinds.Kind[capture.Collector]{
		Name: "demoAbove", Doc: "Has the name of a check.", New: func() capture.Collector { return &demoCollector{} },
	})
}
