package trial_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial"
	"github.com/kube-relapse/relapse/harness/trial/environment"
	"github.com/kube-relapse/relapse/harness/verdict"
	"github.com/kube-relapse/relapse/internal/clustertest"
)

// run is a run of the scenario slow-etcd with clusters in memory. It is used in a synctest bubble: phases last as long
// as they would, by a clock that waits for nobody.
type run struct {
	*clustertest.Provider
	plan   *plan.Plan
	dir    *trial.RunDir
	events *event.Stream
	builds map[string]environment.Build // by arm

	scripted func(arm string, s *server) // does more to a server that was made; may be nil
	stays    bool                        // a fault is expected to be in force when the clusters are deleted

	mu      sync.Mutex
	servers map[string]*server // by arm, of the clusters made last
	made    []string           // clusters, as they came and went: "+vulnerable", "-vulnerable"
	inForce []string           // arms that had a fault when their cluster went
	heard   []event.Event
	judged  map[string]verdict.Outcome // by arm, of the trial judged last
}

const runName = "relapse-test"

// newRun plans trials of arms whose programs are what programs says. An arm named candidate is the user's.
func newRun(t *testing.T, programs map[string]string, o plan.Options) *run {
	t.Helper()
	return newRunOf(t, slowEtcd(t), programs, o)
}

// slowEtcd is the scenario, which a test may change, with each text in its file replaced by the one that follows it.
func slowEtcd(t *testing.T, oldNew ...string) *scenario.Scenario {
	t.Helper()
	file := filepath.Join("testdata", "slow-etcd", scenario.FileName)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(oldNew); i += 2 {
		if !strings.Contains(string(text), oldNew[i]) {
			t.Fatalf("the scenario has no %q", oldNew[i])
		}
	}
	s, err := scenario.Parse(file, []byte(strings.NewReplacer(oldNew...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRunOf(t *testing.T, s *scenario.Scenario, programs map[string]string, o plan.Options) *run {
	t.Helper()
	var err error
	r := &run{builds: map[string]environment.Build{}, servers: map[string]*server{}}
	dir, bySum := t.TempDir(), map[string]string{}
	for arm, does := range programs {
		text := arm + " " + does
		sum := sha256.Sum256([]byte(text))
		b := environment.Build{Path: filepath.Join(dir, arm), Digest: hex.EncodeToString(sum[:]), Graph: "graph", GoVersion: "go1.26.0"}
		if err := os.WriteFile(b.Path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		r.builds[arm], bySum[b.Digest] = b, text
	}
	if b, ok := r.builds[scenario.Candidate]; ok {
		o.Candidates = []plan.Candidate{{Source: &scenario.Source{Binary: b.Path, Version: "v1.34.4"}}}
	}
	if r.plan, err = plan.New(s, o); err != nil {
		t.Fatal(err)
	}
	if r.dir, err = trial.CreateRunDir(filepath.Join(dir, "run"), runName, r.plan); err != nil {
		t.Fatal(err)
	}
	r.events = event.NewStream(event.SinkFunc(func(e event.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heard = append(r.heard, e)
	}))
	r.Provider = &clustertest.Provider{InProcess: true, Made: func(c *clustertest.Cluster) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		arm := armOf(c.Name())
		r.servers[arm] = serve(c, bySum)
		r.made = append(r.made, "+"+arm)
		if r.scripted != nil {
			r.scripted(arm, r.servers[arm])
		}
		return nil
	}}
	return r
}

func armOf(clusterName string) string { return strings.TrimPrefix(clusterName, runName+"-") }

// Delete notes that a cluster goes, and whether a fault is in force in it.
func (r *run) Delete(ctx context.Context, name string) error {
	if slices.Contains(r.Clusters(), name) {
		r.mu.Lock()
		r.made = append(r.made, "-"+armOf(name))
		if r.servers[armOf(name)].slow() {
			r.inForce = append(r.inForce, armOf(name))
		}
		r.mu.Unlock()
	}
	return r.Provider.Delete(ctx, name)
}

// The run is what installs its builds, too.
func (r *run) Of(arm scenario.Arm) (environment.Build, error) { return r.builds[arm.Name], nil }
func (r *run) Fixture(name string) string                     { return "/nowhere/" + name }

// trial makes the clusters of the n-th trial, runs it and deletes them again, as the harness does.
func (r *run) trial(ctx context.Context, t *testing.T, n int) error {
	t.Helper()
	before := len(r.heard)
	env, err := environment.Create(ctx, environment.Options{Run: runName, Plan: r.plan, Trial: r.plan.Trials[n], Artifacts: r, Provider: r, Events: r.events})
	if err != nil {
		t.Fatal(err)
	}
	err = trial.Run(ctx, env, r.dir, r.events, slices.Clone(r.heard[before:]))
	if left := env.Delete(ctx); left != nil {
		t.Error(left)
	}
	if left := r.Clusters(); len(left) > 0 {
		t.Errorf("clusters are left: %v", left)
	}
	if (len(r.inForce) > 0) != r.stays {
		t.Errorf("a fault was in force to the end in %v", r.inForce)
	}
	return err
}

// judge judges the bundle of the n-th trial. What was heard is from then on what its timeline says.
func (r *run) judge(t *testing.T, n int) verdict.Trial {
	t.Helper()
	dir := r.dir.Trial(r.plan.Trials[n].ID)
	v, err := judge.Bundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.heard = sealed.Timeline()
	r.judged = map[string]verdict.Outcome{}
	for _, a := range v.Arms {
		r.judged[a.Name] = a.Outcome
		t.Logf("%s is %s: %s", a.Name, a.Outcome, a.Reason)
	}
	return v
}

// outcomes are those of some arms in the trial that was judged last.
func (r *run) outcomes(arms ...string) string {
	var out []string
	for _, a := range arms {
		out = append(out, string(r.judged[a]))
	}
	return strings.Join(out, " ")
}

// went is how an arm went through its phases, with where its fault was seen to come and to go.
func (r *run) went(arm string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.heard {
		switch {
		case e.Arm != "" && e.Arm != arm:
		case e.Type == event.Phase:
			out = append(out, e.Message)
		case e.Type == event.FaultSeen:
			out = append(out, "+fault")
		case e.Type == event.FaultGone:
			out = append(out, "-fault")
		}
	}
	return strings.Join(out, " ")
}

// looks are how many snapshots a collector took of an arm in its baseline because that began or ended.
func (r *run) looks(arm, collector string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	phase := ""
	for _, e := range r.heard {
		switch {
		case e.Type == event.Phase && (e.Arm == "" || e.Arm == arm):
			phase = e.Message
		case e.Type == event.Capture && e.Arm == arm && phase == check.Baseline && e.Message == collector+" taken (phase)":
			n++
		}
	}
	return n
}

// says reports whether an event of a type has a text.
func (r *run) says(typ, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.heard, func(e event.Event) bool { return e.Type == typ && strings.Contains(e.Message, text) })
}
