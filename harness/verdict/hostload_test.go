package verdict

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
)

// bundled is a bundle with a fault phase from second 100 to 200 and a recovery up to 300.
func bundled(t *testing.T, fill func(*bundle.Writer)) bundle.View {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	for i, phase := range []string{check.Steady, check.Fault, check.Recovery, bundle.EndPhase} {
		w.Emit(event.Event{Type: event.Phase, Time: second(100 * i), Message: phase})
	}
	fill(w)
	return w.View()
}

// record writes a stream.
func record[T any](t *testing.T, w *bundle.Writer, m bundle.Meta, all ...T) {
	t.Helper()
	m.Time = began
	st, err := w.Stream(m, "jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if err := st.JSON(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHostLoad(t *testing.T) {
	host := func(set func(at int, s *bundle.HostSample)) func(*testing.T, *bundle.Writer) {
		return func(t *testing.T, w *bundle.Writer) {
			var all []bundle.HostSample
			for at := 0; at <= 300; at += 5 {
				s := bundle.HostSample{Time: second(at), Cores: 2, Running: 3, AllSeconds: 2 * float64(at)}
				set(at, &s)
				all = append(all, s)
			}
			record(t, w, bundle.Meta{Kind: bundle.Host, Arm: bundle.Shared}, all...)
		}
	}
	for _, c := range []struct {
		name string
		fill func(*testing.T, *bundle.Writer)
		want string
	}{
		{"a quiet host", host(func(int, *bundle.HostSample) {}), ""},
		{"nobody looked", func(*testing.T, *bundle.Writer) {}, ""},
		{"pressure in the fault phase", host(func(at int, s *bundle.HostSample) {
			if s.Pressure = map[string]float64{"cpu.some": 5}; at >= 120 && at < 150 {
				s.Pressure["cpu.some"] = 60 + float64(at)/10
			}
		}), "the host was overloaded: CPU pressure up to 74 % for 30s of the fault's 1m40s"},
		{"one moment of it", host(func(at int, s *bundle.HostSample) {
			if at == 120 {
				s.Pressure = map[string]float64{"cpu.some": 99}
			}
		}), ""},
		{"only before the fault", host(func(at int, s *bundle.HostSample) {
			if at < 100 {
				s.Running = 50
			}
		}), ""},
		{"a run queue in the recovery, on a kernel that tells no pressure", host(func(at int, s *bundle.HostSample) {
			if at > 200 && at <= 250 {
				s.Running = 25
			}
		}), "the host was overloaded: 25 runnable tasks on 2 cores for 50s of the recovery's 1m40s"},
		{"eight tasks on two cores are not too many", host(func(_ int, s *bundle.HostSample) { s.Running = 8 }), ""},
		{"a hypervisor that gives half to others", host(func(at int, s *bundle.HostSample) { s.StealSeconds = float64(at) }),
			"the host was overloaded: steal up to 50 % for 1m40s of the fault's 1m40s; steal up to 50 % for 1m40s of the recovery's 1m40s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := bundled(t, func(w *bundle.Writer) { c.fill(t, w) })
			trial := plan.Trial{Arms: []plan.Arm{{Arm: scenario.Arm{Name: "vulnerable"}}, {Arm: scenario.Arm{Name: "fixed"}}}}
			if got := hostLoad(v, trial); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			for verdict, named := range map[Verdict]bool{Validated: false, StillVulnerable: false, VerdictInconclusive: true, VerdictBroken: true} {
				if said := len(hostNotes(v, trial, verdict)) > 0; said != (named && c.want != "") {
					t.Errorf("beside %s it is said: %t", verdict, said)
				}
			}
		})
	}
}

