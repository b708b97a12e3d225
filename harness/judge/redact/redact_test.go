package redact_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/check/question"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/judge/redact"
	"github.com/kube-relapse/relapse/harness/kinds"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/scenario"
	_ "github.com/kube-relapse/relapse/scenarios"
)

func init() {
	kinds.Register(kinds.Check, kinds.Kind[check.Check]{Name: "testReadsAll", Doc: "Reads every artifact but one kind.",
		New: func() check.Check { return &readsAll{} }})
}

// readsAll is met if every artifact but those of the kind Leaves can be read, and the content of one has Text.
type readsAll struct {
	Leaves bundle.Kind `json:"leaves"`
	Text   string      `json:"text"`
}

func (*readsAll) Reads() []bundle.Kind { return nil }

func (c *readsAll) Eval(v bundle.View, s check.Scope) check.Finding {
	text := question.ExpandArm(c.Text, s.Arm)
	f := check.Finding{Met: check.False, Wanted: text, Seen: "nothing"}
	for _, a := range v.Artifacts(bundle.Query{}) {
		if a.Kind == c.Leaves || a.Error != "" {
			continue
		}
		r, err := v.Open(a)
		if err != nil {
			return check.Finding{Code: check.Unreadable, Seen: err.Error()}
		}
		b, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return check.Finding{Code: check.Unreadable, Seen: err.Error()}
		}
		if bytes.Contains(b, []byte(text)) {
			f.Met, f.Seen = check.True, a.Path
		}
	}
	return f
}

// The names and secrets that are planted. None may be left.
const (
	object  = "payments-db"
	space   = "acme-billing"
	machine = "build-7.corp.acme.example"
	person  = "alicia"
	mail    = "alicia.k@acme.example"
	address = "203.0.113.77"
	value   = "hunter2-of-the-environment"
	jwt     = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJlLW9mLWEtdG9rZW4"
	patch   = "/home/alicia/fixes/secret-fix.patch"
	company = "Acme"
)

var planted = []string{object, space, machine, person, mail, address, value, jwt, "secret-fix", "acme"}

// sentence is a line that has all of them but the value of the environment.
const sentence = `"Failed" pod="` + space + "/" + object + `-7f9c-x2x4z" node="` + machine + `" err="Get https://` + machine + "/api/v1/namespaces/" +
	space + ": dial " + address + ":443; asked by " + mail + " with " + jwt + " for /home/" + person + `/k8s"`

