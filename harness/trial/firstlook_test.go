package trial

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	evidencecollectors "github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/plan"
)

// On a busy host the first look at a process takes many seconds, and the baseline may be shorter than that.
func TestTheSteadyStateWaitsForTheFirstLook(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
	if err != nil {
		t.Fatal(err)
	}
	r := newLive(plan.Trial{}, w, nil)
	s, err := w.Stream(bundle.Meta{Kind: bundle.Identity, Arm: "fixed"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if !r.looked("candidate") {
		t.Error("it waits for an arm that nobody looks at")
	}
	at := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		look bundle.IdentitySample // none if it has no time
		want string                // what is lacking
	}{
		{"nobody has looked", bundle.IdentitySample{}, "nobody has looked yet which process it is"},
		{"there was no process", bundle.IdentitySample{Time: at}, "the last look, at 10:00:00, found no process"},
		{"its program is not known", bundle.IdentitySample{Time: at, PID: 7}, "nobody has looked yet which program process 7 runs"},
		{"all is known", bundle.IdentitySample{Time: at, PID: 7, SHA256: "abc"}, ""},
		{"all is still known", bundle.IdentitySample{Time: at, PID: 7}, ""},
		{"it is another process", bundle.IdentitySample{Time: at, PID: 8}, "nobody has looked yet which program process 8 runs"},
	} {
		if !c.look.Time.IsZero() {
			if err := s.JSON(c.look); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.looked("fixed"); got != (c.want == "") {
			t.Errorf("%s: the steady state may end: %t", c.name, got)
		}
		if got, want := r.pending.describe([]string{"fixed"}), "fixed (identity is unknown: "+c.want+")"; c.want != "" && got != want {
			t.Errorf("%s: it waits for %q, want %q", c.name, got, want)
		}
	}
}

// A kubelet is late with the status of a container that it has just started, and reports the one before until then.
func TestTheSteadyStateWaitsForTheStatusOfTheContainer(t *testing.T) {
	w, err := bundle.Create(filepath.Join(t.TempDir(), "trial"))
	if err != nil {
		t.Fatal(err)
	}
	of := func(components ...string) *live {
		return newLive(plan.Trial{Subject: "kube-apiserver", Placement: plan.PlacementCluster,
			Collectors: []plan.Collector{{Spec: &evidencecollectors.ContainerStatuses{Components: components}}}}, w, nil)
	}
	r, since := of("etcd", "kube-apiserver"), time.Date(2026, 3, 4, 10, 0, 0, 5e8, time.UTC)
	if got := r.reported("fixed", since); got || r.pending.describe([]string{"fixed"}) !=
		"fixed (the status of the container kube-apiserver is unknown: nobody has looked yet)" {
		t.Errorf("nobody has looked: the steady state may end: %t, it waits for %s", got, r.pending.describe([]string{"fixed"}))
	}
	if none := newLive(plan.Trial{Subject: "kube-apiserver", Placement: plan.PlacementCluster}, w, nil); !none.reported("fixed", since) ||
		!of("etcd").reported("fixed", since) {
		t.Error("it waits for a status that nobody records")
	}
	s, err := w.Stream(bundle.Meta{Kind: bundle.Statuses, Arm: "fixed", Node: "n"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	status := func(container, id, state, reason string, started time.Time) bundle.ContainerStatus {
		return bundle.ContainerStatus{Time: since.Add(9500 * time.Millisecond), Container: container, ID: id, State: state, Reason: reason, Started: started}
	}
	api := func(id, state, reason string, started time.Time) bundle.ContainerStatus {
		return status("kube-apiserver", id, state, reason, started)
	}
	for _, c := range []struct {
		name   string
		status bundle.ContainerStatus
		all    bool   // the look found all that is asked for
		want   string // what is lacking
	}{
		{"another container's", status("etcd", "e", "running", "", since), false, "none was reported yet"},
		{"the container before", api("a", "running", "", since.Add(-time.Minute)), true,
			"the one that was reported started at 09:59:00, before the restart at 10:00:00"},
		{"not there yet", api("", "waiting", "ContainerCreating", time.Time{}), true, "it was waiting at 10:00:10 (ContainerCreating)"},
		{"it has ended", api("b", "terminated", "", time.Time{}), true, "it was terminated at 10:00:10 (no reason)"},
		{"the new one, by whole seconds", api("c", "running", "", since.Truncate(time.Second)), true, ""},
		{"a supervisor tells no time", api("d", "running", "", time.Time{}), true, ""},
	} {
		if err := s.Append(c.status); err != nil {
			t.Fatal(err)
		}
		if c.all {
			s.Alive(c.status.Time)
		}
		if got := r.reported("fixed", since); got != (c.want == "") {
			t.Errorf("%s: the steady state may end: %t", c.name, got)
		}
		if got, want := r.pending.describe([]string{"fixed"}), "fixed (the status of the container kube-apiserver is unknown: "+c.want+")"; c.want != "" && got != want {
			t.Errorf("%s: it waits for %q, want %q", c.name, got, want)
		}
	}
	gone := api("b", "terminated", "Error", time.Time{})
	gone.Pod = "replaced"
	if err := s.Append(gone); err != nil {
		t.Fatal(err)
	}
	if !r.reported("fixed", since) {
		t.Error("the end of a pod that was replaced, told after the new one's start, hides the new one")
	}
	other, err := w.Stream(bundle.Meta{Kind: bundle.Statuses, Arm: "fixed", Node: "another"}, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	if r.reported("fixed", since) {
		t.Error("nothing was reported of its other node, and the steady state may end")
	}
	if err := other.Append(api("z", "running", "", since)); err != nil {
		t.Fatal(err)
	}
	if r.reported("fixed", since) {
		t.Error("no look at its other node found all, and the steady state may end")
	}
	other.Alive(since)
	if !r.reported("fixed", since) {
		t.Errorf("all is reported, and it waits for %s", r.pending.describe([]string{"fixed"}))
	}
}
