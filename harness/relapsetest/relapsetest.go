// Package relapsetest runs a scenario as a Go test. The test passes if the judged build is validated:
//
//	func TestNoGoroutineLeak(t *testing.T) {
//		relapsetest.Run(t, "apiserver-goroutine-leak", relapsetest.Candidate("src:../.."))
//	}
//
// A run takes longer than the ten minutes that go test allows: give it -timeout 90m. What it needs of the host is what
// `relapse run` needs.
package relapsetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/cli"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/verdict"
)

// A cluster of plain processes is supervised by the program that made it, started once more. Of a test, that is the
// test's program, which must not run its tests then.
func init() {
	if cli.Supervises(os.Args) {
		os.Exit(cli.Main())
	}
}

// Result is how a run ended. Dir is the folder with its evidence, "" if it came to none.
type Result struct {
	Verdict  verdict.Verdict
	ExitCode int
	Dir      string
}

// Option changes how a scenario is run.
type Option func(*options)

type options struct {
	args []string
	runs string
	want verdict.Verdict
}

// Candidate judges a build of your own, in one of the forms of `relapse run --candidate`: src:DIR, bin:PATH,
// patch:FILE@VERSION and so on. Without it the scenario's own fixed arm is judged.
func Candidate(form string) Option { return with("--candidate", form) }

// Provider names what makes the clusters: kind or processes. Without it, the scenario's first that works here is taken.
func Provider(name string) Option { return with("--provider", name) }

// Pair names the pair of arms to run. Without it the scenario's default pair is run.
func Pair(name string) Option { return with("--pair", name) }

// Repeat runs that many trials of each pair.
func Repeat(trials int) Option { return with("--repeat", strconv.Itoa(trials)) }

// Set changes a parameter of the scenario, or a field by its path.
func Set(name, value string) Option { return with("--set", name+"="+value) }

// Scenarios adds a folder of scenarios of your own.
func Scenarios(folder string) Option { return with("--scenarios", folder) }

// Runs names the folder that gets the evidence. Without it that is runs, in the folder of the test's package.
func Runs(folder string) Option { return func(o *options) { o.runs = folder } }

// Want has the test pass by another verdict than Validated, for example StillVulnerable for a build that lacks the fix.
func Want(v verdict.Verdict) Option { return func(o *options) { o.want = v } }

func with(args ...string) Option { return func(o *options) { o.args = append(o.args, args...) } }

// cleanUp is the time that a run has to remove what it made, before go test ends the test's program.
const cleanUp = 2 * time.Minute

// Run runs a scenario and ends the test unless the verdict is as wanted. The test's output has the progress, the verdict
// and the folder with the evidence.
func Run(t testing.TB, scenario string, opts ...Option) Result {
	t.Helper()
	o := options{runs: "runs", want: verdict.Validated}
	for _, opt := range opts {
		opt(&o)
	}
	args := append([]string{"run", scenario, "--progress", "plain", "--runs", o.runs}, o.args...)
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, limited := d.Deadline(); limited {
			left := time.Until(end) - cleanUp
			if left <= 0 {
				t.Fatalf("%s: there is no time left for a run: go test -timeout 90m", scenario)
			}
			args = append(args, "--time-limit", left.Round(time.Second).String())
		}
	}
	var said bytes.Buffer
	out := io.MultiWriter(t.Output(), &said)
	r := Result{ExitCode: cli.Run(t.Context(), args, out, out)}
	r.Verdict, r.Dir = ended(said.String())
	if r.Dir != "" {
		t.Logf("evidence: %s", r.Dir)
	}
	if r.Verdict != o.want {
		t.Fatalf(
			"%s: %s (exit %d), want %s%s",
			scenario,
			r.named(),
			r.ExitCode,
			o.want,
			why(r.Dir, said.String()),
		)
	}
	return r
}

// named returns the verdict in a word. Wrong usage has none.
func (r Result) named() string {
	if r.Verdict == "" {
		return "no verdict"
	}
	return string(r.Verdict)
}

var (
	lastLine = regexp.MustCompile(`(?m)^relapse: ([A-Za-z]+) \(exit \d+\)$`)
	evidence = regexp.MustCompile(`(?m)^evidence: (.+)$`)
	problem  = regexp.MustCompile(`(?m)^(?:error|hint): .+$`)
)

// ended returns the verdict that a run printed, and the absolute path of its evidence.
func ended(said string) (v verdict.Verdict, dir string) {
	if m := lastLine.FindAllStringSubmatch(said, -1); len(m) > 0 {
		v = verdict.Verdict(m[len(m)-1][1])
	}
	if m := evidence.FindAllStringSubmatch(said, -1); len(m) > 0 {
		dir = m[len(m)-1][1]
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
	}
	return v, dir
}

// why returns a run's summary, or what it printed of its problems if it came to no verdict.
func why(dir, said string) string {
	if _, err := os.Stat(filepath.Join(dir, judge.VerdictFile)); dir != "" && err == nil {
		if summary, err := os.ReadFile(filepath.Join(dir, report.SummaryFile)); err == nil {
			return "\n" + string(summary)
		}
	}
	lines := problem.FindAllString(said, -1)
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s", strings.Join(lines, "\n"))
}