// everyKind are all kinds of artifacts, each with content that has the planted names in its form.
func everyKind(t *testing.T) map[bundle.Kind]string {
	t.Helper()
	line := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	type m = map[string]any
	pod := m{"kind": "Pod", "metadata": m{"name": object + "-7f9c-x2x4z", "namespace": space, "labels": m{"corp.acme.example/team": "acme-billing"},
		"annotations": m{"corp.acme.example/by": mail, "note": value}},
		"spec": m{"nodeName": machine, "containers": []any{m{"name": object, "image": "registry." + machine + "/" + object + ":v1", "args": []any{"--secret=" + value},
			"env": []any{m{"name": "WORD", "value": value}}}}}, "status": m{"hostIP": address}}
	stamped := line(m{"time": t0, "value": m{"err": sentence, "host": machine}})
	labels := m{"namespace": space, "pod": object, "node": machine}
	stack := "goroutine 1 [select]:\ngithub.com/acme/kubelet.(*Server).Run(0x1)\n\t/home/" + person + "/acme/kubelet/server.go:1 +0x1\n"
	out := map[bundle.Kind]string{
		bundle.Goroutines1:   "goroutine profile: total 1\n1 @ 0x1\n# labels: {\"pod\":\"" + object + "\"}\n#\t0x1\tgithub.com/acme/kubelet.Run+0x1\t/home/" + person + "/x.go:1\n",
		bundle.Goroutines2:   stack,
		bundle.Metrics:       "running_pods{namespace=\"" + space + "\",pod=\"" + object + "\",node=\"" + machine + "\"} 1\n",
		bundle.MetricSamples: line(m{"time": t0, "done": t0, "name": "running_pods", "labels": labels, "value": 1}),
		bundle.Journal: line(m{"__REALTIME_TIMESTAMP": "1795343479147544", "_HOSTNAME": machine, "_MACHINE_ID": object, "_CMDLINE": "kubelet --x=" + value,
			"_SYSTEMD_UNIT": "kubelet.service", "MESSAGE": "E0101 " + sentence}),
		bundle.Configz:      line(m{"kubeletconfig": m{"hostname": machine, "address": address}}),
		bundle.Nodes:        line(m{"time": t0, "node": machine, "status": "True", "message": sentence}),
		bundle.Events:       line(m{"time": t0, "value": m{"metadata": m{"name": object + ".18ea", "namespace": space}, "message": sentence}}),
		bundle.Identity:     line(m{"time": t0, "pid": 7, "startTicks": 99, "restarts": 0, "sha256": digest}),
		bundle.Containers:   line(m{"time": t0, "ran": []any{space + "/" + object + "-7f9c-x2x4z/main"}, "reportedAs": sentence}),
		bundle.Logs:         line(m{"time": t0, "file": space + "_" + object + "-7f9c-x2x4z_1/main/0.log", "text": "E0101 " + sentence}),
		bundle.Statuses:     line(m{"time": t0, "pod": object + "-7f9c-x2x4z", "container": object, "state": "running"}),
		bundle.Health:       line(m{"time": t0, "done": t0, "path": "/readyz", "code": 500, "text": sentence}),
		bundle.Audit:        line(m{"time": t0, "user": "system:serviceaccount:" + space + ":" + object, "path": "/api/v1/namespaces/" + space + "/pods/" + object, "namespace": space, "name": object}),
		bundle.Reviews:      line(m{"time": t0, "object": "lists-candidate/" + object, "error": sentence}),
		bundle.Calls:        line(m{"time": t0, "path": "/api/v1/namespaces/" + space + "/pods", "error": sentence}),
		bundle.EtcdAnswers:  line(m{"time": t0, "key": "/registry/pods/" + space + "/" + object, "error": sentence}),
		bundle.Objects:      line(m{"time": t0, "object": pod}),
		bundle.ObjectList:   "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + object + "\n  namespace: " + space + "\nspec:\n  nodeName: " + machine + "\n",
		bundle.SourceDiff:   "--- a/x.go\n+++ b/x.go\n+// " + sentence + "\n",
		bundle.SourceLocal:  "M " + patch + "\n",
		bundle.Heap:         profileOf(t),
		bundle.CPU:          profileOf(t),
		bundle.EndedProcess: line(m{"time": t0, "fault": "kill", "pid": 7}),
		bundle.Restart:      line(m{"time": t0, "readySeconds": 1, "limitSeconds": 60}),
	}
	for _, k := range []bundle.Kind{bundle.Interposer, bundle.Probe, bundle.EtcdProbe, bundle.LoadSummary, bundle.WorkProbe, bundle.Leases, bundle.Host} {
		out[k] = stamped
	}
	return out
}

// profileOf is a profile with planted names in its comments, its paths and its labels.
func profileOf(t *testing.T) string {
	t.Helper()
	f := &profile.Function{ID: 1, Name: "github.com/acme/kubelet.Run", SystemName: "github.com/acme/kubelet.Run", Filename: "/home/" + person + "/x.go"}
	m := &profile.Mapping{ID: 1, Start: 1, Limit: 9, File: "/home/" + person + "/bin/" + object}
	l := &profile.Location{ID: 1, Mapping: m, Address: 2, Line: []profile.Line{{Function: f, Line: 1}}}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		Sample:  []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{1, 2}, Label: map[string][]string{"pod": {object}}}},
		Mapping: []*profile.Mapping{m}, Location: []*profile.Location{l}, Function: []*profile.Function{f}, Comments: []string{sentence}}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const digest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// runWith leaves a run with one trial, which has every kind of artifact, and with those that were lost. It returns its
