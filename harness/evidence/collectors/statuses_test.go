package collectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/kube-relapse/relapse/harness/cluster"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/evidence/capture"
	"github.com/kube-relapse/relapse/harness/evidence/collectors"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// pods is an API server that answers a list of kube-system's pods, in memory: it can live in a bubble of time.
type pods struct {
	cluster.Cluster
	list  func() ([]corev1.Pod, error)
	asked string
}

func (p *pods) RESTConfig() *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: p,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}}
}

func (p *pods) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = r.URL.RequestURI()
	items, err := p.list()
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: items})
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body: io.NopCloser(strings.NewReader(string(b))), Request: r}, err
}

// pod is a static pod of a node with one container.
func pod(name, on string, s corev1.ContainerStatus) corev1.Pod {
	s.Name = name
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + on}, Spec: corev1.PodSpec{NodeName: on},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}}
}

func runs(id string, restarts int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{ContainerID: "containerd://" + id, Ready: true, RestartCount: restarts,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

// statuses collects for 58.5 seconds of a bubble's time.
func statuses(t *testing.T, list func(since time.Duration) ([]corev1.Pod, error)) (*pods, bundle.Artifact, []bundle.ContainerStatus) {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := kinds.Decode[capture.Collector](kinds.Collector, "containerStatuses",
		json.RawMessage(`{"components":["etcd","kube-apiserver"]}`))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p := &pods{list: func() ([]corev1.Pod, error) { return list(time.Since(began)) }}
	// between two looks, so that its end is at none
	ctx, cancel := context.WithTimeout(t.Context(), 58500*time.Millisecond)
	defer cancel()
	if err := c.(capture.Streamer).Stream(ctx,
		capture.Target{Arm: "fixed", Cluster: p, Node: node{}, Component: &component{}}, w); err != nil {
		t.Fatal(err)
	}
	all := w.View().Artifacts(bundle.Query{})
	if len(all) != 1 {
		t.Fatalf("it left %d artifacts: %+v", len(all), all)
	}
	r, err := w.View().Open(all[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []bundle.ContainerStatus
	for d := json.NewDecoder(r); ; {
		var s bundle.ContainerStatus
		if err := d.Decode(&s); err == io.EOF {
			return p, all[0], out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
}

// An OOM kill: the API server is away for a while, and then says how its container ended.
func TestStatusesOfAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		etcd := pod("etcd", "worker", runs("e", 0))
		again := runs("b", 1)
		again.Ready = false
		again.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137,
			ContainerID: "containerd://a",
			FinishedAt:  metav1.NewTime(began.Add(20 * time.Second))}
		crashing := corev1.ContainerStatus{ContainerID: "containerd://b", RestartCount: 1,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: again.LastTerminationState}
		p, a, got := statuses(t, func(since time.Duration) ([]corev1.Pod, error) {
			elsewhere := pod("kube-apiserver", "another", runs("x", int32(since/time.Second)))
			other := pod("coredns", "worker", runs("y", int32(since/time.Second)))
			switch {
			case since < 20*time.Second:
				return []corev1.Pod{elsewhere, etcd, other, pod("kube-apiserver", "worker", runs("a", 0))}, nil
			case since < 35*time.Second:
				return nil, errors.New("connection refused")
			case since < 45*time.Second:
				return []corev1.Pod{elsewhere, etcd, other, pod("kube-apiserver", "worker", again)}, nil
			}
			return []corev1.Pod{elsewhere, etcd, other, pod("kube-apiserver", "worker", crashing)}, nil
		})
		last := bundle.ContainerStatus{Pod: "kube-apiserver-worker", Container: "kube-apiserver", ID: "containerd://b",
			RestartCount: 1,
			LastID:       "containerd://a", LastReason: "OOMKilled", LastExitCode: 137,
			LastFinished: began.Add(20 * time.Second)}
		running, waiting := last, last
		running.Time, running.State = began.Add(35*time.Second), "running"
		waiting.Time, waiting.State, waiting.Reason = began.Add(45*time.Second), "waiting", "CrashLoopBackOff"
		want := []bundle.ContainerStatus{
			{Time: began, Pod: "etcd-worker", Container: "etcd", ID: "containerd://e", State: "running", Ready: true},
			{Time: began, Pod: "kube-apiserver-worker", Container: "kube-apiserver", ID: "containerd://a", State: "running",
				Ready: true},
			running, waiting,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		gap := fmt.Sprintf("[{%s %s ", began.Add(19*time.Second), began.Add(35*time.Second))
		if said := fmt.Sprint(a.Coverage.Gaps); !strings.HasPrefix(said, gap) ||
			!strings.HasSuffix(said, "connection refused}]") {
			t.Errorf("the gaps are %s, want %s… connection refused}]", said, gap)
		}
		if !a.Coverage.First.Equal(began) || !a.Coverage.Last.Equal(began.Add(58*time.Second)) {
			t.Errorf("it covers %+v", a.Coverage)
		}
		if want := "/api/v1/namespaces/kube-system/pods?resourceVersion=0"; p.asked != want {
			t.Errorf("it asked for %s, want %s", p.asked, want)
		}
	})
}

// A look that lacks the status of one component is no look, though what it found of the others is kept.
func TestOnlyWholeLooksAtStatusesCover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		started := began.Add(-time.Minute)
		api := runs("a", 0)
		api.State.Running.StartedAt = metav1.NewTime(started)
		_, a, got := statuses(t, func(since time.Duration) ([]corev1.Pod, error) {
			etcd := pod("etcd", "worker", runs("e", int32(since/(4*time.Second)))) // its status changes at looks that lack the other one
			if since < 8*time.Second {
				return []corev1.Pod{etcd, {ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-worker"}, Spec: corev1.PodSpec{NodeName: "worker"}}}, nil
			}
			return []corev1.Pod{etcd, pod("kube-apiserver", "worker", api)}, nil
		})
		if first := a.Coverage.First; !first.Equal(began.Add(8 * time.Second)) {
			t.Errorf("it covers %s after it began and later, and the first look that found all was after 8s", first.Sub(began))
		}
		if len(got) < 3 || got[0].Container != "etcd" || !got[0].Time.Equal(began) || !got[1].Time.Equal(began.Add(4*time.Second)) {
			t.Errorf("what was found before is not kept: %+v", got)
		}
		for _, s := range got {
			if s.Container == "kube-apiserver" && !s.Started.Equal(started) {
				t.Errorf("it started at %s, want %s", s.Started, started)
			}
		}
	})
}

// A container that ended and one whose component is missing.
func TestStatusesThatLackSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		ended := corev1.ContainerStatus{ContainerID: "containerd://a",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}}
		_, a, got := statuses(t, func(time.Duration) ([]corev1.Pod, error) {
			return []corev1.Pod{pod("etcd", "worker", ended)}, nil
		})
		want := []bundle.ContainerStatus{{Time: began, Pod: "etcd-worker", Container: "etcd", ID: "containerd://a",
			State: "terminated", Reason: "Error", ExitCode: 1}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		gap := fmt.Sprintf("[{%s %s the API server has no status of kube-apiserver on worker}]", began,
			began.Add(58500*time.Millisecond))
		if said := fmt.Sprint(a.Coverage.Gaps); said != gap ||
			a.Coverage.Covers(began, began.Add(30*time.Second), time.Second) {
			t.Errorf("it covers %+v, want the gap %s", a.Coverage, gap)
		}
	})
	if err := (&collectors.ContainerStatuses{}).Validate(); err == nil ||
		err.Error() != "components is empty (want at least one)" {
		t.Errorf("got %v", err)
	}
}

