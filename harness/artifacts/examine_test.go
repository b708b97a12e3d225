package artifacts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// cloud is a module with a cloud-controller-manager, and with a package that is none of its program's.
var cloud = map[string]string{
	"go.mod": "module example.org/cloud\n\ngo 1.24\n",
	"cmd/acme-cloud-controller-manager/main.go": `package main

import (
	"flag"

	"example.org/cloud/pkg/sync"
)

func main() {
	flag.Int("workers", sync.Workers, "number of workers")
	flag.Parse()
	(&sync.Controller{}).Sync()
}
`,
	"cmd/acme-cloud-scheduler/main.go": "package main\n\nfunc main() {}\n",
	"pkg/sync/sync.go": `package sync

const Workers = 3

var queue = make(chan int, Workers)

type Controller struct{}

func (c *Controller) Sync() {
	guard()
}

func guard() { close(queue) }
`,
	"pkg/other/other.go": "package other\n\nconst Spare = 1\n\nvar spare = make(chan int, Spare)\n\ntype Controller struct{}\n\nfunc (c *Controller) Sync() {\n\tguard()\n}\n\nfunc guard() {}\n",
}

const cloudScenario = `apiVersion: relapse.dev/v1alpha1
kind: Scenario
metadata: {name: cloud, failure: stuck}
spec:
  title: A cloud's controller manager that doesn't guard its work
  description: Only for a test.
  subject: cloud-controller-manager
  placement: cluster
  version: v1.34.4
  args:
    cloud-controller-manager: {workers: "3"}
  constants:
    - {name: workers, package: example.org/cloud/pkg/sync, ident: Workers}
  pairs:
    - name: modern
      arms:
        vulnerable:
          module: example.org/cloud
          version: v1.34.0
          package: example.org/cloud/cmd/acme-cloud-controller-manager
          mutations:
            - {kind: dropCall, sites: 1, spec: {package: example.org/cloud/pkg/sync, type: Controller, methods: [Sync], call: guard}}
        fixed: {module: example.org/cloud, version: v1.34.1, package: example.org/cloud/cmd/acme-cloud-controller-manager}
  collectors:
    - {name: health, kind: health, spec: {paths: [/healthz]}}
  faults:
    - name: stop
      kind: process
      target: {mode: all, selector: {component: cloud-controller-manager}}
      spec: {action: stop, component: cloud-controller-manager, atMost: 10s}
  phases: {steady: {deadline: 2m}, baseline: {atLeast: 10s}, fault: {deadline: 5m}, recovery: {deadline: 3m}}
  steady: [{name: healthy, kind: healthy, spec: {path: /healthz, for: 5s}}]
  exposure: [{name: unhealthy, kind: healthy, spec: {path: /healthz, for: 5s}}]
  signature: [{name: ill, kind: healthy, spec: {path: /healthz, for: 5s}}]
  healed: [{name: well, kind: healthy, spec: {path: /healthz, for: 5s}}]
`

