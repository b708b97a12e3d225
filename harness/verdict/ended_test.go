package verdict_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/churn"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// ownPanic is what a scheduler leaves in its log that ends as scheduler-nil-pointer says.
const ownPanic = `Could not get a CSINode object for the node
panic: runtime error: invalid memory address or nil pointer dereference

goroutine 7 [running]:
k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits.(*CSILimits).checkAttachableInlineVolume(0x1)
	/src/csi.go:235 +0x1
`

// scheduler is what a scheduler does in a trial of scheduler-nil-pointer whose fault phase is from 40 s to 100 s. It
// answers in the recovery.
type scheduler struct {
	ends    []int // seconds at which it panics; it is back 2 s later
	bound   int   // the second at which the bystander gets its node; 0 if it never does
	unknown bool  // the pods were not watched
	hashed  []int // seconds at which its binary was hashed; none is all
	other   int   // the second from which it is another binary; 0 if it never is
	killed  int   // the second at which a fault kills it; 0 if none does
	build   int   // which of the arm's builds that fault puts in its place; 0 if none
	builds  int   // how many the arm has, if it is more than one: of digests cc…, dd…, and last the binary's
}

// judged is the arm of such a scheduler, by the scenario's own signature and health, the probes aside.
func (s scheduler) judged(t *testing.T) verdict.Arm {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sc, err := scenario.Load("../../scenarios/scheduler-nil-pointer/scenario.yaml")
	must(err)
	p, err := plan.New(sc, plan.Options{Arms: []string{"fixed"}})
	must(err)
	tr := p.Trials[0]
	notKind := func(kinds ...string) func(plan.Check) bool {
		return func(c plan.Check) bool { return slices.Contains(kinds, c.Kind) }
	}
	tr.Steady = slices.DeleteFunc(tr.Steady, notKind("nodeReady"))
	tr.Healed = slices.DeleteFunc(tr.Healed, notKind("probeDone"))
	tr.Exposure = slices.DeleteFunc(tr.Exposure, func(c plan.Check) bool { return c.Name != "csinode-missed" })
	tr.Info = nil

	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	must(err)
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 10, 0, second, 0, time.UTC) }
	digest := strings.Repeat("a", 64)
	of := bundle.ArmWorld{Arm: "fixed", Digest: digest}
	for n := 1; n < s.builds; n++ {
		of.Before = append(of.Before, bundle.EarlierBuild{Digest: strings.Repeat(string(rune('b'+n)), 64)})
	}
	must(w.SetWorld(bundle.World{Arms: []bundle.ArmWorld{of}}))
	for i, phase := range []string{check.Steady, check.Baseline, check.Fault, check.Lifting, check.Recovery, bundle.EndPhase} {
		w.Emit(event.Event{Time: at([]int{0, 20, 40, 100, 105, 205}[i]), Type: event.Phase, Message: phase})
	}
	stream := func(kind bundle.Kind, component string) *bundle.Stream {
		t.Helper()
		st, err := w.Stream(bundle.Meta{Kind: kind, Arm: "fixed", Component: component, Time: at(0)}, "jsonl")
		must(err)
		st.Alive(at(0))
		return st
	}
	identity, health := stream(bundle.Identity, ""), stream(bundle.Health, "")
	statuses, logs, pods := stream(bundle.Statuses, ""), stream(bundle.Logs, "kube-scheduler"), stream(bundle.Objects, "")
	id := func(n int) string { return fmt.Sprintf("containerd://%d", n) }
	must(statuses.JSON(bundle.ContainerStatus{Time: at(1), Container: "kube-scheduler", ID: id(0), State: "running", Ready: true}))
	for i, end := range s.ends {
		for line := range strings.Lines(ownPanic) {
			must(logs.JSON(bundle.LogLine{Time: at(end), File: id(i), Text: strings.TrimSuffix(line, "\n")}))
		}
		must(statuses.JSON(bundle.ContainerStatus{Time: at(end + 2), Container: "kube-scheduler", ID: id(i + 1), State: "running", Ready: true,
			RestartCount: int32(i + 1), LastID: id(i), LastReason: "Error", LastExitCode: 2, LastFinished: at(end)}))
	}
	for second := 0; second <= 205; second++ {
		starts := 0
		for _, end := range s.ends {
			if second > end {
				starts++
			}
		}
		restarts := 0
		if s.killed > 0 && second > s.killed {
			restarts, starts = 1, starts+1
		}
		one := bundle.IdentitySample{Time: at(second), PID: 7 + starts, StartTicks: int64(1000 + starts), Restarts: restarts}
		if s.hashed == nil || slices.Contains(s.hashed, second) {
			one.SHA256 = digest
			if len(of.Before) > 0 && second <= s.killed {
				one.SHA256 = of.Before[0].Digest
			}
			if s.other > 0 && second >= s.other {
				one.SHA256 = strings.Repeat("b", 64)
			}
		}
		must(identity.JSON(one))
		must(health.JSON(bundle.HealthSample{Time: at(second), Done: at(second), Path: "/healthz", Code: 200}))
	}
	if s.killed > 0 {
		_, err := w.WriteJSON(bundle.Meta{Kind: bundle.EndedProcess, Arm: "fixed", Time: at(s.killed)},
			bundle.EndedByFault{Time: at(s.killed), Fault: "kill", PID: 7, StartTicks: 1000, Counted: true, ReadySeconds: 60, Build: s.build})
		must(err)
	}
	if !s.unknown {
		must(pods.Append(churn.Version{Time: at(0), Type: churn.Synced, Resource: "pods"}))
		version := func(second int, typ, node string) {
			must(pods.Append(churn.Version{Time: at(second), Type: typ, Resource: "pods", Namespace: "ns", Name: "bystander", UID: "u",
				ResourceVersion: fmt.Sprint(second), Object: fmt.Appendf(nil, `{"metadata":{"name":"bystander"},"spec":{"nodeName":%q},"status":{"phase":"Pending"}}`, node)}))
		}
		version(50, "ADDED", "")
		if s.bound > 0 {
			version(s.bound, "MODIFIED", "node")
		}
	}
	for _, st := range []*bundle.Stream{identity, health, statuses, logs, pods} {
		st.Alive(at(205))
		must(st.Close())
	}
	must(w.Seal())
	sealed, err := bundle.Open(w.Dir())
	must(err)
	out, err := verdict.Judge(sealed, tr)
	must(err)
	return out.Arms[0]
}