// supervised is a cluster whose components say themselves how they are.
type supervised struct {
	cluster.Cluster
	all map[string]*reporter
}

func (s supervised) Components(name string) []cluster.Component {
	if r := s.all[name]; r != nil {
		return []cluster.Component{r}
	}
	return nil
}

type reporter struct {
	component
	status func() (cluster.Status, error)
}

func (r *reporter) Abilities() cluster.ComponentAbilities {
	return cluster.ComponentAbilities{Status: func(context.Context) (cluster.Status, error) { return r.status() }}
}

// Where there is no kubelet, components say how their processes ended.
func TestStatusesOfProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		etcd := &reporter{status: func() (cluster.Status, error) { return cluster.Status{ID: "etcd/0", Running: true}, nil }}
		api := &reporter{status: func() (cluster.Status, error) {
			switch since := time.Since(began); {
			case since < 20*time.Second:
				return cluster.Status{ID: "kube-apiserver/0", Running: true}, nil
			case since < 22*time.Second:
				return cluster.Status{ID: "kube-apiserver/0", LastID: "kube-apiserver/0", LastCode: 2, LastFinished: began.Add(19 * time.Second)}, nil
			case since < 40*time.Second:
				return cluster.Status{ID: "kube-apiserver/1", Running: true, Restarts: 1, LastID: "kube-apiserver/0", LastCode: 2, LastFinished: began.Add(19 * time.Second)}, nil
			}
			return cluster.Status{}, errors.New("nobody says")
		}}
		w, err := bundle.Create(filepath.Join(t.TempDir(), "001"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 58500*time.Millisecond)
		defer cancel()
		c := &collectors.ContainerStatuses{Components: []string{"etcd", "kube-apiserver"}}
		target := capture.Target{Arm: "fixed", Cluster: supervised{all: map[string]*reporter{"etcd": etcd, "kube-apiserver": api}}, Node: node{}, Component: api}
		if err := c.Stream(ctx, target, w); err != nil {
			t.Fatal(err)
		}
		a := w.View().Artifacts(bundle.Query{})[0]
		got := readLines[bundle.ContainerStatus](t, w, a)
		of := func(after time.Duration, s bundle.ContainerStatus) bundle.ContainerStatus {
			s.Time, s.Pod, s.Container = began.Add(after), "kube-apiserver-worker", "kube-apiserver"
			if s.LastID != "" {
				s.LastReason, s.LastExitCode, s.LastFinished = "Error", 2, began.Add(19*time.Second)
			}
			return s
		}
		want := []bundle.ContainerStatus{
			{Time: began, Pod: "etcd-worker", Container: "etcd", ID: "etcd/0", State: "running", Ready: true},
			of(0, bundle.ContainerStatus{ID: "kube-apiserver/0", State: "running", Ready: true}),
			of(20*time.Second, bundle.ContainerStatus{ID: "kube-apiserver/0", State: "waiting", LastID: "kube-apiserver/0"}),
			of(22*time.Second, bundle.ContainerStatus{ID: "kube-apiserver/1", State: "running", Ready: true, RestartCount: 1, LastID: "kube-apiserver/0"}),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if said := fmt.Sprint(a.Coverage.Gaps); !strings.Contains(said, "nobody says") {
			t.Errorf("the gaps are %s, want one from when nobody says", said)
		}
	})
}

// readLines decodes a stream that has ended.
func readLines[T any](t *testing.T, w *bundle.Writer, a bundle.Artifact) (out []T) {
	t.Helper()
	r, err := w.View().Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for d := json.NewDecoder(r); d.More(); {
		var one T
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
	return out
}
