package processes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/cluster/component"
	"github.com/kube-relapse/relapse/harness/cluster/processes"
	_ "github.com/kube-relapse/relapse/scenarios"
)

// What the test binary can be instead, by its first argument: a supervisor, as the program itself is by a command of
// its own, a program that makes a cluster in a folder and holds it, a server of a workload, and what
// runs in a container of a component's own.
const (
	asSupervisor = "supervise"
	asServer     = "serve"
	asMaker      = "make-cluster"
	asContainer  = "contain"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == asSupervisor:
		err = processes.Supervise(context.Background(), os.Args[2], os.Stdin)
	case len(os.Args) == 3 && os.Args[1] == asContainer:
		err = processes.Contain(context.Background(), os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == asServer:
		fmt.Println("serving, as", os.Getenv("WHO")+os.Getenv("KUBECONFIG"))
		err = http.ListenAndServe(os.Args[2], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				http.NotFound(w, r)
			}
		}))
	case len(os.Args) > 3 && os.Args[1] == asMaker:
		err = makeCluster(os.Args[2], os.Args[3:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const name = "relapse-processes"

// retainVariable has makeCluster retain its cluster and end.
const retainVariable = "RELAPSE_RETAIN"

// makerOf is a program that makes a cluster of some programs in a folder.
func makerOf(dir string, programs map[string]string) *exec.Cmd {
	args := []string{asMaker, dir}
	for name, path := range programs {
		args = append(args, name+"="+path)
	}
	return exec.Command(os.Args[0], args...)
}

// makeCluster makes a cluster of the programs, component=path, and holds it until it is killed.
func makeCluster(dir string, programs []string) error {
	p, err := processes.New(processes.Options{Dir: dir, Supervisor: []string{os.Args[0], asSupervisor}})
	if err != nil {
		return err
	}
	all := map[string]string{}
	for _, one := range programs {
		name, path, _ := strings.Cut(one, "=")
		all[name] = path
	}
	if _, err := p.Create(context.Background(), name, topology(all)); err != nil {
		return err
	}
	if os.Getenv(retainVariable) != "" {
		if err := p.Retain(context.Background(), name); err != nil {
			return err
		}
		fmt.Println("made")
		return nil
	}
	fmt.Println("made")
	select {}
}

func newProvider(t testing.TB) (*processes.Provider, string) {
	t.Helper()
	dir := t.TempDir()
	p, err := processes.New(processes.Options{Dir: dir, Supervisor: []string{os.Args[0], asSupervisor}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the clean-up of whoever makes a cluster
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files left: %v, %v", left, err)
		}
		if left := alive(t, dir); len(left) > 0 {
			t.Errorf("processes left: %q", left)
		}
	})
	return p, dir
}

func topology(programs map[string]string) cluster.Topology {
	return cluster.Topology{Version: cluster.DefaultVersion, Nodes: []cluster.NodeSpec{{Name: "control-plane",
		Role: cluster.ControlPlane, Arm: "one", Programs: programs,
		Args: map[string]map[string]string{"kube-apiserver": {"v": "2"}}}}}
}

// scripts are stand-ins for all components that run a shell script.
func scripts(t *testing.T, script string) map[string]string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range component.Names(component.StaticPods) {
		out[name] = at
	}
	return out
}

// alive are the command lines of all processes that name a folder, without this one's own.
func alive(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if line := string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})); err == nil && strings.Contains(line, dir+"/") &&
			file != "/proc/"+strconv.Itoa(os.Getpid())+"/cmdline" {
			out = append(out, line)
		}
	}
	return out
}

