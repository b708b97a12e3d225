package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runReport runs the command, and returns what it printed and its exit code.
func runReport(t *testing.T, args ...string) (string, int, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newReportCmd()
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	var e *exitError
	if errors.As(err, &e) {
		return out.String(), e.code, err
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), 0, nil
}

// folder has two runs, one of them damaged, a link to the other, and something else.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a-good", "b-damaged"} {
		if err := os.Rename(writeRun(t, ""), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "b-damaged", "trials", "001", "extra"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a-good", filepath.Join(dir, "latest")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReportOfOneRun(t *testing.T) {
	run := writeRun(t, "")
	out, code, err := runReport(t, run)
	if code != 0 || !strings.Contains(out, "report.html: Inconclusive\n") {
		t.Errorf("%q, exit %d, %v", out, code, err)
	}
	first, err := os.ReadFile(filepath.Join(run, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(run, "report.html")); err != nil {
		t.Fatal(err)
	}
	runReport(t, run)
	if again, err := os.ReadFile(filepath.Join(run, "report.html")); err != nil || !bytes.Equal(first, again) {
		t.Errorf("built again it has %d bytes, not %d: %v", len(again), len(first), err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(run), "index.html")); err == nil {
		t.Error("there is an index over one run")
	}
}

// A folder of runs has an index, in which a run is there once although a link leads to it, too; and a damaged one
// doesn't hide the others.
func TestReportOfAFolder(t *testing.T) {
	dir := folder(t)
	out, code, err := runReport(t, dir)
	if code != 4 || err == nil || !strings.Contains(err.Error(), "extra is not listed in manifest.json") {
		t.Errorf("exit %d, %v", code, err)
	}
	if strings.Count(out, "report.html: ") != 1 || !strings.Contains(out, "index.html\n") {
		t.Errorf("it says %q", out)
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="./a-good/report.html"`, "1 run of 1 scenario", "<code>b-damaged</code>: judging b-damaged"} {
		if !strings.Contains(string(index), want) {
			t.Errorf("the index lacks %q:\n%s", want, index)
		}
	}
	if strings.Contains(string(index), dir) || strings.Contains(string(index), "latest/") {
		t.Errorf("the index names %s, or a link:\n%s", dir, index)
	}
	if _, err := os.Stat(filepath.Join(dir, "b-damaged", "report.html")); err == nil {
		t.Error("a damaged run has a report")
	}
}

func TestReportWhereAskedTo(t *testing.T) {
	dir, site := folder(t), filepath.Join(t.TempDir(), "public")
	if out, code, err := runReport(t, filepath.Join(dir, "a-good"), "--index", site); code != 0 || !strings.Contains(out, "public/index.html\n") {
		t.Errorf("%q, exit %d, %v", out, code, err)
	}
	if _, err := os.Stat(filepath.Join(site, "index.html")); err != nil {
		t.Error(err)
	}
}

func TestReportRefuses(t *testing.T) {
	run := writeRun(t, "")
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "report takes at least one directory"},
		{[]string{filepath.Join(run, "trials", "001")}, "it is a single trial, and a bundle is never changed"},
		{[]string{t.TempDir()}, "it is no run and has none"},
		{[]string{filepath.Join(t.TempDir(), "nowhere")}, "there is no such folder"},
	} {
		if _, code, err := runReport(t, c.args...); code != exitUsage || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: exit %d, %v, want %q", c.args, code, err, c.want)
		}
	}
}

// A table of runs is printed, and nothing is written.
func TestReportAsATable(t *testing.T) {
	dir := folder(t)
	out, code, err := runReport(t, dir, "-o", "markdown")
	if code != 4 || err == nil || !strings.Contains(err.Error(), "extra is not listed in manifest.json") {
		t.Errorf("exit %d, %v", code, err)
	}
	for _, want := range []string{"| run | scenario | versions | candidate | verdict | incident shown | bundles |\n|---|",
		"\n| a-good | x | vulnerable of unknown version, fixed of unknown version | none | Inconclusive (note 1) | ",
		"\n| b-damaged | unknown | unknown | unknown | none (note 2) | unknown | unknown |\n",
		"\n- note 2, on b-damaged: judging b-damaged/trials/001: "} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	for _, file := range []string{"index.html", "a-good/report.html", "a-good/verdict.json"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s was written", file)
		}
	}
	if _, code, err := runReport(t, dir, "-o", "markdown", "--index", "public"); code != exitUsage || err == nil ||
		err.Error() != "-o markdown prints a table and writes no index" {
		t.Errorf("with an index: exit %d, %v", code, err)
	}
}
