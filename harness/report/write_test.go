package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
)

func judgeAndWrite(t *testing.T, run string) (judge.Verdict, map[string]string) {
	t.Helper()
	v, err := judge.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	must(t, report.Write(run, v))
	must(t, judge.Write(run, v))
	out := map[string]string{}
	for _, name := range []string{judge.VerdictFile, report.JUnitFile, report.ReportFile} {
		b, err := os.ReadFile(filepath.Join(run, name))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(b)
	}
	return v, out
}

func TestSameBytesAgainAndElsewhere(t *testing.T) {
	run := newTrial().write(t)
	_, first := judgeAndWrite(t, run)
	_, again := judgeAndWrite(t, run)
	moved := filepath.Join(t.TempDir(), "copied", "by", "hand")
	if err := os.CopyFS(moved, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	_, elsewhere := judgeAndWrite(t, moved)
	if !maps.Equal(first, again) || !maps.Equal(first, elsewhere) {
		t.Errorf("first:\n%s\nagain:\n%s\nelsewhere:\n%s", first, again, elsewhere)
	}
}

func TestVerdictFileHasItsFields(t *testing.T) {
	_, files := judgeAndWrite(t, newTrial().write(t))
	var v map[string]any
	if err := json.Unmarshal([]byte(files[judge.VerdictFile]), &v); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":       "arms bug deviates digests exitCode index judge modelled pairs rates scenario schema seconds seed startedAt timings tried verdict versions",
		"arms":   "baseline expected exposure healed identity name outcome pair reason role signature steady trial",
		"checks": "detail differs evidence met name seen wanted",
	} {
		m := v
		if path != "" {
			m = v["arms"].([]any)[0].(map[string]any)
		}
		if path == "checks" {
			m = m["signature"].([]any)[0].(map[string]any)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(m)), " "); got != want {
			t.Errorf("fields of %q: %s, want %s", path, got, want)
		}
	}
	if v["seed"] != 42.0 || v["startedAt"] != "2026-03-04T05:06:07Z" || v["scenario"] != "x" {
		t.Errorf("seed %v, startedAt %v, scenario %v", v["seed"], v["startedAt"], v["scenario"])
	}
}

func TestJUnitHasACaseForEachArmAndTheVerdict(t *testing.T) {
	tr := newTrial()
	tr.fixed.after = "goroutine 9 [chan send]\x1b[0m \x00"
	_, files := judgeAndWrite(t, tr.write(t))
	var got junit.Testsuites
	if err := xml.Unmarshal([]byte(files[report.JUnitFile]), &got); err != nil {
		t.Fatal(err)
	}
	var cases []string
	for _, c := range got.Suites[0].Testcases {
		line := c.Name + " passed"
		if c.Failure != nil {
			line = c.Name + " failed: " + c.Failure.Type
		}
		cases = append(cases, line)
	}
	want := []string{"001/modern/vulnerable passed", "001/modern/fixed failed: Reproduced", "verdict failed: StillVulnerable"}
	if !slices.Equal(cases, want) || got.Failures != 2 || got.Tests != 3 {
		t.Errorf("%q with %d failures of %d, want %q", cases, got.Failures, got.Tests, want)
	}
}

func TestTextSaysWhy(t *testing.T) {
	v, files := judgeAndWrite(t, newTrial().write(t))
	var out bytes.Buffer
	if err := report.Text(&out, v, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"vulnerable  vulnerable  Reproduced     Reproduced     met       met     clean     met       met        unknown",
		"vulnerable is Reproduced: the signature is met under proven exposure.\n  met  is blocked  goroutine 9 [chan send]\n" +
			"  met  slow        slow\n    goroutine 9 [chan send]\n",
		"fixed is NotReproduced: the signature is not met under proven exposure, and the subject is well.\n" +
			"  met  slow     slow\n  met  is well  well\n",
		"modelled: containers are only reported\n",
		"Validated: fixed did not show the incident under the fault that reproduced it in vulnerable.\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, out.String())
		}
	}
	for _, want := range []string{"# x: Validated", "| signature | is blocked | met | goroutine 9 [chan send] |", "| 40s | phase |  | fault |", "constant capacity = 1000", "| fixed | " + digestF + " |"} {
		if !strings.Contains(files[report.ReportFile], want) {
			t.Errorf("report.md lacks %q:\n%s", want, files[report.ReportFile])
		}
	}
	if got := v.LastLine(); got != "relapse: Validated (exit 0)" {
		t.Errorf("last line %q", got)
	}
}

func TestLatest(t *testing.T) {
	runs := t.TempDir()
	for _, name := range []string{"a", "b"} {
		run := filepath.Join(runs, name)
		newTrial().writeTo(t, run)
		if err := judge.Latest(run); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Readlink(filepath.Join(runs, "latest")); err != nil || got != name {
			t.Errorf("latest is %q, %v", got, err)
		}
	}
	if v, err := judge.Run(filepath.Join(runs, "latest")); err != nil || v.Verdict != "Validated" {
		t.Errorf("through the link: %s, %v", v.Verdict, err)
	}
	if err := os.Remove(filepath.Join(runs, "latest")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(runs, "latest"), "mine")
	if err := judge.Latest(filepath.Join(runs, "a")); err == nil || !strings.Contains(err.Error(), "it exists and is no link") {
		t.Errorf("over a file: %v", err)
	}
}
