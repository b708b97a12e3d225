package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/ledger"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/trial"
)

const runName = "relapse-1a2b3c4d"

// farRun is a run of three trials, whose Job and registry are in memory.
func farRun(t *testing.T) (*Run, *fake.Clientset, *strings.Builder) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	p := &plan.Plan{Schema: plan.Schema, Scenario: "x"}
	for i := range 3 {
		p.Trials = append(p.Trials, plan.Trial{ID: fmt.Sprintf("%03d", i+1), Pair: "p"})
	}
	dir, err := trial.CreateRunDir(filepath.Join(t.TempDir(), "run"), runName, p)
	if err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	client := fake.NewClientset(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: runName, Namespace: "relapse", Labels: map[string]string{RunLabel: runName}}}, claim())
	return &Run{Name: runName, Plan: p, Dir: dir, Client: client, Events: event.NewStream(&event.Lines{W: said}),
		Job: ledger.Job{Namespace: "relapse", Registry: strings.TrimPrefix(server.URL, "http://") + "/team/relapse"}}, client, said
}

// claim names the volume for the bundles.
func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "bundles", Namespace: "relapse"}}
}

// ledgerOf is what is noted down of a run.
func ledgerOf(r *Run) ledger.Ledger {
	return ledger.Ledger{Run: runName, Dir: r.Dir.Path(), Job: &r.Job}
}

// push seals a bundle of a trial, as of a run, and pushes it. It returns the termination message of its recorder.
func push(t *testing.T, r *Run, id, run string) string {
	t.Helper()
	return pushed(t, r, id, run, false)
}

// pushed is push for a trial that may have been made again.
func pushed(t *testing.T, r *Run, id, run string, again bool) string {
	t.Helper()
	dir := sealedBundle(t, r, id, run)
	var err error
	report := Report{Trial: id, Verdict: "Validated"}
	if report.Manifest, err = bundle.ManifestSum(dir); err != nil {
		t.Fatal(err)
	}
	if report.Bundle, err = registryOf(r.Job).pushBundle(t.Context(), bundleTag(runName, id), dir, again); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// add puts a pod of the Job into the cluster.
func add(t *testing.T, client *fake.Clientset, index string, p *corev1.Pod) {
	t.Helper()
	p.Labels = map[string]string{RunLabel: runName}
	p.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: index}
	if _, err := client.CoreV1().Pods("relapse").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestFollowTakesEachBundleOnce(t *testing.T) {
	r, client, said := farRun(t)
	add(t, client, "0", pod("a", corev1.PodSucceeded, 0, push(t, r, "001", runName)))
	add(t, client, "1", pod("b", corev1.PodFailed, 1, `{"trial":"002","why":"the disk is full"}`))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- r.Follow(ctx) }()
	message := push(t, r, "003", runName)
	add(t, client, "2", pod("c", corev1.PodSucceeded, 0, message)) // while it follows
	add(t, client, "2", pod("cc", corev1.PodSucceeded, 0, message))
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	x, err := bundle.ReadIndex(r.Dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Trials) != 2 || x.Trials[0].ID != "001" || x.Trials[1].ID != "003" || x.Trials[0].Manifest == "" || x.Trials[0].Arms["fixed"] != "ff" {
		t.Errorf("the index lists the trials %+v", x.Trials)
	}
	want := bundle.LostTrial{ID: "002", Pair: "p", Why: "its recorder ended with exit code 1: the disk is full"}
	if len(x.Lost) != 1 || x.Lost[0] != want {
		t.Errorf("lost are %+v, want %+v", x.Lost, want)
	}
	for _, want := range []string{"trial 001: Validated, on worker; ", "trial 003: Validated, on worker; ", "; 3 of 3 are done",
		"pods by node, on which no verdict depends: worker "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("want %q in\n%s", want, said)
		}
	}
	if b, err := bundle.Open(r.Dir.Trial("003")); err != nil || b.World().Run != runName {
		t.Errorf("the bundle of trial 003: %v", err)
	}
}

// Who follows a run after a crash takes what is missing, and nothing twice.
func TestARunIsFollowedAgain(t *testing.T) {
	r, client, _ := farRun(t)
	message := push(t, r, "001", runName)
	if err := r.fetch(t.Context(), r.Plan.Trials[0], state{}); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"002", "003"} {
		add(t, client, fmt.Sprint(i+1), pod(id, corev1.PodSucceeded, 0, push(t, r, id, runName)))
	}
	add(t, client, "0", pod("a", corev1.PodSucceeded, 0, message))
	again, err := Open(ledgerOf(r), client, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if x, err := bundle.ReadIndex(r.Dir.Path()); err != nil || len(x.Trials) != 3 || len(x.Lost) != 0 {
		t.Errorf("the index has %+v, %v", x, err)
	}
}