// publish puts the versions of a module on a module proxy of the test's own, which also knows a version of Kubernetes.
func publish(t *testing.T, path string, files map[string]string, versions ...string) {
	t.Helper()
	proxy, dir := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(filepath.Join(dir, name), text)
	}
	at := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	write(filepath.Join(at, "list"), strings.Join(versions, "\n")+"\n")
	for _, v := range versions {
		write(filepath.Join(at, v+".mod"), files["go.mod"])
		write(filepath.Join(at, v+".info"), `{"Version":"`+v+`"}`)
		f, err := os.Create(filepath.Join(at, v+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(zip.CreateFromDir(f, module.Version{Path: path, Version: v}, dir), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	kubernetes := filepath.Join(proxy, "k8s.io", "kubernetes", "@v")
	write(filepath.Join(kubernetes, "list"), "v1.34.4\n")
	write(filepath.Join(kubernetes, "v1.34.4.info"), `{"Version":"v1.34.4"}`)
	write(filepath.Join(kubernetes, "v1.34.4.mod"), "module k8s.io/kubernetes\n")
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw") // or the test's directory can't be removed
	t.Setenv("GOMODCACHE", t.TempDir())
}

// examined returns what Examine says of a scenario's text.
func examined(t *testing.T, a *Artifacts, text string) (untried []string, err error) {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Examine(t.Context(), s, p, nil)
}

// cacheFolder returns a new cache that has what Go has compiled elsewhere, or each test would compile it anew.
func cacheFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err = errors.Join(err, os.Symlink(strings.TrimSpace(string(out)), filepath.Join(dir, "go-build"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What would make a build fail is found without one, with its place.
func TestSourcesAreExamined(t *testing.T) {
	publish(t, "example.org/cloud", cloud, "v1.34.0", "v1.34.1")
	a, err := Open(Options{CacheDir: cacheFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	const none = "the flags of example.org/cloud@v1.34.%d (acme-cloud-controller-manager)%s, which isn't built here, or doesn't list them"
	want := fmt.Sprintf(none, 1, "") + "\n" + fmt.Sprintf(none, 0, " with dropCall")
	if untried, err := examined(t, a, cloudScenario); err != nil || strings.Join(untried, "\n") != want {
		t.Fatalf("before anything is built: %q, %v; want %q", untried, err, want)
	}
	s, err := scenario.Parse("x.yaml", []byte(cloudScenario))
	if err != nil {
		t.Fatal(err)
	}
	for _, arm := range s.Spec.Pairs[0].Arms {
		if err := a.buildArm(t.Context(), arm, s.Spec.Subject, s.Spec.Constants); err != nil {
			t.Fatal(err)
		}
	}
	if untried, err := examined(t, a, cloudScenario); err != nil || len(untried) > 0 {
		t.Fatalf("the scenario without mistakes: %q, %v", untried, err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a version that doesn't exist", "version: v1.34.1", "version: v1.34.9",
			"x.yaml:23:53: spec.pairs[0].arms.fixed.version: running go mod download example.org/cloud@v1.34.9"},
		{"a version of the cluster that doesn't exist", "version: v1.34.4", "version: v1.34.99",
			"x.yaml:9:12: spec.version: looking for k8s.io/kubernetes@v1.34.99"},
		{"a package that doesn't exist", "version: v1.34.1, package: example.org/cloud/cmd/acme-cloud-controller-manager",
			"version: v1.34.1, package: example.org/cloud/cmd/acem-cloud-controller-manager",
			"x.yaml:23:71: spec.pairs[0].arms.fixed.package: example.org/cloud v1.34.1 has no package example.org/cloud/cmd/acem-cloud-controller-manager (programs in cmd: acme-cloud-controller-manager, acme-cloud-scheduler)"},
		{"a function that doesn't exist", "call: guard", "call: gard",
			"x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: v1.34.0: pkg/sync/sync.go: want 1 statement that calls gard in (*Controller).Sync, found 0"},
		{"a method that doesn't exist", "methods: [Sync]", "methods: [Snyc]",
			"x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: v1.34.0: pkg/sync/sync.go: want 1 statement that calls guard in (*Controller).Snyc, found 0 (found: no method (*Controller).Snyc)"},
		{"too many sites", "sites: 1", "sites: 2",
			"x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: v1.34.0: pkg/sync/sync.go: want 2 statement that calls guard in (*Controller).Sync, found 1"},
		{"a package to mutate that doesn't exist", "spec: {package: example.org/cloud/pkg/sync,", "spec: {package: example.org/cloud/pkg/snyc,",
			"x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: v1.34.0: looking for package example.org/cloud/pkg/snyc in module example.org/cloud"},
		{"a package of another program", "spec: {package: example.org/cloud/pkg/sync,", "spec: {package: example.org/cloud/pkg/other,",
			"x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: package example.org/cloud/pkg/other is no part of example.org/cloud/cmd/acme-cloud-controller-manager, which doesn't import it"},
		{"a constant that doesn't exist", "ident: Workers", "ident: Wrokers",
			"x.yaml:13:7: spec.constants[0]: constant Wrokers of example.org/cloud@v1.34.0, package example.org/cloud/pkg/sync"},
		{"a constant of another program", "package: example.org/cloud/pkg/sync, ident: Workers", "package: example.org/cloud/pkg/other, ident: Spare",
			"x.yaml:13:7: spec.constants[0]: constant Spare: package example.org/cloud/pkg/other is no part of example.org/cloud/cmd/acme-cloud-controller-manager, which doesn't import it"},
		{"a flag that the program doesn't know", `{workers: "3"}`, `{wrokers: "3"}`,
			`x.yaml:11:41: spec.args.cloud-controller-manager.wrokers: example.org/cloud@v1.34.0 (acme-cloud-controller-manager) with dropCall has no flag --wrokers; did you mean workers?` + "\n" +
				`x.yaml:11:41: spec.args.cloud-controller-manager.wrokers: example.org/cloud@v1.34.1 (acme-cloud-controller-manager) has no flag --wrokers; did you mean workers?`},
		{"a flag of a fault that the program doesn't know", "spec: {action: stop, component: cloud-controller-manager, atMost: 10s}",
			"spec: {action: restart, component: cloud-controller-manager, flags: {wrokers: 4}}\n" +
				"  health: {without: [{part: stuck, why: it is restarted}, {part: heap, why: it is restarted}, {part: cpu, why: it is restarted}]}",
			`spec.faults[0].spec.flags.wrokers: example.org/cloud@v1.34.1 (acme-cloud-controller-manager) has no flag --wrokers; did you mean workers?`},
		{"a fixture that doesn't exist", "fixed: {module: example.org/cloud, version: v1.34.1, package: example.org/cloud/cmd/acme-cloud-controller-manager}",
			"fixed: {fixture: listner}", `x.yaml:23:26: spec.pairs[0].arms.fixed.fixture: "listner" is no fixture with a go.mod of its own`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(cloudScenario, c.old) != 1 {
				t.Fatalf("%q is there %d times", c.old, strings.Count(cloudScenario, c.old))
			}
			_, err := examined(t, a, strings.Replace(cloudScenario, c.old, c.new, 1))
			var vs scenario.Violations
			if !errors.As(err, &vs) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// A build that fails for a mistake in the file says where that is.
func TestABuildThatFailsNamesTheMistake(t *testing.T) {
	publish(t, "example.org/cloud", cloud, "v1.34.0", "v1.34.1")
	a, err := Open(Options{CacheDir: cacheFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s, err := scenario.Parse("x.yaml", []byte(strings.Replace(cloudScenario, "call: guard", "call: gard", 1)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Locate(a.buildArms(t.Context(), p))
	const want = "x.yaml:22:15: spec.pairs[0].arms.vulnerable.mutations[0]: mutation dropCall: v1.34.0: pkg/sync/sync.go: want 1 statement that calls gard"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// What a candidate adds is examined, with the place in the candidate's own file.
func TestACandidateIsExamined(t *testing.T) {
	publish(t, "example.org/cloud", cloud, "v1.34.0", "v1.34.1")
	a, err := Open(Options{CacheDir: cacheFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	dir := filepath.Join(t.TempDir(), "cloud")
	file := filepath.Join(dir, scenario.CandidatesDir, "unguarded.yaml")
	for name, text := range map[string]string{filepath.Join(dir, scenario.FileName): cloudScenario, file: `apiVersion: relapse.dev/v1alpha1
kind: Candidate
metadata: {name: unguarded}
spec:
  doc: It has more workers.
  right: Reproduced
  why: More workers guard nothing.
  because: {check: ill, is: met}
  base: vulnerable
  mutations:
    - {kind: setConstant, sites: 1, spec: {package: example.org/cloud/pkg/sync, name: Wrokers, value: "4"}}
`} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Load(filepath.Join(dir, scenario.FileName))
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Candidate(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(s, plan.Options{Candidates: []plan.Candidate{{Known: k}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Examine(t.Context(), s, p, k)
	want := file + ":11:7: spec.mutations[0]: mutation setConstant: v1.34.0: pkg/sync/sync.go: want 1 constant Wrokers"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