// folder.
func runWith(t *testing.T, c *readsAll, lost ...bundle.LostTrial) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(t.TempDir(), "run")
	arm := plan.Arm{Arm: scenario.Arm{Name: "candidate", Role: scenario.Candidate, Source: scenario.Source{Module: "k8s.io/kubernetes",
		Version: "v1.34.4", Patch: patch, Dir: "/home/" + person + "/k8s", Ref: "acme-main"}}, Node: "worker", Expected: "NotReproduced"}
	p := plan.Plan{Schema: plan.Schema, Scenario: "x", Trials: []plan.Trial{{ID: "001", Pair: "modern", Arms: []plan.Arm{arm},
		Steady: []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "reads", Kind: "testReadsAll"}, Spec: c}}}}}
	ofTrial, err := plan.Encode(&p)
	must(err)
	for _, l := range lost {
		more := p.Trials[0]
		more.ID = l.ID
		p.Trials = append(p.Trials, more)
	}
	raw, err := plan.Encode(&p)
	must(err)
	sum, err := plan.Sum(&p)
	must(err)
	trial := filepath.Join(run, "trials", "001")
	w, err := bundle.Create(trial)
	must(err)
	must(w.PutPlan(ofTrial))
	must(w.SetWorld(bundle.World{StartedAt: t0, Run: "r1", Plan: sum, Arms: []bundle.ArmWorld{{Arm: "candidate", Node: "worker", Digest: digest, Changes: []string{"patched with " + patch}}}}))
	w.Emit(event.Event{Time: t0, Type: event.Phase, Message: "steady"})
	w.Emit(event.Event{Time: t0.Add(time.Minute), Type: event.Note, Message: sentence, Fields: map[string]any{"err": sentence}})
	for kind, content := range everyKind(t) {
		ext := map[bool]string{true: "pb.gz", false: "txt"}[kind == bundle.Heap || kind == bundle.CPU]
		meta := bundle.Meta{Kind: kind, Arm: "candidate", Node: machine, Time: t0}
		if strings.HasPrefix(content, "{") {
			ext = map[bool]string{true: "jsonl.zst", false: "jsonl"}[kind == bundle.Objects]
			s, err := w.Stream(meta, ext)
			must(err)
			must(s.Line([]byte(content)))
			s.Gap(t0, t0, sentence)
			continue
		}
		_, err := w.Write(meta, ext, strings.NewReader(content))
		must(err)
	}
	w.Fail(bundle.Meta{Kind: bundle.Configz, Arm: "candidate", Time: t0}, errors.New(sentence))
	must(w.Seal())
	must(os.WriteFile(filepath.Join(run, bundle.PlanFile), raw, 0o644))
	manifest, err := bundle.ManifestSum(trial)
	must(err)
	x := bundle.Index{Run: "r1", Plan: sum, Complete: true, Lost: lost, Trials: []bundle.IndexedTrial{{ID: "001", Pair: "modern", Arms: map[string]string{"candidate": digest}, Manifest: manifest}}}
	must(x.Write(run))
	return run
}

// found returns where the planted names are in a folder: in the names of its files and in what these hold, unpacked.
func found(t *testing.T, dir string) (out []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		rel, _ := filepath.Rel(dir, path)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		var r io.Reader = f
		switch filepath.Ext(path) {
		case ".gz":
			r, err = gzip.NewReader(f)
		case ".zst":
			r, err = zstd.NewReader(f)
		}
		if err != nil {
			return err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		for _, s := range planted {
			if strings.Contains(strings.ToLower(rel+"\n"+string(b)), strings.ToLower(s)) {
				at := strings.Index(strings.ToLower(string(b)), strings.ToLower(s))
				out = append(out, fmt.Sprintf("%s holds %s: %.200q", rel, s, b[max(0, at-60):]))
			}
		}
		return nil
	})
	if err != nil || files < 4 {
		t.Fatalf("searched %d files: %v", files, err)
	}
	return out
}

