package artifacts_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/artifacts"
	"github.com/kube-relapse/relapse/harness/build/release"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/plan/candidate"
	"github.com/kube-relapse/relapse/harness/scenario"
	"github.com/kube-relapse/relapse/internal/sums"
)

// publishing serves programs that say they are kube-apiservers of these versions, as files. asked has the paths that
// somebody asked for.
func publishing(t *testing.T, versions ...string) (from *release.Publisher, digests map[string]string, asked *[]string) {
	t.Helper()
	files, dir := map[string][]byte{}, t.TempDir()
	digests, asked = map[string]string{}, &[]string{}
	for _, v := range versions {
		at := filepath.Join(dir, v)
		main := filepath.Join(at, "cmd/kube-apiserver/main.go")
		must(t, os.MkdirAll(filepath.Dir(main), 0o755))
		must(t, os.WriteFile(filepath.Join(at, "go.mod"), []byte("module example.org/kubernetes\n\ngo 1.24\n"), 0o644))
		must(t, os.WriteFile(main, []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"Kubernetes "+v+"\\n\") }\n"), 0o644))
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "program", "./cmd/kube-apiserver")
		cmd.Dir, cmd.Env = at, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		raw, err := os.ReadFile(filepath.Join(at, "program"))
		must(t, err)
		sum := sha256.Sum256(raw)
		digests[v] = hex.EncodeToString(sum[:])
		path := "/release/" + v + "/bin/linux/" + runtime.GOARCH + "/kube-apiserver"
		files[path], files[path+".sha256"] = raw, []byte(digests[v])
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		if raw, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(raw)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	from, err := release.New(release.Options{Mirror: server.URL})
	must(t, err)
	return from, digests, asked
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// apiservers is a plan of a kube-apiserver of each version, the first of them vulnerable.
func apiservers(vulnerable, fixed string) *plan.Plan {
	arm := func(name, role, version string) plan.Arm {
		return plan.Arm{Arm: scenario.Arm{Name: name, Role: role, Source: scenario.Source{Module: "k8s.io/kubernetes", Version: version,
			Package: "k8s.io/kubernetes/cmd/kube-apiserver"}}}
	}
	return &plan.Plan{Trials: []plan.Trial{{Pair: "genuine", Subject: "kube-apiserver",
		Arms: []plan.Arm{arm("vulnerable", scenario.Vulnerable, vulnerable), arm("fixed", scenario.Fixed, fixed)}}}}
}

