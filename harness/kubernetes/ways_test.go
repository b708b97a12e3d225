package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
)

// nodes stand for the disks of a cluster: each pod's own files are in a folder with its name, and the volume is in one
// that all pods share. Commands run in them as they would run in the pods.
type nodes struct {
	dir   string
	limit int // bytes that a command's output is cut off after, without an error; 0 for no limit
}

func (n nodes) held(pod string) string { return filepath.Join(n.dir, pod) }
func (n nodes) volume() string         { return filepath.Join(n.dir, "volume") }

func (n nodes) exec(ctx context.Context, _, pod string, command []string, out io.Writer) error {
	var args []string
	for _, a := range command {
		args = append(args, strings.NewReplacer(heldDir, n.held(pod), storageDir, n.volume()).Replace(a))
	}
	var all, said bytes.Buffer
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdout, c.Stderr = &all, &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	raw := all.Bytes()
	if n.limit > 0 && len(raw) > n.limit {
		raw = raw[:n.limit]
	}
	_, err := out.Write(raw)
	return err
}

// way is one by which bundles come.
type way struct {
	name string
	set  func(r *Run)
	// deliver does a recorder's part, in a pod, and returns its report.
	deliver func(t *testing.T, r *Run, n nodes, pod, id, from string, again bool) Report
}

var ways = []way{
	{"the registry", func(*Run) {}, func(t *testing.T, r *Run, _ nodes, _, id, from string, again bool) Report {
		return delivered(t, Recorder{Run: runName, Registry: registryOf(r.Job), Again: again}, id, from)
	}},
	{"a volume", func(r *Run) { r.Job.Storage = "bundles" }, func(t *testing.T, _ *Run, n nodes, _, id, from string, again bool) Report {
		return delivered(t, Recorder{Run: runName, Folder: filepath.Join(n.volume(), runName), Again: again}, id, from)
	}},
	{"pods/exec", func(r *Run) { r.Job.Held = true }, func(t *testing.T, _ *Run, n nodes, pod, id, from string, again bool) Report {
		report := Report{Trial: id, Again: again}
		if err := keep(n.held(pod), from, &report); err != nil {
			t.Fatal(err)
		}
		return report
	}},
}