func TestNothingPlantedIsLeft(t *testing.T) {
	run := runWith(t, &readsAll{Leaves: bundle.SourceLocal, Text: "running_pods"})
	if all := found(t, run); len(all) < len(everyKind(t)) {
		t.Fatalf("the test plants too little: %q", all)
	}
	to := filepath.Join(t.TempDir(), "redacted")
	got, err := redact.Run(run, to, []string{company})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found(t, to) {
		t.Error(f)
	}
	was, err := judge.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Verdict.Arms[0].Steady[0]; f.Met != check.True || was.Arms[0].Steady[0].Met != check.True {
		t.Errorf("the check over all artifacts is %s, and was %s: it should be met", f.Met, was.Arms[0].Steady[0].Met)
	}
	index, err := bundle.IndexSum(run)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(got.Verdict.Deviates, "\n")
	if r := got.Verdict.Index.Redacted; r == nil || r.From != index || !strings.Contains(said, "it is redacted: made by relapse ") || !strings.Contains(said, index) {
		t.Errorf("the index says it was made from %v, want %s; the verdict says %q", r, index, said)
	}
	out := strings.Join(append(got.TakenOut(), got.Left()...), "\n")
	for _, want := range []string{"1 files of source.local, ", "the text of 2 of 2 lines of logs, which no check asks for", "the names of functions and of source files, in 4 goroutine dumps"} {
		if !strings.Contains(out, want) {
			t.Errorf("it doesn't say %q:\n%s", want, out)
		}
	}
	if names := got.Table.Names(); names[object] == "" || names[address] == "" || names[value] == "" {
		t.Errorf("the table lacks names: %v", names)
	}
}

// A plan names the objects of each arm by $(arm).
func TestNamesThatAPlanGivesToArmsStay(t *testing.T) {
	got, err := redact.Run(runWith(t, &readsAll{Text: "lists-$(arm)/"}), filepath.Join(t.TempDir(), "redacted"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Verdict.Arms[0].Steady[0]; f.Met != check.True {
		t.Errorf("the check is %s: %s", f.Met, f.Seen)
	}
}

// The same name has the same stand-in in all files, and what begins with it keeps its rest.
func TestNamesAreMappedByOneTable(t *testing.T) {
	to := filepath.Join(t.TempDir(), "redacted")
	got, err := redact.Run(runWith(t, &readsAll{}), to, nil)
	if err != nil {
		t.Fatal(err)
	}
	is := got.Table.Names()[object]
	for _, kind := range []bundle.Kind{bundle.Events, bundle.Audit, bundle.ObjectList, bundle.Statuses, bundle.Metrics} {
		files, err := filepath.Glob(filepath.Join(to, "trials", "001", "artifacts", "*-"+string(kind)+"."+map[bool]string{true: "txt", false: "jsonl"}[kind == bundle.ObjectList || kind == bundle.Metrics]))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", kind, files, err)
		}
		b, err := os.ReadFile(files[0])
		if err != nil || !strings.Contains(string(b), is) {
			t.Errorf("%s lacks %s, which stands for %s: %v\n%s", kind, is, object, err, b)
		}
		if kind == bundle.Statuses && !strings.Contains(string(b), `"pod":"`+is+`-7f9c-x2x4z"`) {
			t.Errorf("a pod's name lost its rest: %s", b)
		}
	}
}

// A copy whose answers differ is refused: here a check asks for a field of the journal that has to go.
func TestWhatIsJudgedDifferentlyIsRefused(t *testing.T) {
	_, err := redact.Run(runWith(t, &readsAll{Text: "_CMDLINE"}), filepath.Join(t.TempDir(), "redacted"), nil)
	want := "what was redacted is judged differently: the check reads of arm candidate in trial 001 is not met, and was the check reads of arm candidate in trial 001 is met"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
