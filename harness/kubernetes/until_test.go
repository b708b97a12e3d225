package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-relapse/relapse/harness"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/harness/trial"
)

// untilRun is an open-ended run, which ends as undecided after two trials without evidence of anything.
func untilRun(t *testing.T) (*Run, *fake.Clientset, *strings.Builder) {
	t.Helper()
	r, client, said := farRun(t)
	r.Plan.Until = &plan.Until{Rule: "below-target", Confidence: 0.6, Target: 0.5, Max: 3}
	r.Plan.Trials = []plan.Trial{{ID: "001", Pair: "p", Arms: []plan.Arm{
		{Arm: scenario.Arm{Name: "vulnerable", Role: scenario.Vulnerable}}, {Arm: scenario.Arm{Name: "fixed", Role: scenario.Fixed}}}}}
	var err error
	if r.Dir, err = trial.CreateRunDir(filepath.Join(t.TempDir(), "run"), runName, r.Plan); err != nil {
		t.Fatal(err)
	}
	return r, client, said
}

// overBy seals a bundle of a trial without evidence, pushes it and returns its recorder's message.
func overBy(t *testing.T, r *Run, index int) string {
	t.Helper()
	one, err := trialAt(r.Plan, index)
	if err != nil {
		t.Fatal(err)
	}
	own := *r.Plan
	own.Trials = []plan.Trial{one}
	raw, err := plan.Encode(&own)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := plan.Sum(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), one.ID)
	w, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.PutPlan(raw), w.SetWorld(bundle.World{Run: runName, Plan: sum, Scenario: r.Plan.Digest}), w.Seal()); err != nil {
		t.Fatal(err)
	}
	digest, err := registryOf(r.Job).pushBundle(t.Context(), bundleTag(runName, one.ID), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"trial":%q,"verdict":"Inconclusive","bundle":%q}`, one.ID, digest)
}

// A trial that ends early must not count more: the rule sees none before those with a lower index.
func TestTheRuleSeesTrialsInTheOrderOfTheirIndices(t *testing.T) {
	r, client, said := untilRun(t)
	for i := 1; i < 3; i++ {
		add(t, client, fmt.Sprint(i), pod(fmt.Sprintf("done-%d", i), corev1.PodSucceeded, 0, overBy(t, r, i)))
	}
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 1 || r.Dir.Has("002") || r.Dir.Has("003") {
		t.Fatalf("%d are missing, %v; want that trial 001 is waited for, and nothing taken before", missing, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- r.Follow(ctx) }()
	add(t, client, "0", pod("done-0", corev1.PodSucceeded, 0, overBy(t, r, 0)))
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if !r.Dir.Has("001") || !r.Dir.Has("002") || r.Dir.Has("003") {
		t.Errorf("here are 001: %v, 002: %v, 003: %v; want the first two, after which the rule had ended it", r.Dir.Has("001"), r.Dir.Has("002"), r.Dir.Has("003"))
	}
	if _, err := client.BatchV1().Jobs("relapse").Get(t.Context(), runName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job goes on: %v", err)
	}
	again, err := Open(ledgerOf(r), client, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Follow(ctx); err != nil {
		t.Errorf("followed again, without its Job: %v", err)
	}
	v, err := harness.Conclude(harness.Options{}, r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if v.ExitCode != 3 || len(v.Trials) != 2 || v.Until == nil {
		t.Errorf("%s of %d trials: %s", v.LastLine(), len(v.Trials), v.Sentence)
	}
	const beyond = "trial 003 was Inconclusive, and is left out: the rule had ended the run before it"
	if !strings.Contains(strings.Join(v.Deviates, "\n"), beyond) || !strings.Contains(said.String(), beyond) {
		t.Errorf("neither the verdict nor its progress may pass over trial 003: %q", v.Deviates)
	}
}

// An incident may destroy what would have shown it.
func TestALostTrialEndsAnOpenEndedRun(t *testing.T) {
	r, client, _ := untilRun(t)
	add(t, client, "0", pod("done-0", corev1.PodSucceeded, 0, overBy(t, r, 0)))
	add(t, client, "1", pod("lost", corev1.PodFailed, 1, `{"why":"the disk is full"}`))
	add(t, client, "2", pod("done-2", corev1.PodSucceeded, 0, overBy(t, r, 2)))
	if err := r.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	v, err := harness.Conclude(harness.Options{}, r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "trial 002 left no evidence, so a rate below 50 % can't be shown any more"
	if v.ExitCode != 3 || len(v.Trials) != 1 || !strings.Contains(v.Sentence, want) {
		t.Errorf("%s of %d trials: %s; want %q", v.LastLine(), len(v.Trials), v.Sentence, want)
	}
}

// Who fetches without asking the cluster is told that the Job may go on.
func TestAFetchedRunThatItsRuleHasEnded(t *testing.T) {
	r, client, said := untilRun(t)
	const says = "its Job may go on: relapse attach " + runName
	overBy(t, r, 0)
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 1 || strings.Contains(said.String(), says) {
		t.Fatalf("%d are missing, %v; before the rule has ended it, it says\n%s", missing, err, said)
	}
	overBy(t, r, 1)
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 0 || strings.Count(said.String(), says) != 1 {
		t.Fatalf("%d are missing, %v; want %q in\n%s", missing, err, says, said)
	}
	if len(client.Actions()) > 0 {
		t.Errorf("the cluster was asked: %v", client.Actions())
	}
}
