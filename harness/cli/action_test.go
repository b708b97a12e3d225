package cli

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

// needTool skips a test where a tool of others is missing. In CI its lack is a failure.
func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("there is no %s", name)
		}
		t.Skipf("there is no %s", name)
	}
}

func TestScriptsOfCIAreClean(t *testing.T) {
	needTool(t, "shellcheck")
	scripts, err := filepath.Glob("../../.ci/*")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	if out, err := exec.Command("shellcheck", scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// action.yml must use each of its inputs, no other, nobody's actions but GitHub's own, and steps that its script has.
func TestActionFitsItsScript(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Inputs  map[string]struct{ Description string }
		Outputs map[string]struct{ Value string }
		Runs    struct {
			Using string
			Steps []struct {
				ID, Uses, Run, Shell string
				Env                  map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`inputs\.([a-z0-9-]+)`).FindAllStringSubmatch(string(text), -1) {
		if _, ok := a.Inputs[m[1]]; !ok {
			t.Errorf("it uses the input %s, which it doesn't have", m[1])
		}
	}
	for name, in := range a.Inputs {
		if !strings.Contains(string(text), "inputs."+name) || in.Description == "" {
			t.Errorf("its input %s is not used, or not described", name)
		}
	}
	script, err := os.ReadFile("../../.ci/action")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, s := range a.Runs.Steps {
		if s.Uses != "" && !strings.HasPrefix(s.Uses, "actions/") {
			t.Errorf("it uses %s: want actions/* only", s.Uses)
		}
		step, ok := strings.CutPrefix(s.Run, `"$GITHUB_ACTION_PATH/.ci/action" `)
		if !ok {
			continue
		}
		if steps++; !strings.Contains(string(script), "\n"+step+"() {") || s.Shell != "bash" {
			t.Errorf("it runs the step %s in the shell %q: want one of .ci/action in bash", step, s.Shell)
		}
		for name := range s.Env {
			if !strings.Contains(string(script), "$"+name) && !strings.Contains(string(script), "${"+name) && name != "RELAPSE_CACHE" {
				t.Errorf("the step %s sets %s, which .ci/action doesn't read", step, name)
			}
		}
	}
	if steps != 4 || a.Runs.Using != "composite" {
		t.Errorf("it has %d steps of .ci/action and is %q, want 4 and composite", steps, a.Runs.Using)
	}
	for _, name := range []string{"verdict", "exit-code"} {
		if want := "${{ steps.run.outputs." + name + " }}"; a.Outputs[name].Value != want {
			t.Errorf("its output %s is %q, want %q", name, a.Outputs[name].Value, want)
		}
	}
}

// action runs steps of .ci/action with an environment of their own.
type action struct {
	t    *testing.T
	home string
	env  []string
}

func newAction(t *testing.T, env ...string) *action {
	t.Helper()
	needTool(t, "jq")
	needTool(t, "curl")
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "relapse")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return &action{t, home, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "RELAPSE_ROOT=" + repo, "HOME_DIR=" + home,
		"GITHUB_OUTPUT=" + filepath.Join(home, "outputs"), "GITHUB_STEP_SUMMARY=" + filepath.Join(home, "summary.md"),
		"SCENARIO=apiserver-goroutine-leak"}, env...)}
}

// step runs a step and returns its exit code and what it printed.
func (a *action) step(args ...string) (code int, out string) {
	a.t.Helper()
	cmd := exec.Command("../../.ci/action", args...)
	cmd.Env = a.env
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		a.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func (a *action) read(name string) string {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join(a.home, name))
	if err != nil {
		a.t.Fatal(err)
	}
	return string(b)
}

// install puts this test's program where the step get puts relapse: by that name it is relapse.
func (a *action) install() {
	a.t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(a.home, "relapse"))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// The program is taken only if it has the checksum that the release says, or the one that was given.
func TestActionGetsTheProgramByChecksum(t *testing.T) {
	name := fmt.Sprintf("relapse_v0.1.0_linux_%s.tar.gz", runtime.GOARCH)
	files := t.TempDir()
	sum := released(t, filepath.Join(files, name))
	sums := sum + "  " + name + "\n"
	for _, c := range []struct {
		name, sums, given, version string
		code                       int
		says                       string
	}{
		{"as the release says", sums, "", "v0.1.0", 0, "relapse "},
		{"as was given", "", sum, "v0.1.0", 0, "relapse "},
		{"another than the release says", strings.Repeat("0", 64) + "  " + name + "\n", "", "v0.1.0", 64, "has the SHA-256 " + sum + ", and 0000"},
		{"another than was given", sums, strings.Repeat("1", 64), "v0.1.0", 64, "has the SHA-256 " + sum + ", and 1111"},
		{"the release doesn't list it", "", "", "v0.1.0", 64, "and none was wanted"},
		{"no such release", sums, "", "v9.9.9", 64, "hint: the input version names a release of relapse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.StripPrefix("/v0.1.0/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "checksums.txt" {
					io.WriteString(w, c.sums)
					return
				}
				http.ServeFile(w, r, filepath.Join(files, filepath.Base(r.URL.Path)))
			})))
			defer server.Close()
			a := newAction(t, "VERSION="+c.version, "RELEASES="+server.URL, "SHA256="+c.given)
			code, out := a.step("get")
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.says, out)
			}
			if _, err := os.Stat(filepath.Join(a.home, "relapse")); (err == nil) != (c.code == 0) {
				t.Errorf("the program is there: %v, after exit %d", err == nil, code)
			}
		})
	}
}