// The end of a process is the incident's own only where the whole incident is there. One that crashed with its panic
// and got over it has failed all the same.
func TestAnEndIsTheIncidentsOnlyWithTheRestOfIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		subject scheduler
		outcome verdict.Outcome
		reason  string
	}{
		{"crashes on, and nothing is bound", scheduler{ends: []int{52, 60, 75}}, verdict.Reproduced, "panicked: 3 such ends among 3"},
		{"crashes twice, and then binds every pod", scheduler{ends: []int{52, 60}, bound: 70}, verdict.Broken, "exited or restarted unasked"},
		{"crashes once, and then binds every pod", scheduler{ends: []int{52}, bound: 70}, verdict.Broken, "exited or restarted unasked"},
		{"ends before it is hashed in the fault, and what is started in its place is", scheduler{ends: []int{41, 60, 75}, hashed: []int{10, 110}}, verdict.Reproduced,
			"panicked: 3 such ends among 3"},
		{"is hashed before the fault only", scheduler{ends: []int{41, 60, 75}, hashed: []int{10, 30}}, verdict.Inconclusive,
			"in 2 samples, 2 before the fault and 0 in the fault or after it"},
		{"is hashed after its end only", scheduler{ends: []int{41, 60, 75}, hashed: []int{50, 110}}, verdict.Inconclusive,
			"in 2 samples, 0 before the fault and 2 in the fault or after it"},
		{"is another binary in the end", scheduler{ends: []int{41, 60, 75}, hashed: []int{10, 50, 110}, other: 100}, verdict.Inconclusive, "it isn't the binary that was built"},
		{"crashes twice, and nobody watched the pods", scheduler{ends: []int{52, 60}, unknown: true}, verdict.Inconclusive, "the signature is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.subject.judged(t)
			if a.Outcome != c.outcome || !strings.Contains(a.Reason, c.reason) {
				t.Errorf("%s: %s\nwant %s: %s", a.Outcome, a.Reason, c.outcome, c.reason)
			}
		})
	}
}