func delivered(t *testing.T, recorder Recorder, id, from string) Report {
	t.Helper()
	report := Report{Trial: id, Again: recorder.Again}
	if err := recorder.deliver(t.Context(), from, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// sealedBundle seals a bundle of a trial, as of a run, with two artifacts.
func sealedBundle(t *testing.T, r *Run, id, run string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), id)
	w, err := bundle.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := plan.Sum(r.Plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"trial":"` + id + `"}`, `{"long":"` + strings.Repeat("incident ", 9000) + `"}`} {
		if _, err := w.Write(bundle.Meta{Kind: bundle.Configz}, "json", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SetWorld(bundle.World{Run: run, Plan: sum, Arms: []bundle.ArmWorld{{Arm: "fixed", Digest: "ff"}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// contents returns the bytes of all files below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, at))
		out[at] = string(raw)
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files in %s, %v", len(out), dir, err)
	}
	return out
}

// runBy returns a run whose bundles come by a way, and the disks of its cluster. Pods that are created run at once.
func runBy(t *testing.T, w way) (*Run, *fake.Clientset, nodes) {
	t.Helper()
	r, client, _ := farRun(t)
	n := nodes{dir: t.TempDir()}
	w.set(r)
	r.Exec, r.Job.Image = n.exec, "registry.test/relapse@sha256:aa"
	made := 0
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		if p.Name == "" {
			made++
			p.Name, p.Status.Phase = fmt.Sprintf("%s%d", p.GenerateName, made), corev1.PodRunning
		}
		return false, nil, nil
	})
	return r, client, n
}

// done puts a pod into the cluster whose trial is done by a way.
func done(t *testing.T, client *fake.Clientset, r *Run, index, name, message string) {
	t.Helper()
	p := pod(name, corev1.PodSucceeded, 0, message)
	if r.Job.Held {
		p = waiting(name)
	}
	add(t, client, index, p)
}

// waiting is a pod that has its bundle until it is fetched.
func waiting(name string) *corev1.Pod {
	p := pod(name, corev1.PodRunning, 0, "")
	p.Spec.Containers = []corev1.Container{{Name: recorderName, ReadinessProbe: &corev1.Probe{}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

func TestBundlesHaveTheSameBytesByEachWay(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			r, client, n := runBy(t, w)
			want := map[string]map[string]string{}
			for i, id := range []string{"001", "002", "003"} {
				from, name := sealedBundle(t, r, id, runName), "pod-"+id
				want[id] = contents(t, from)
				report := w.deliver(t, r, n, name, id, from, false)
				if report.Bundle == "" {
					t.Fatalf("the recorder reports %+v", report)
				}
				done(t, client, r, fmt.Sprint(i), name, fmt.Sprintf(`{"trial":%q,"verdict":"Validated","bundle":%q}`, id, report.Bundle))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := r.Follow(ctx); err != nil {
				t.Fatal(err)
			}
			for id, files := range want {
				if diff := cmp.Diff(files, contents(t, r.Dir.Trial(id))); diff != "" {
					t.Errorf("trial %s came here as another one (-sealed +here):\n%s", id, diff)
				}
				if _, err := os.Stat(filepath.Join(n.held("pod-"+id), "fetched")); r.Job.Held && err != nil {
					t.Errorf("the pod of trial %s was not told that its bundle was fetched: %v", id, err)
				}
			}
			left, err := client.CoreV1().Pods("relapse").List(t.Context(), metav1.ListOptions{LabelSelector: readerLabel})
			if err != nil || len(left.Items) > 0 {
				t.Errorf("%d pods that read the volume are left, %v", len(left.Items), err)
			}
		})
	}
}

func TestFetchByEachWay(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			r, client, n := runBy(t, w)
			w.deliver(t, r, n, "b", "002", sealedBundle(t, r, "002", runName), false)
			if r.Job.Held {
				add(t, client, "1", waiting("b"))
			}
			if missing, err := r.Fetch(t.Context()); err != nil || missing != 2 || !r.Dir.Has("002") {
				t.Errorf("%d are missing, %v; want 2, and trial 002 here", missing, err)
			}
		})
	}
}

// Where nothing but a name leads to a bundle, one of a trial that was made again is left to who can ask its pods.
func TestABundleOfATrialMadeAgainIsNotTakenByItsName(t *testing.T) {
	for _, w := range ways[:2] {
		t.Run(w.name, func(t *testing.T) {
			r, _, n := runBy(t, w)
			w.deliver(t, r, n, "b", "002", sealedBundle(t, r, "002", runName), true)
			if missing, err := r.Fetch(t.Context()); err != nil || missing != 3 || r.Dir.Has("002") {
				t.Errorf("%d are missing, %v; want 3", missing, err)
			}
		})
	}
}

// A copy that is cut short, or an archive that lacks a file, is no bundle, whatever its manifest says of the rest.
func TestAPartialCopyIsNoBundle(t *testing.T) {
	for _, w := range ways[1:] {
		t.Run(w.name, func(t *testing.T) {
			r, _, n := runBy(t, w)
			from := sealedBundle(t, r, "001", runName)
			report := w.deliver(t, r, n, "a", "001", from, false)
			s := state{done: true, bundle: report.Bundle, pod: "a"}
			archive := filepath.Join(n.volume(), runName, archiveName("001", report.Bundle))
			if r.Job.Held {
				archive = filepath.Join(n.held("a"), archiveName("001", report.Bundle))
			}
			whole, err := os.ReadFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			cutOff := func(limit int) { r.Exec, r.volume = nodes{dir: n.dir, limit: limit}.exec, nil }
			for _, limit := range []int{1, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
				cutOff(limit)
				if err := r.fetch(t.Context(), r.Plan.Trials[0], s); err == nil || r.Dir.Has("001") {
					t.Errorf("%d of %d bytes were taken for a bundle, %v", limit, len(whole), err)
				}
			}
			cutOff(0)
			files, err := filepath.Glob(filepath.Join(from, "*", "*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("the bundle has no artifacts: %v", err)
			}
			if err := os.Remove(files[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := bundle.Open(from); err != nil {
				t.Fatalf("a manifest alone tells that a file is missing, and this test is about nothing: %v", err)
			}
			other := Report{Trial: "001"}
			elsewhere := t.TempDir()
			if err := keep(elsewhere, from, &other); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(elsewhere, archiveName("001", other.Bundle)), archive); err != nil {
				t.Fatal(err)
			}
			err = r.fetch(t.Context(), r.Plan.Trials[0], s)
			if want := "it is cut short or damaged: it has the digest " + other.Bundle; err == nil || !strings.Contains(err.Error(), want) || r.Dir.Has("001") {
				t.Errorf("an archive without one file: %v, want %q", err, want)
			}
			if err := os.WriteFile(archive, whole, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := r.fetch(t.Context(), r.Plan.Trials[0], s); err != nil || !r.Dir.Has("001") {
				t.Errorf("the whole archive: %v", err)
			}
		})
	}
}

// Without the report, which comes last, there is no bundle.
func TestABundleBeginsWithItsReport(t *testing.T) {
	r, _, n := runBy(t, ways[1])
	report := ways[1].deliver(t, r, n, "a", "001", sealedBundle(t, r, "001", runName), false)
	if err := os.Remove(filepath.Join(n.volume(), runName, report.Trial+".json")); err != nil {
		t.Fatal(err)
	}
	if missing, err := r.Fetch(t.Context()); err != nil || missing != 3 {
		t.Errorf("%d are missing, %v; want 3", missing, err)
	}
}

func TestARecorderWaitsToBeFetched(t *testing.T) {
	r, _, _ := runBy(t, ways[2])
	folder, from := t.TempDir(), sealedBundle(t, r, "001", runName)
	waits := Recorder{Run: runName, Folder: folder, Hold: time.Hour}
	over := make(chan error, 1)
	go func() { over <- waits.deliver(t.Context(), from, &Report{Trial: "001"}) }()
	if err := os.WriteFile(filepath.Join(folder, "fetched"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	waits.Folder, waits.Hold = t.TempDir(), time.Millisecond
	err := waits.deliver(t.Context(), from, &Report{Trial: "001"})
	if want := "the trial left no complete bundle: nobody fetched the bundle within 1ms"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A bundle that somebody else fetched from its pod is lost here, and no doing of the incident.
func TestAHeldBundleThatIsGone(t *testing.T) {
	ended := pod("a", corev1.PodSucceeded, 0, `{"bundle":"sha256:aa"}`)
	ended.Spec = waiting("a").Spec
	job := &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: ended.Spec}}, Status: batchv1.JobStatus{CompletedIndexes: "0"}}
	want := state{lost: "its bundle was fetched by another process, and isn't here", outside: true}
	if got := stateOf(0, []*corev1.Pod{ended}, &batchv1.Job{}); got != want {
		t.Errorf("its pod has ended: %+v, want %+v", got, want)
	}
	if got := stateOf(0, nil, job); got != want {
		t.Errorf("its pod is gone: %+v, want %+v", got, want)
	}
	notYet := waiting("a")
	notYet.Status.Conditions[0].Status = corev1.ConditionFalse
	if got := stateOf(0, []*corev1.Pod{notYet}, &batchv1.Job{}); got != (state{}) {
		t.Errorf("before it is complete: %+v", got)
	}
}

func TestRemoveLeavesNothingOnTheVolume(t *testing.T) {
	r, client, n := runBy(t, ways[1])
	ways[1].deliver(t, r, n, "a", "001", sealedBundle(t, r, "001", runName), false)
	other := filepath.Join(n.volume(), "relapse-ffffffff")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	killed, err := reader(runName, r.Job) // the pod of a process that was killed
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("relapse").Create(t.Context(), killed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), client, r.Exec, ledgerOf(r)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(n.volume(), runName)); !os.IsNotExist(err) {
		t.Errorf("the run's folder: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another run's folder: %v", err)
	}
	if pods, err := client.CoreV1().Pods("relapse").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods are left, %v", len(pods.Items), err)
	}
}

// Without its claim, a volume is out of reach, and what the run has elsewhere goes all the same.
func TestRemoveWithoutTheClaim(t *testing.T) {
	for _, goes := range []bool{false, true} { // the claim is gone, or about to be
		r, client, n := runBy(t, ways[1])
		ways[1].deliver(t, r, n, "a", "001", sealedBundle(t, r, "001", runName), false)
		claims := client.CoreV1().PersistentVolumeClaims("relapse")
		if err := claims.Delete(t.Context(), "bundles", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if goes {
			c := claim()
			c.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			if _, err := claims.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := Remove(t.Context(), client, r.Exec, ledgerOf(r)); err != nil {
			t.Fatal(err)
		}
		for _, a := range client.Actions() {
			if a.GetVerb() == "create" && a.GetResource().Resource == "pods" {
				t.Error("a pod was made that can never have the volume")
			}
		}
		if _, err := client.BatchV1().Jobs("relapse").Get(t.Context(), runName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Job is left: %v", err)
		}
	}
}