// released writes an archive as a release has it, with this test's program as relapse, and returns its SHA-256.
func released(t *testing.T, file string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	z, err := gzip.NewWriterLevel(io.MultiWriter(out, h), gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	err = w.WriteHeader(&tar.Header{Name: "relapse", Mode: 0o755, Size: info.Size()})
	if err == nil {
		_, err = io.Copy(w, in)
	}
	if err := errors.Join(err, w.Close(), z.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// What relapse ends with becomes the outputs, the summary and the step's own exit code.
func TestActionTellsHowARunEnded(t *testing.T) {
	for _, c := range []struct {
		name             string
		env              []string
		code             int
		outputs, summary string
	}{
		{"an error", []string{"RELAPSE_CACHE=/dev/null/cache", "PROVIDER=processes"}, 4,
			"verdict=Error\nexit-code=4\nrun=\nname=none\n", "    error: opening cache /dev/null/cache"},
		{"wrong usage", []string{"CANDIDATE=bin:/nowhere"}, 64, "verdict=\nexit-code=64\nrun=\nname=none\n", "    error: candidate bin:/nowhere: "},
		{"flags that are passed on", []string{"TIME_LIMIT=soon", "PAIR=modern", "REPEAT=2"}, 64, "verdict=\nexit-code=64\n", `invalid argument "soon" for "--time-limit"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAction(t, c.env...)
			a.install()
			if code, out := a.step("run"); code != c.code {
				t.Errorf("exit %d, want %d: %s", code, c.code, out)
			}
			if got := a.read("outputs"); !strings.HasPrefix(got, c.outputs) {
				t.Errorf("the outputs are %q, want %q", got, c.outputs)
			}
			// What went wrong comes first. What was printed before is folded.
			want := fmt.Sprintf("## apiserver-goroutine-leak: no verdict (exit %d)\n\n    error: ", c.code)
			got := a.read("summary.md")
			first, rest, folded := strings.Cut(got, "\n\n<details><summary>The end of what relapse printed</summary>\n\n")
			if !strings.HasPrefix(got, want) || !strings.Contains(first, c.summary) || strings.Count(first, "\n    ") < 2 ||
				!folded || !strings.Contains(rest, c.summary) || !strings.HasSuffix(rest, "\n\n</details>\n") {
				t.Errorf("the summary is %q, want %q and %q in it, and again at the end of all that was printed", got, want, c.summary)
			}
		})
	}
}

// The key of the cache is that of relapse cache key, and the summary of a run its summary.md.
func TestActionReadsWhatRelapseWrites(t *testing.T) {
	a := newAction(t)
	a.install()
	if code, out := a.step("key"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if got := a.read("outputs"); !regexp.MustCompile(`^key=apiserver-goroutine-leak-[0-9a-f]+\n$`).MatchString(got) {
		t.Errorf("the key is %q", got)
	}
	run := judgedRun(t)
	want, err := os.ReadFile(filepath.Join(run, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	if code, got := a.step("summary", run, "3"); code != 0 || got != string(want) || !strings.Contains(got, "Inconclusive") {
		t.Errorf("exit %d, the summary is %q, want %q", code, got, want)
	}
	if code, out := a.step("nonesuch"); code != 64 || !strings.Contains(out, "error: there is no step nonesuch") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// judgedRun leaves a run with its verdict and its reports.
func judgedRun(t *testing.T) string {
	t.Helper()
	run := writeRun(t, "")
	cmd := newJudgeCmd()
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{run})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	_ = cmd.ExecuteContext(t.Context()) // it is Inconclusive, which is an exit code
	return run
}

// The summary becomes a comment, and replaces the comment of an earlier run of the same scenario.
func TestActionComments(t *testing.T) {
	var mu sync.Mutex // the script is another process, so nothing else orders the server's goroutines and this one
	var said []string
	comments := []map[string]any{{"id": 3, "body": "LGTM"}, {"id": 4, "body": "<!-- relapse: pleg-deadlock -->\nolder"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet {
			json.NewEncoder(w).Encode(comments)
			return
		}
		var body struct{ Body string }
		json.NewDecoder(r.Body).Decode(&body)
		said = append(said, r.Method+" "+r.URL.Path+" "+body.Body)
	}))
	defer server.Close()
	run := judgedRun(t)
	summary, err := os.ReadFile(filepath.Join(run, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := "<!-- relapse: apiserver-goroutine-leak -->\n" + string(summary)
	env := []string{"RUN=" + run, "NUMBER=7", "GITHUB_API_URL=" + server.URL, "GITHUB_REPOSITORY=o/r"}
	a := newAction(t, append(env, "TOKEN=secret")...)
	if code, out := a.step("comment"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	mu.Lock()
	comments = append(comments, map[string]any{"id": 5, "body": text})
	mu.Unlock()
	if code, out := a.step("comment"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	denied := newAction(t, append(env, "TOKEN=other")...)
	if code, out := denied.step("comment"); code == 0 || !strings.Contains(out, "hint: the job needs the permission pull-requests: write") {
		t.Errorf("exit %d: %s", code, out)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"POST /repos/o/r/issues/7/comments " + text, "PATCH /repos/o/r/issues/comments/5 " + text}
	if strings.Join(said, "\n") != strings.Join(want, "\n") {
		t.Errorf("it said %q, want %q", said, want)
	}
}