func TestFetchTakesWhatTheRegistryHas(t *testing.T) {
	r, _, _ := farRun(t)
	push(t, r, "002", runName)
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 2 || !r.Dir.Has("002") {
		t.Errorf("%d are missing, %v; want 2, and trial 002 here", missing, err)
	}
}

// What was made again counts by the pod that is known to count, and by nothing else: the first pod may have been evicted
// for what the incident did.
func TestATrialThatWasMadeAgainCountsByItsPods(t *testing.T) {
	r, client, said := farRun(t)
	message := pushed(t, r, "001", runName, true)
	pushed(t, r, "002", runName, true)
	push(t, r, "003", runName)
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 2 || r.Dir.Has("001") || r.Dir.Has("002") {
		t.Errorf("%d are missing, %v; want 2, and trials 001 and 002 not here", missing, err)
	}
	if want := "relapse attach " + runName + " asks the cluster"; strings.Count(said.String(), want) != 2 {
		t.Errorf("want %q twice in\n%s", want, said)
	}
	add(t, client, "0", pod("a", corev1.PodSucceeded, 0, message))
	job, err := client.BatchV1().Jobs("relapse").Get(t.Context(), runName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job.Status.CompletedIndexes = "0-2"
	if _, err := client.BatchV1().Jobs("relapse").UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.Dir.Has("001") || r.Dir.Has("002") || !r.Dir.Lost("002") {
		t.Errorf("here is 001: %v, 002: %v; 002 is lost: %v", r.Dir.Has("001"), r.Dir.Has("002"), r.Dir.Lost("002"))
	}
}

func TestWhatFollowRefuses(t *testing.T) {
	t.Run("a bundle of another run", func(t *testing.T) {
		r, _, _ := farRun(t)
		push(t, r, "001", "relapse-ffffffff")
		_, err := r.Fetch(t.Context())
		if want := "the bundle is of trial 001 of the run relapse-ffffffff"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
	t.Run("another bundle than the recorder's", func(t *testing.T) {
		r, client, _ := farRun(t)
		push(t, r, "001", runName)
		add(t, client, "0", pod("a", corev1.PodSucceeded, 0, `{"bundle":"`+digestOf(t, r, "001")+`","manifest":"0123456789ab"}`))
		err := r.Follow(t.Context())
		if want := "and its recorder sealed 0123456789ab"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
	t.Run("a Job that is gone", func(t *testing.T) {
		r, client, _ := farRun(t)
		if err := client.BatchV1().Jobs("relapse").Delete(t.Context(), runName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var refused *ClusterError
		if err := r.Follow(t.Context()); !errors.As(err, &refused) || refused.Next != "relapse fetch "+runName+" takes the bundles that are kept elsewhere" {
			t.Errorf("got %v", err)
		}
	})
}

func digestOf(t *testing.T, r *Run, id string) string {
	t.Helper()
	var report Report
	if err := json.Unmarshal([]byte(push(t, r, id, runName)), &report); err != nil {
		t.Fatal(err)
	}
	return report.Bundle
}

func TestFollowSaysWhatKeepsPodsFromRunning(t *testing.T) {
	r, _, said := farRun(t)
	r.said = map[string]bool{}
	waits := pod("a", corev1.PodPending, 0, "")
	waits.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
	pulls := pod("b", corev1.PodPending, 0, "")
	pulls.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host"}}}}
	away := pod("d", corev1.PodRunning, 0, "")
	away.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
		Message: "Taint manager: deleting due to NoExecute taint"}}
	for range 2 {
		r.explain([]*corev1.Pod{waits, pulls, away, pod("c", corev1.PodFailed, 4, `{"why":"no port"}`)}, &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}})
	}
	for _, want := range []string{"a pod can't be placed yet: 0/3 nodes are available", "the image can't be pulled by worker (ImagePullBackOff): no such host",
		"the Job is suspended", "where that node is off for good, kubectl delete node worker ends it", "which begins again: its recorder ended with exit code 4: no port"} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("want once %q in\n%s", want, said)
		}
	}
}

func TestRemoveLeavesNothingOfTheRun(t *testing.T) {
	r, client, _ := farRun(t)
	push(t, r, "001", runName)
	push(t, r, "003", runName)
	for range 2 { // what is gone is no error
		if err := Remove(t.Context(), client, nil, ledgerOf(r)); err != nil {
			t.Fatal(err)
		}
	}
	if jobs, err := client.BatchV1().Jobs("relapse").List(t.Context(), metav1.ListOptions{}); err != nil || len(jobs.Items) > 0 {
		t.Errorf("the Jobs that are left are %v, %v", jobs, err)
	}
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 3 {
		t.Errorf("%d bundles are missing, %v; want 3", missing, err)
	}
}
