// Package dockertest has a docker for tests: a client and a daemon in one. It is the test's own program under the name
// docker, and its state is a folder, so that it lasts from one command to the next.
package dockertest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folder is the environment variable with the folder of the state.
const folder = "RELAPSE_FAKE_DOCKER"

// Main runs a package's tests, or the fake if the program was started as docker. TestMain of a package that uses New
// calls it.
func Main(m *testing.M) {
	if filepath.Base(os.Args[0]) == "docker" {
		os.Exit(run(os.Getenv(folder), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// State is what the fake daemon has in memory.
type State struct {
	Default    string // the default runtime; "" in New: runc
	Runtimes   map[string]any
	Bounded    string            // what every runtime but relapse's says instead of starting a container
	Stubborn   string            // the same for relapse's
	Containers map[string]string // name -> runtime
	Objects    []string          // images and containers there are
	Calls      []string
	Arch       string // "" in New: x86_64
	Down       bool   // the daemon doesn't answer
}

// Read returns the state in dir.
func Read(dir string) (s State) {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

// Write makes s the state in dir.
func (s State) Write(dir string) {
	data, err := json.Marshal(s)
	at := filepath.Join(dir, "state.json")
	made := fmt.Sprintf("%s.%d", at, os.Getpid()) // another one may read, and this one may be killed
	if err == nil {
		err = os.WriteFile(made, data, 0o644)
	}
	if err == nil {
		err = os.Rename(made, at)
	}
	if err != nil {
		panic(err)
	}
}

func run(dir string, args []string) int {
	s := Read(dir)
	s.Calls = append(s.Calls, strings.Join(args, " "))
	defer func() { s.Write(dir) }()
	fail := func(msg string) int { fmt.Fprintln(os.Stderr, msg); return 1 }
	last := args[len(args)-1]
	if s.Down {
		return fail("Cannot connect to the Docker daemon")
	}
	switch args[0] {
	case "version":
		fmt.Println("20.10.24")
	case "info":
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
			"ServerVersion":  "20.10.24",
			"DefaultRuntime": s.Default,
			"Runtimes":       s.Runtimes,
			"Architecture":   s.Arch,
			"CgroupVersion":  "1",
			"DockerRootDir":  "/",
			"MemTotal":       1 << 34,
			"NCPU":           2,
			"Driver":         "overlay2",
		})
	case "import":
		_, _ = io.Copy(io.Discard, os.Stdin)
		s.Objects = append(s.Objects, "image "+last)
	case "create":
		s.Objects = append(s.Objects, "container "+args[2])
	case "start":
		words := s.Bounded
		if s.Default == "relapse-bounded" {
			words = s.Stubborn
		}
		if words != "" {
			return fail(words)
		}
		fmt.Println("Name:\tprobe\nCapBnd:\t0000003ffeffffff")
	case "rm", "rmi":
		kind := map[string]string{"rm": "container ", "rmi": "image "}[args[0]]
		i := slices.Index(s.Objects, kind+last)
		if i < 0 {
			return fail("Error: No such object: " + last)
		}
		s.Objects = slices.Delete(s.Objects, i, i+1)
	case "ps":
		fmt.Println(strings.Join(slices.Sorted(maps.Keys(s.Containers)), "\n"))
	case "inspect":
		fmt.Printf("%s /%s\n", s.Containers[last], last)
	default:
		return fail("fake docker doesn't know " + args[0])
	}
	return 0
}

// New puts a docker on PATH, alone, whose daemon is in state s, and returns the folder of the state.
func New(t *testing.T, s State) (dir string) {
	t.Helper()
	dir = t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "docker"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.Default == "" {
		s.Default = "runc"
	}
	if s.Arch == "" {
		s.Arch = "x86_64"
	}
	s.Write(dir)
	t.Setenv(folder, dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a race-detecting fake would sleep 1 s at each exit
	t.Setenv("PATH", dir)
	return dir
}