var _ cluster.Provider = &processes.Provider{}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		o    processes.Options
		want string
	}{
		{processes.Options{Dir: "relative", Supervisor: []string{"x"}},
			`making a provider of processes: its directory "relative" is not an absolute path`},
		{processes.Options{Dir: "/x"}, "making a provider of processes: there is no command for its supervisors"},
	} {
		if _, err := processes.New(c.o); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	p, _ := newProvider(t)
	for _, c := range []struct {
		name, want string
		change     func(*cluster.Topology)
	}{
		{"other", `creating cluster "other": the name "other" is not one of ours`, func(*cluster.Topology) {}},
		{name, "the topology has 2 nodes: want one control plane, as there is no kubelet", func(t *cluster.Topology) {
			t.Nodes = append(t.Nodes, cluster.NodeSpec{Name: "worker", Role: cluster.Worker})
		}},
		{name, `node "control-plane" has no program for kwok, and none was prepared for Kubernetes ` + cluster.DefaultVersion,
			func(t *cluster.Topology) { t.Simulated = 1 }},
		{name, "the topology has 1 nodes: want one control plane",
			func(t *cluster.Topology) { t.Nodes[0].Role = cluster.Worker }},
		{name, `node "control-plane" has files or units: it is no machine`,
			func(t *cluster.Topology) { t.Nodes[0].Units = []cluster.Unit{{Name: "x.service"}} }},
		{name, `node "control-plane" has no program for etcd, and none was prepared for Kubernetes ` + cluster.DefaultVersion,
			func(t *cluster.Topology) { t.Nodes[0].Programs = nil }},
		{name, `flags for "kubelet": want one of ["etcd" "kube-apiserver" "kube-controller-manager" "kube-scheduler"]`,
			func(t *cluster.Topology) {
				t.Nodes[0].Args = map[string]map[string]string{"kubelet": {"v": "1"}}
			}},
		{name, `files for "kubelet": want one of ["etcd" "kube-apiserver" "kube-controller-manager" "kube-scheduler"]`,
			func(t *cluster.Topology) {
				t.Nodes[0].OwnFiles = map[string]map[string]string{"kubelet": {"a": "b"}}
			}},
		{name, `flags for "cloud-controller-manager": want one of ["etcd" "kube-apiserver"`,
			func(t *cluster.Topology) {
				t.Nodes[0].Args = map[string]map[string]string{"cloud-controller-manager": {"v": "1"}}
			}},
		{name, `the seam "cri": want one of ["apiserver-webhook" "cloud-controller-manager-apiserver" "controller-manager-apiserver" "etcd" "lbaas" "scheduler-apiserver" "scheduler-extender"]`, func(t *cluster.Topology) { t.Nodes[0].Seams = map[string]string{"cri": "/x"} }},
		{name, "kube-apiserver has --etcd-servers=https://127.0.0.1:1 already, and the seam etcd wants its own",
			func(t *cluster.Topology) {
				t.Nodes[0].Seams = map[string]string{"etcd": "/x"}
				t.Nodes[0].Args["kube-apiserver"]["etcd-servers"] = "https://127.0.0.1:1"
			}},
		{name, "no such file or directory", func(t *cluster.Topology) { t.Nodes[0].Programs["etcd"] = "/no/such/etcd" }},
	} {
		top := topology(scripts(t, "exit 1"))
		c.change(&top)
		if _, err := p.Create(t.Context(), c.name, top); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A flag that names one of the component's own files has its path. A file without a text is the component's to make,
// beside the others.
func TestCreateLaysOwnFiles(t *testing.T) {
	p, dir := newProvider(t)
	top := topology(scripts(t, `for a in "$@"; do case $a in
--audit-policy-file=*) echo "policy $(cat "${a#*=}")" ;;
--audit-log-path=*) f=${a#*=}; [ ! -e "$f" ] && echo "log in $(dirname "$f")" ;;
esac; done; exit 1`))
	top.Nodes[0].OwnFiles = map[string]map[string]string{"etcd": {"policy.yaml": "rules: []", "audit.log": ""}}
	top.Nodes[0].Args["etcd"] = map[string]string{"audit-policy-file": "policy.yaml", "audit-log-path": "audit.log"}
	_, err := p.Create(t.Context(), name, top)
	for _, want := range []string{"policy rules: []", "log in " + filepath.Join(dir, name, "files", "etcd")} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is said that %v, want %s", err, want)
		}
	}
}

// A component that ends at its start is quoted, and nothing is left of the others.
func TestCreateSaysWhatAComponentSaid(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo 'Error: unknown flag: --nope'; exit 1",
			"etcd ended before it was ready (exit status 1); its last lines:\nError: unknown flag: --nope"},
		{"exit 0", "etcd ended before it was ready (exit status 0)"},
		{"echo 'listen tcp 127.0.0.1:1: bind: address already in use'; exit 1",
			"a port was taken meanwhile\netcd ended before it was ready"},
	} {
		p, _ := newProvider(t)
		_, err := p.Create(t.Context(), name, topology(scripts(t, c.script)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		var ended *processes.StartError
		if !errors.As(err, &ended) || ended.Component != "etcd" {
			t.Errorf("it is no StartError of etcd: %v", err)
		}
	}
}

// Create gives up when its context ends, and removes what it made.
func TestCreateIsCancelled(t *testing.T) {
	p, dir := newProvider(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil { // until it has said something
			logs, _ := filepath.Glob(filepath.Join(dir, name, "pods", "*_etcd-*", "etcd", "0.log")) // the pattern is well-formed
			for _, log := range logs {
				if b, err := os.ReadFile(log); err == nil && bytes.HasSuffix(b, []byte("still waiting\n")) {
					cancel(errors.New("enough"))
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	_, err := p.Create(ctx, name, topology(scripts(t, "echo 'still waiting'; exec sleep 1000")))
	if err == nil || !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(),
		"its last lines:\nstill waiting") {
		t.Errorf("it ended with %v", err)
	}
}

// killed makes a cluster in a process of its own, kills that after a while, and wants all of it gone within the time
// that it may take.
func killed(t *testing.T, programs map[string]string, after time.Duration) {
	t.Helper()
	const within = 30 * time.Second // it takes less than one where the machine does nothing else
	dir := t.TempDir()
	maker := makerOf(dir, programs)
	var said bytes.Buffer
	maker.Stdout, maker.Stderr = &said, &said
	if err := maker.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	had := slices.DeleteFunc(alive(t, dir), func(line string) bool { return strings.Contains(line, asMaker) })
	if err := maker.Process.Kill(); err != nil {
		t.Fatalf("it had ended: %v: %s", err, said.String())
	}
	_ = maker.Wait() // it was killed
	began := time.Now()
	for len(alive(t, dir)) > 0 && time.Since(began) < within {
		time.Sleep(5 * time.Millisecond)
	}
	if left := alive(t, dir); len(left) > 0 {
		t.Errorf("killed after %s, these are left %s later: %q", after, within, left)
	}
	t.Logf("killed after %s with %d processes, gone after %s; it had said %q", after.Round(time.Millisecond), len(had),
		time.Since(began).Round(time.Millisecond), said.String())
	p, err := processes.New(processes.Options{Dir: dir, Supervisor: []string{os.Args[0], asSupervisor}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), name); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// Whoever makes a cluster and is killed leaves no process, and what is left of it is removed by its name.
func TestKilledMakerLeavesNothing(t *testing.T) {
	programs := scripts(t, "trap '' TERM INT HUP; echo up; exec sleep 1000")
	for range 5 {
		killed(t, programs, time.Duration(rand.Int64N(int64(time.Second))))
	}
}