// One decision holds for all arms: arms that come by different ways would differ in more than the fix.
func TestAllArmsArePublishedOrAllAreBuilt(t *testing.T) {
	const old, cured, other = "v1.33.1", "v1.33.2", "v1.33.3"
	from, digests, asked := publishing(t, old, cured)
	decide := func(t *testing.T, p *plan.Plan, from *release.Publisher) error {
		t.Helper()
		*asked = nil
		a, err := artifacts.Open(artifacts.Options{CacheDir: t.TempDir(), Publisher: from})
		must(t, err)
		defer func() { must(t, a.Close()) }()
		return a.Decide(t.Context(), p)
	}
	// shows fails the test if the arms' published programs, "" for those that are built, or the sentence are others.
	shows := func(t *testing.T, p *plan.Plan, sentence string, want ...string) {
		t.Helper()
		for i, a := range p.Trials[0].Arms {
			has := ""
			if a.Source.Release != nil {
				has = a.Source.Release.SHA256
			}
			if has != want[i] {
				t.Errorf("arm %s has the published program %q, want %q", a.Name, has, want[i])
			}
		}
		if p.Programs == nil || !strings.Contains(p.Programs.String(), sentence) {
			t.Errorf("it is said that %v, want %q", p.Programs, sentence)
		}
	}
	mutated := func() *plan.Plan {
		p := apiservers(cured, cured)
		p.Trials[0].Arms[0].Source.Mutations = []scenario.Mutation{{Kind: "unguard"}}
		return p
	}

	t.Run("all are published", func(t *testing.T) {
		p := apiservers(old, cured)
		must(t, decide(t, p, from))
		shows(t, p, "programs are taken as published: all of them can be had", digests[old], digests[cured])
		if len(p.Trials[0].Deviates) != 0 {
			t.Errorf("the trial deviates: %v", p.Trials[0].Deviates)
		}
	})
	t.Run("one is not", func(t *testing.T) {
		p := apiservers(old, other)
		must(t, decide(t, p, from))
		shows(t, p, "programs are built here: kube-apiserver v1.33.3 for linux/"+runtime.GOARCH+" can't be had as published", "", "")
	})
	t.Run("one has a mutation", func(t *testing.T) {
		p := mutated()
		must(t, decide(t, p, from))
		shows(t, p, "programs are built here: arm vulnerable has a mutation", "", "")
		if len(*asked) > 0 {
			t.Errorf("the mirror was asked for %v", *asked)
		}
	})
	t.Run("one has a mutation, and published programs are insisted on", func(t *testing.T) {
		p := mutated()
		p.Programs = &plan.Programs{From: plan.Published, Why: "--release asks for it"}
		must(t, decide(t, p, from))
		shows(t, p, "--release asks for it", "", digests[cured])
		if said := p.Trials[0].Deviates.Texts(); len(said) != 1 || !strings.Contains(said[0], "they differ in compiler and flags, too") {
			t.Errorf("the trial deviates: %q", said)
		}
	})
	t.Run("all are executables that are given", func(t *testing.T) {
		p := apiservers(old, cured)
		for i := range p.Trials[0].Arms {
			p.Trials[0].Arms[i].Source = scenario.Source{Binary: "kube-apiserver"}
		}
		must(t, decide(t, p, from))
		if p.Programs != nil || len(*asked) > 0 {
			t.Errorf("it was decided that %v, and the mirror was asked for %v", p.Programs, *asked)
		}
		p.Programs = &plan.Programs{From: plan.Published, Why: "--release asks for it"}
		if err := decide(t, p, from); err == nil || !strings.Contains(err.Error(), "no program of this run is published: all are executables that are given") {
			t.Errorf("published programs are insisted on: %v", err)
		}
	})
	t.Run("source is insisted on", func(t *testing.T) {
		p := apiservers(old, cured)
		p.Programs = &plan.Programs{From: plan.Built, Why: "--build asks for it"}
		must(t, decide(t, p, from))
		shows(t, p, "programs are built here: --build asks for it", "", "")
		if len(*asked) > 0 {
			t.Errorf("the mirror was asked for %v", *asked)
		}
	})
	t.Run("a run that goes on keeps to the programs of its plan", func(t *testing.T) {
		p := apiservers(old, cured)
		must(t, decide(t, p, from))
		must(t, decide(t, p, from))
		shows(t, p, "all of them can be had", digests[old], digests[cured])
		p.Trials[0].Arms[1].Source.Release.SHA256 = digests[old]
		if err := decide(t, p, from); err == nil || !strings.Contains(err.Error(), "has SHA-256 "+digests[cured]+", and the plan's had "+digests[old]) {
			t.Errorf("another program than the plan's: %v", err)
		}
		if err := decide(t, p, nil); err == nil || !strings.Contains(err.Error(), "nobody was named who publishes it") {
			t.Errorf("nobody to ask: %v", err)
		}
	})
	t.Run("a candidate that isn't published is refused", func(t *testing.T) {
		p := apiservers(old, cured)
		p.Trials[0].Arms[1].Role, p.Trials[0].Arms[1].Source.Version = scenario.Candidate, other
		p.Trials[0].Arms[1].Source.Release = &scenario.Release{}
		var refused *candidate.Error
		if err := decide(t, p, from); !errors.As(err, &refused) || refused.Given != "release:"+other || !strings.Contains(refused.Hint, "--mirror URL") {
			t.Errorf("%v, with the hint of %+v", err, refused)
		}
	})
}

// What clusters are made of comes by the arms' way. What can't be had so is built, and that is told apart.
func TestPartsOfClustersArePublishedWhereTheArmsAre(t *testing.T) {
	const module, old, cured = "k8s.io/kubernetes", "v1.33.1", "v1.33.2"
	from, digests, _ := publishing(t, old, cured)
	part := func(a *artifacts.Artifacts, version string) (map[string]string, error) {
		return a.BuildPrograms(t.Context(), module, version, module+"/cmd/kube-apiserver")
	}
	open := func(p *plan.Plan) *artifacts.Artifacts {
		a, err := artifacts.Open(artifacts.Options{CacheDir: t.TempDir(), Publisher: from})
		must(t, err)
		t.Cleanup(func() { must(t, a.Close()) })
		must(t, a.Decide(t.Context(), p))
		return a
	}
	a := open(apiservers(old, cured))
	got, err := part(a, cured)
	must(t, err)
	if sum, err := sums.File(got["kube-apiserver"]); err != nil || sum != digests[cured] {
		t.Errorf("the part is %v with SHA-256 %s, %v; want %s", got, sum, err, digests[cured])
	}
	if said := a.Parts(); said != "as published" {
		t.Errorf("the parts are said to come %q", said)
	}

	t.Setenv("GOPROXY", "off") // so that who builds one of these fails
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	if _, err := part(a, "v1.33.9"); err == nil || !strings.Contains(err.Error(), "k8s.io/kubernetes@v1.33.9") {
		t.Errorf("what isn't published is built: %v", err)
	}
	mutated := apiservers(cured, cured)
	mutated.Trials[0].Arms[0].Source.Mutations = []scenario.Mutation{{Kind: "unguard"}}
	a = open(mutated)
	if _, err := part(a, cured); err == nil || !strings.Contains(err.Error(), "k8s.io/kubernetes@v1.33.2") {
		t.Errorf("beside arms that are built here it is built: %v", err)
	}
	if said := a.Parts(); said != "" {
		t.Errorf("parts that nobody got are said to come %q", said)
	}
}
