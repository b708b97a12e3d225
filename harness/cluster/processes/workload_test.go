package processes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-relapse/relapse/harness/cluster"
)

// server is the test binary as a workload, which wants to be told its own address.
func server() cluster.Process {
	return cluster.Process{Program: os.Args[0], Args: []string{"serve", "$(IP):8080"}, Env: map[string]string{"WHO": "a test"},
		Address: []string{"IP"}, Port: 8080, Ready: "/healthz"}
}

// withoutControlPlane is a cluster of a supervisor alone.
func withoutControlPlane(t *testing.T) *Cluster {
	t.Helper()
	s := supervise(t, nil)
	if err := os.Mkdir(filepath.Join(s.home, binDir), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{name: filepath.Base(s.home), home: s.home, http: http.DefaultClient, line: &lifeline{w: s.orders}}
	c.Machines = cluster.Machines[*Node]{{c: c, name: c.name + "-control-plane", role: cluster.ControlPlane}}
	return c
}

// Two workloads of one name have addresses, logs and processes of their own, and each is found again.
func TestWorkloads(t *testing.T) {
	c := withoutControlPlane(t)
	for _, arm := range []string{"one", "two"} {
		if err := c.Run(t.Context(), cluster.Workload{Name: "server", Namespace: "ns-" + arm, Arm: arm}, server()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.Workloads(t.Context(), "server")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if none, err := c.Workloads(t.Context(), "other"); err != nil || len(none) > 0 {
		t.Errorf("of another name: %v, %v", none, err)
	}
	var pids []int
	var addresses []string
	for i, arm := range []string{"one", "two"} {
		k, err := c.Workload(t.Context(), cluster.Workload{Name: "server", Namespace: "ns-" + arm, Arm: arm})
		if err != nil {
			t.Fatal(err)
		}
		address := k.(*Component).Address()
		if k.Name() != "server" || k.Node().Arm() != arm || k.Node().Name() != c.node().name || address != all[i].Address() {
			t.Errorf("%s of %s on %s at %s", k.Name(), k.Node().Arm(), k.Node().Name(), address)
		}
		body, err := k.Get(t.Context(), "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
		if _, err := k.Get(t.Context(), "/other"); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("of another path: %v", err)
		}
		log := filepath.Join(c.node().LogFolder(), "ns-"+arm+"_server-"+c.node().name+"_process", "server")
		if got := lastLines(log, 1, 1); got != "serving, as a test" {
			t.Errorf("it says %q", got)
		}
		id, err := k.Identity(t.Context(), true)
		if err != nil || id.PID == 0 || id.SHA256 == "" || !strings.HasPrefix(address, "127.") {
			t.Errorf("%+v, %v at %s", id, err, address)
		}
		pids, addresses = append(pids, id.PID), append(addresses, address)
	}
	if pids[0] == pids[1] || addresses[0] == addresses[1] {
		t.Errorf("they share something: %v, %v", pids, addresses)
	}
	if err := all[0].Signal(t.Context(), syscall.SIGKILL, cluster.Identity{}); err != nil {
		t.Fatal(err)
	}
	until(t, all[0], func(s cluster.Status) bool { return s.Running && s.Restarts == 1 && s.LastCode == 137 })
	until(t, all[1], func(s cluster.Status) bool { return s.Running && s.Restarts == 0 })
}

func until(t *testing.T, k cluster.Component, ok func(cluster.Status) bool) {
	t.Helper()
	var last cluster.Status
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if last, err = k.Abilities().Status(t.Context()); err == nil && ok(last) {
			return
		}
	}
	t.Fatalf("%s of %s is %+v, %v", k.Name(), k.Node().Arm(), last, err)
}

// A workload with a service account gets a kubeconfig with that account's token, once the account is there.
func TestWorkloadWithAnAccount(t *testing.T) {
	c := withoutControlPlane(t)
	var asked atomic.Int32
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := any(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
		switch {
		case r.URL.Path == "/api/v1/namespaces/ns/serviceaccounts/forbidden/token":
			w.WriteHeader(403)
		case r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/ns/serviceaccounts/agent/token" || asked.Add(1) == 1:
			w.WriteHeader(404)
		default:
			answer = authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "a-token"}}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	c.rest = &rest.Config{Host: api.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	p := server()
	p.ServiceAccount = "forbidden"
	w := cluster.Workload{Name: "server", Namespace: "ns", Arm: "one"}
	if err := c.Run(t.Context(), w, p); err == nil || !strings.Contains(err.Error(), "running the server of ns: getting a token of the service account forbidden: ") {
		t.Errorf("without a token: %v", err)
	}
	p.ServiceAccount = "agent"
	if err := c.Run(t.Context(), w, p); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(c.node().LogFolder(), "ns_server-"+c.node().name+"_process", "server")
	at, ok := strings.CutPrefix(lastLines(log, 1, 1), "serving, as a test")
	cfg, err := clientcmd.BuildConfigFromFlags("", at)
	if !ok || err != nil || cfg.Host != api.URL || cfg.BearerToken != "a-token" || string(cfg.CAData) != string(ca) || len(cfg.KeyData) > 0 {
		t.Errorf("its kubeconfig %s has %+v, %v", at, cfg, err)
	}
	if server().Env["KUBECONFIG"] != "" || p.Env["KUBECONFIG"] != "" {
		t.Error("the caller's variables were changed")
	}
}

func TestWorkloadThatCantRun(t *testing.T) {
	c := withoutControlPlane(t)
	w := cluster.Workload{Name: "server", Namespace: "ns", Arm: "one"}
	if _, err := c.Workload(t.Context(), w); err == nil || !strings.Contains(err.Error(), "looking for the server of ns: ") {
		t.Errorf("before it was started: %v", err)
	}
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	ends := server()
	ends.Program, ends.Args = sh, []string{"-c", "echo enough; exit 3"}
	var failed *StartError
	if err := c.Run(t.Context(), w, ends); !errors.As(err, &failed) || failed.Said != "enough" || failed.Exit != "exit status 3" {
		t.Errorf("of one that ends: %v", err)
	}
	if err := c.Run(t.Context(), w, server()); err == nil || !strings.Contains(err.Error(), "running the server of ns: there is one of that name already") {
		t.Errorf("a second time: %v", err)
	}
	c.line = nil
	if err := c.Run(context.Background(), w, server()); err == nil || !strings.Contains(err.Error(), "another process made the cluster relapse-") {
		t.Errorf("of a cluster that was opened: %v", err)
	}
}

func TestExpand(t *testing.T) {
	args, env := expand(cluster.Process{Args: []string{"--a=$(IP):1", "$$(IP)", "$(NONE) $(B)"}, Env: map[string]string{"B": "b"}, Address: []string{"IP"}}, "127.1.2.3")
	if want := []string{"--a=127.1.2.3:1", "$(IP)", "$(NONE) b"}; !slices.Equal(args, want) {
		t.Errorf("%q, want %q", args, want)
	}
	if want := []string{"B=b", "IP=127.1.2.3"}; !slices.Equal(env, want) {
		t.Errorf("%q, want %q", env, want)
	}
}
