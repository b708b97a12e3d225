package report_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-relapse/relapse/harness/report"
)

// history is a folder of runs: one a day, the third of them with a cure that doesn't work, and one without a verdict.
func history(t *testing.T) (string, []report.Run) {
	t.Helper()
	dir := t.TempDir()
	var runs []report.Run
	for day := range 4 {
		tr := newTrial()
		tr.world.StartedAt = t0.Add(time.Duration(day) * 24 * time.Hour)
		if day == 2 {
			tr.fixed.after = "goroutine 9 [chan send]"
		}
		name := tr.world.StartedAt.Format("20060102")
		tr.writeTo(t, filepath.Join(dir, name))
		v, _ := judgeAndWrite(t, filepath.Join(dir, name))
		runs = append(runs, report.Run{Dir: name, Verdict: v})
	}
	return dir, append(runs, report.Run{Dir: "cut-off", Err: "it was never sealed <b>"})
}

func TestIndex(t *testing.T) {
	dir, runs := history(t)
	must(t, report.WriteIndex(dir, runs))
	b, err := os.ReadFile(filepath.Join(dir, report.IndexFile))
	must(t, err)
	page := string(b)
	valid(t, page)
	selfContained(t, page, dir)
	inOrder(t, page, "4 runs of 1 scenario, the last of 2026-03-07 05:06 UTC; 1 more without a verdict", ">x</h2>",
		`<th scope="row">vulnerable</th><td class="nowrap">4 of 4</td><td>4 of 4: 51 to 100 % (Wilson, 95 %)</td>`, "v1.34.4, aaaaaaaaaaaa",
		`<th scope="row">fixed</th><td class="nowrap">3 of 4</td>`, `class="dot good" href="./20260304/report.html"`, `class="dot ill odd" href="./20260306/report.html"`, "2026-03-06 05:06, trial 001: Reproduced, v1.34.4, ffffffffffff",
		`href="./20260307/report.html">2026-03-07 05:06</a>`, "Validated</span>", "StillVulnerable</span>", `href="./20260304/report.html">2026-03-04 05:06</a>`,
		"Without a verdict", "it was never sealed &lt;b&gt;")
	slices.Reverse(runs)
	again, err := report.Index(runs)
	must(t, err)
	if string(again) != page {
		t.Error("the order in which runs are given changes the index")
	}
}

func TestIndexOfNothing(t *testing.T) {
	page, err := report.Index(nil)
	must(t, err)
	valid(t, string(page))
	if !strings.Contains(string(page), "No run has a verdict.") {
		t.Errorf("the index of nothing says %s", page)
	}
}

func TestIndexInTheBrowser(t *testing.T) {
	ctx := browser(t)
	dir, runs := history(t)
	must(t, report.WriteIndex(dir, runs))
	checkInTheBrowser(t, ctx, filepath.Join(dir, report.IndexFile), "index")
}