func TestCauseOfEnd(t *testing.T) {
	status := func(s bundle.ContainerStatus) func(*testing.T, *bundle.Writer) {
		return func(t *testing.T, w *bundle.Writer) {
			s.Pod, s.Container = "agent-0", "agent"
			other := bundle.ContainerStatus{Time: second(151), Pod: "sidecar-0", Container: "sidecar", State: "running", LastReason: "OOMKilled", LastFinished: second(150)}
			record(t, w, bundle.Meta{Kind: bundle.Statuses, Arm: "candidate", Component: "agent"}, other, s)
		}
	}
	says := func(reason, pod, message string, at int) func(*testing.T, *bundle.Writer) {
		return func(t *testing.T, w *bundle.Writer) {
			status(bundle.ContainerStatus{Time: second(1), State: "running"})(t, w)
			record(t, w, bundle.Meta{Kind: bundle.Events, Arm: bundle.Shared}, bundle.Stamped[*corev1.Event]{Time: second(at),
				Value: &corev1.Event{Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Name: pod}}})
		}
	}
	for _, c := range []struct {
		name string
		fill func(*testing.T, *bundle.Writer)
		want string
	}{
		{"nobody knows", func(*testing.T, *bundle.Writer) {}, ""},
		{"a kill for memory", status(bundle.ContainerStatus{Time: second(152), State: "running", LastReason: "OOMKilled", LastExitCode: 137, LastFinished: second(149)}),
			"its container ended with OOMKilled, exit code 137"},
		{"it has just ended", status(bundle.ContainerStatus{Time: second(151), State: "terminated", Reason: "Error", ExitCode: 2}), "its container ended with Error, exit code 2"},
		{"an end long before", status(bundle.ContainerStatus{Time: second(152), State: "running", LastReason: "Error", LastExitCode: 1, LastFinished: second(20)}), ""},
		{"a liveness probe", says("Unhealthy", "agent-0", "Liveness probe failed: context deadline exceeded", 130), "the kubelet said: Liveness probe failed: context deadline exceeded"},
		{"another pod's probe", says("Unhealthy", "agent-1", "Liveness probe failed", 130), ""},
		{"a readiness probe ends nothing", says("Unhealthy", "agent-0", "Readiness probe failed", 130), ""},
		{"the kubelet kills it", says("Killing", "agent-0", "Container agent failed liveness probe, will be restarted", 149),
			"the kubelet said: Container agent failed liveness probe, will be restarted"},
		{"the host has no memory", says("SystemOOM", "worker", "System OOM encountered, victim process: agent, pid: 7", 149),
			"the kernel of worker ran out of memory: System OOM encountered, victim process: agent, pid: 7"},
		{"a panic", func(t *testing.T, w *bundle.Writer) {
			record(t, w, bundle.Meta{Kind: bundle.Logs, Arm: "candidate", Component: "agent"},
				bundle.LogLine{Time: second(149), File: "ns_agent-0_1/agent/0.log", Text: "panic: assignment to entry in nil map"},
				bundle.LogLine{Time: second(149), File: "ns_agent-0_1/agent/0.log", Text: "\t/src/main.go:12 +0x1d"},
				bundle.LogLine{Time: second(155), File: "ns_agent-0_1/agent/1.log", Text: "starting again"})
		}, "its log said: panic: assignment to entry in nil map"},
		{"a unit", func(t *testing.T, w *bundle.Writer) {
			record(t, w, bundle.Meta{Kind: bundle.Journal, Arm: "candidate", Component: "kubelet"}, map[string]string{
				"__REALTIME_TIMESTAMP": micros(149), "SYSLOG_IDENTIFIER": "systemd", "MESSAGE": "kubelet.service: A process of this unit has been killed by the OOM killer."})
		}, "systemd said: kubelet.service: A process of this unit has been killed by the OOM killer."},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := bundled(t, func(w *bundle.Writer) { c.fill(t, w) })
			if got := causeOfEnd(v, "candidate", second(150)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := causeOfEnd(v, "fixed", second(150)); got != "" && !strings.Contains(got, "the kernel of") {
				t.Errorf("of the other arm it says %q", got)
			}
		})
	}
}

// The sentence of an arm that restarted names the cause.
func TestTheCauseIsNamed(t *testing.T) {
	v := bundled(t, func(w *bundle.Writer) {
		record(t, w, bundle.Meta{Kind: bundle.Identity, Arm: "candidate", Component: "agent"},
			bundle.IdentitySample{Time: second(10), PID: 7, StartTicks: 70}, bundle.IdentitySample{Time: second(150), PID: 8, StartTicks: 80})
		record(t, w, bundle.Meta{Kind: bundle.Statuses, Arm: "candidate", Component: "agent"},
			bundle.ContainerStatus{Time: second(151), Pod: "agent-0", Container: "agent", State: "running", LastReason: "OOMKilled", LastExitCode: 137, LastFinished: second(149)})
	})
	arms := []Arm{{Name: "candidate", Outcome: Broken, Reason: "the subject exited or restarted unasked",
		Identity: []check.Finding{{Name: CheckProcess, Met: check.False, Seen: "process 7, then process 8"}}}}
	nameCauses(v, arms)
	const want = "its container ended with OOMKilled, exit code 137"
	if a := arms[0]; a.Reason != "the subject exited or restarted unasked; "+want || a.Identity[0].Seen != "process 7, then process 8; "+want {
		t.Errorf("the arm is %+v", a)
	}
}

// The cause is asked of an end that no fault brought about, if there is one.
func TestWhichEndNeedsACause(t *testing.T) {
	look := func(at, pid int) bundle.IdentitySample {
		return bundle.IdentitySample{Time: second(at), PID: pid, StartTicks: int64(pid)}
	}
	for _, c := range []struct {
		name  string
		looks []bundle.IdentitySample
		want  int
	}{
		{"ended by a fault, and then of itself", []bundle.IdentitySample{look(10, 7), look(100, 0), look(110, 8), look(150, 9)}, 150},
		{"ended by a fault, and gone later", []bundle.IdentitySample{look(10, 7), look(110, 8), look(150, 0)}, 150},
		{"ended by a fault for good", []bundle.IdentitySample{look(10, 7), look(100, 0), look(110, 0)}, 100},
		{"ended of itself", []bundle.IdentitySample{look(10, 6), look(20, 8)}, 20},
	} {
		v := bundled(t, func(w *bundle.Writer) {
			record(t, w, bundle.Meta{Kind: bundle.Identity, Arm: "candidate", Component: "agent"}, c.looks...)
			if _, err := w.WriteJSON(bundle.Meta{Kind: bundle.EndedProcess, Arm: "candidate", Component: "agent"},
				bundle.EndedByFault{Time: second(99), PID: 7, StartTicks: 7}); err != nil {
				t.Fatal(err)
			}
		})
		if got := firstEnd(v, "candidate"); !got.Equal(second(c.want)) {
			t.Errorf("%s: at %s, want %s", c.name, got, second(c.want))
		}
	}
}

// micros is a second as the journal has it.
func micros(s int) string { return strconv.FormatInt(second(s).UnixMicro(), 10) }