// A subject that a fault killed may be another process from then on, of the same binary, and only then.
func TestAnEndByAFaultIsExpected(t *testing.T) {
	for _, c := range []struct {
		name    string
		subject scheduler
		met     check.Truth
		seen    string
		broken  bool
	}{
		{"killed", scheduler{killed: 50, bound: 70}, check.True, "; kill ended process 7 at 10:00:50; process 8 started at tick 1001 with 1 restarts", false},
		{"killed, and it crashes later", scheduler{killed: 50, ends: []int{75}, bound: 90}, check.False, "then process 9 started at tick 1002", true},
		{"crashed, though nothing killed it", scheduler{ends: []int{50}, bound: 70}, check.False, "then process 8 started at tick 1001", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.subject.judged(t)
			i := slices.IndexFunc(a.Identity, func(f check.Finding) bool { return f.Name == verdict.CheckProcess })
			if f := a.Identity[i]; f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s: %s, want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
			if (a.Outcome == verdict.Broken) != c.broken {
				t.Errorf("it is %s: %s", a.Outcome, a.Reason)
			}
		})
	}
	a := scheduler{killed: 50, bound: 70, other: 60}.judged(t)
	if a.Outcome != verdict.Inconclusive || !strings.Contains(a.Reason, "the subject isn't the binary that belongs to this arm") {
		t.Errorf("as another binary it is %s: %s", a.Outcome, a.Reason)
	}
}

// Of a subject that is upgraded, each stretch is asked for its own binary, and there must be exactly the planned change.
func TestAnUpgradedSubjectIsEachOfItsBuildsInTurn(t *testing.T) {
	for _, c := range []struct {
		name    string
		subject scheduler
		met     check.Truth
		seen    string
	}{
		{"upgraded", scheduler{killed: 50, build: 2, builds: 2, bound: 70}, check.True,
			"SHA-256 cccccccccccc in 51 samples, then aaaaaaaaaaaa in 155 samples, 41 before the fault and 101 in the recovery"},
		{"it is another binary after the upgrade", scheduler{killed: 50, build: 2, builds: 2, bound: 70, other: 60}, check.False,
			"SHA-256 bbbbbbbbbbbb in process 8 at 10:01:00.000Z: it isn't the binary that was built"},
		{"it is another binary before it", scheduler{killed: 50, build: 2, builds: 2, bound: 70, other: 30}, check.False,
			"SHA-256 bbbbbbbbbbbb in process 7 at 10:00:30.000Z"},
		{"it became another build, and no fault did that", scheduler{killed: 50, builds: 2, bound: 70}, check.False,
			"SHA-256 aaaaaaaaaaaa in process 8 at 10:00:51.000Z"},
		{"the last build never came", scheduler{killed: 50, build: 2, builds: 3, bound: 70}, check.False,
			"SHA-256 aaaaaaaaaaaa in process 8 at 10:00:51.000Z"},
		{"the last build never came, and nobody hashed the one before", scheduler{killed: 50, build: 2, builds: 3, bound: 70, hashed: []int{10, 45}},
			check.Unknown, "; build 3 of 3 was never put in place"},
		{"a build was left out", scheduler{killed: 50, build: 3, builds: 2, bound: 70}, check.Unknown, "; kill put build 3 in place of build 1"},
		{"nobody hashed the first build after the steady state began", scheduler{killed: 50, build: 2, builds: 2, bound: 70, hashed: []int{60, 110}}, check.Unknown,
			"; there is no sample of build 1"},
		{"nobody hashed the last build", scheduler{killed: 50, build: 2, builds: 2, bound: 70, hashed: []int{10, 45}}, check.Unknown, "; there is no sample of build 2"},
		{"no fault came", scheduler{builds: 2, bound: 70, killed: 0, hashed: []int{}}, check.Unknown, "no sample with a digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := c.subject.judged(t)
			i := slices.IndexFunc(a.Identity, func(f check.Finding) bool { return f.Name == verdict.CheckBinary })
			if f := a.Identity[i]; f.Met != c.met || !strings.Contains(f.Seen, c.seen) {
				t.Errorf("%s: %s, want %s: %s", f.Met, f.Seen, c.met, c.seen)
			}
			if c.met != check.True && a.Outcome != verdict.Inconclusive {
				t.Errorf("it is %s: %s", a.Outcome, a.Reason)
			}
		})
	}
}
