package redact_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge/redact"
	"github.com/kube-relapse/relapse/harness/kinds"
)

// artifactKinds are the kinds of artifacts by the names of their constants, and those that a registered collector, load
// or fault makes beside them.
func artifactKinds(t *testing.T) map[bundle.Kind]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../evidence/bundle/bundle.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[bundle.Kind]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Kind" {
			return true
		}
		for _, v := range spec.Values {
			name, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[bundle.Kind(name)] = true
		}
		return true
	})
	if len(out) < 30 {
		t.Fatalf("bundle.go has %d kinds of artifacts: %v", len(out), out)
	}
	for _, category := range []string{kinds.Collector, kinds.Load, kinds.Fault} {
		for _, e := range kinds.Of(category) {
			if m, ok := e.New().(interface{ Makes() []bundle.Kind }); ok {
				for _, k := range m.Makes() {
					out[k] = true
				}
			}
		}
	}
	return out
}

// nameless are the kinds of artifacts without any text but words of the plan: process numbers, times and figures.
var nameless = map[bundle.Kind]bool{bundle.Identity: true, bundle.EndedProcess: true, bundle.Restart: true}

// The test of what is left plants names in every kind of artifact that there is, and they are in its files: each with a
// secret, too, which recording takes out.
func TestEveryKindOfArtifactIsPlanted(t *testing.T) {
	content := everyKind(t)
	all := artifactKinds(t)
	for kind := range content {
		if !all[kind] {
			t.Errorf("there is no kind %s", kind)
		}
	}
	run := runWith(t, &readsAll{})
	holds := found(t, run)
	for kind := range all {
		if content[kind] == "" {
			t.Errorf("nothing is planted in artifacts of the kind %s: see everyKind", kind)
			continue
		}
		files, err := filepath.Glob(filepath.Join(run, "trials", "001", "artifacts", "*-"+string(kind)+"-candidate*"))
		if err != nil || len(files) != 1 {
			t.Errorf("%s: %v, %v", kind, files, err)
			continue
		}
		names := 0 // in the file, beside those in what it is called
		for _, h := range holds {
			if strings.Contains(h, filepath.Base(files[0])+" holds ") {
				names++
			}
		}
		for _, s := range planted {
			if strings.Contains(strings.ToLower(files[0]), strings.ToLower(s)) {
				names--
			}
		}
		if (names == 0) != nameless[kind] {
			t.Errorf("%d of the planted names are in %s", names, filepath.Base(files[0]))
		}
	}
}

// Why a trial was lost is said in the words of a cluster or of its recorder.
func TestWhyATrialWasLostIsRedacted(t *testing.T) {
	const why = "its node evicted it: Pod was rejected: "
	run := runWith(t, &readsAll{}, bundle.LostTrial{ID: "002", Pair: "modern", Why: why + sentence})
	to := filepath.Join(t.TempDir(), "redacted")
	got, err := redact.Run(run, to, []string{company})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found(t, to) {
		t.Error(f)
	}
	lost := got.Verdict.Index.Lost
	if len(lost) != 1 || !strings.HasPrefix(lost[0].Why, why) || !strings.Contains(lost[0].Why, got.Table.Names()[object]) {
		t.Errorf("the copy says of its lost trials %+v", lost)
	}
	was, err := bundle.ReadIndex(run)
	if err != nil || strings.Contains(was.Lost[0].Why, jwt) || !strings.Contains(was.Lost[0].Why, object) {
		t.Errorf("the run's own index has a token, or lost its names: %+v, %v", was.Lost, err)
	}
}
