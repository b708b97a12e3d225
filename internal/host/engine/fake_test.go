package engine

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

// The test binary under the name docker is a client and daemon in one. Its
// state is a folder, so that it lasts from one command to the next.
const fakeState = "RELAPSE_FAKE_DOCKER"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "docker" {
		os.Exit(fakeDocker(os.Getenv(fakeState), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// daemonState is what the fake daemon has in memory.
type daemonState struct {
	Default    string
	Runtimes   map[string]any
	Bounded    string            // what the stock runtime says instead of starting a container
	Stubborn   string            // the same for the bounded runtime
	Containers map[string]string // name -> runtime
	Objects    []string          // images and containers there are
	Calls      []string
	Arch       string
	Down       bool
}

func readState(dir string) (s daemonState) {
	data, err := os.ReadFile(filepath.Join(dir, "state.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
}

func (s daemonState) write(dir string) {
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

func fakeDocker(dir string, args []string) int {
	s := readState(dir)
	s.Calls = append(s.Calls, strings.Join(args, " "))
	defer func() { s.write(dir) }()
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
			"ServerVersion": "20.10.24", "DefaultRuntime": s.Default, "Runtimes": s.Runtimes, "Architecture": s.Arch,
			"CgroupVersion": "1", "DockerRootDir": "/", "MemTotal": 1 << 34, "NCPU": 2, "Driver": "overlay2",
		})
	case "import":
		_, _ = io.Copy(io.Discard, os.Stdin)
		s.Objects = append(s.Objects, "image "+last)
	case "create":
		s.Objects = append(s.Objects, "container "+args[2])
	case "start":
		words := s.Bounded
		if s.Default == RuntimeName {
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

// fake puts a docker on PATH, alone, whose daemon is in state s.
func fake(t *testing.T, s daemonState) (dir string) {
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
		s.Default = stockRuntime
	}
	if s.Arch == "" {
		s.Arch = "x86_64"
	}
	s.write(dir)
	t.Setenv(fakeState, dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a race-detecting fake would sleep 1 s at each exit
	t.Setenv("PATH", dir)
	return dir
}

// reloadFake does what dockerd does on SIGHUP: a key that is gone changes nothing.
func reloadFake(dir, config string) error {
	data, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	read, err := parseSettings(config, data)
	if err != nil {
		return err
	}
	s := readState(dir)
	if runtimes, ok := read[keyRuntimes].(map[string]any); ok {
		s.Runtimes = maps.Clone(runtimes)
		s.Runtimes[stockRuntime] = map[string]any{"path": "runc"}
	}
	if name := read.defaultRuntime(); name != "" {
		if s.Runtimes[name] == nil {
			return nil // it logs an error and keeps what it has
		}
		s.Default = name
	}
	s.write(dir)
	return nil
}
