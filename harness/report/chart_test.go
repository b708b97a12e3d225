package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check/goroutines"
	"github.com/kube-relapse/relapse/harness/event"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/plan"
	"github.com/kube-relapse/relapse/harness/report"
	"github.com/kube-relapse/relapse/harness/scenario"
)

const (
	sender = "goroutine %d [chan send, 2 minutes]:\nk8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection()\n\t/src/store.go:1329 +0x1\n\n"
	server = "goroutine 1 [select]:\nmain.main()\n\t/src/main.go:7 +0x1\n\n"
)

// dump is a debug=2 dump with so many goroutines blocked in DeleteCollection.
func dump(blocked int) string {
	out := server
	for i := range blocked {
		out += fmt.Sprintf(sender, 100+i)
	}
	return out
}

// drawn gives an arm go_goroutines every two seconds, except from skip to the second after it, and the dumps by second.
func drawn(t *testing.T, a *arm, skip [2]int, count func(second int) int, dumps map[int]string) {
	t.Helper()
	a.before, a.after = "", ""
	a.more = func(w *bundle.Writer) {
		s, err := w.Stream(bundle.Meta{Kind: bundle.MetricSamples, Arm: a.planned.Name, Time: t0}, "jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for sec := 0; sec <= 80; sec += 2 {
			if sec > skip[0] && sec < skip[1] {
				continue
			}
			for _, m := range []bundle.MetricSample{{Name: "go_threads", Value: 9}, {Name: "go_goroutines", Value: float64(count(sec))}} {
				m.Time, m.Done = at(sec), at(sec)
				if err := s.JSON(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		for sec, text := range dumps {
			if _, err := w.Write(bundle.Meta{Kind: bundle.Goroutines2, Arm: a.planned.Name, Time: at(sec)}, "txt", strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func faultEvents(arm string, seconds ...int) []event.Event {
	var out []event.Event
	for i, s := range seconds {
		typ := []string{event.FaultSeen, event.FaultGone}[i%2]
		out = append(out, event.Event{Time: at(s), Type: typ, Arm: arm, Message: "slow-etcd: so", Fields: map[string]any{"fault": "slow-etcd", "node": arm + "-node"}})
	}
	return out
}

// leaky is a trial in which the vulnerable arm keeps three goroutines.
func leaky(t *testing.T) *trial {
	tr := newTrial()
	spec := &goroutines.Goroutines{Func: "registry.(*Store).DeleteCollection", State: "chan send", Count: 1, Dumps: 1}
	tr.plan.Signature = []plan.Check{{CheckHeader: scenario.CheckHeader{Name: "is blocked", Kind: "goroutines"}, Spec: spec}}
	tr.plan.Subject = "" // the made-up evidence names no component
	drawn(t, tr.vulnerable, [2]int{}, func(sec int) int { return 100 + sec }, map[int]string{25: dump(0), 50: dump(2), 65: dump(3), 75: dump(3)})
	drawn(t, tr.fixed, [2]int{}, func(int) int { return 101 }, map[int]string{25: dump(0), 65: dump(0)})
	tr.emit = append(faultEvents("vulnerable", 42, 58), faultEvents("fixed", 45, 59)...)
	return tr
}

func chartOf(t *testing.T, run, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// texts are the texts of an SVG in their order; it fails if the SVG isn't well-formed.
func texts(t *testing.T, svg string) string {
	t.Helper()
	var out []string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(out, "\n") + "\n"
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			out = append(out, strings.TrimSpace(string(c)))
		}
	}
}

// The colours of the vulnerable and the fixed arm in the SVG, of lines and of bands.
const (
	orange, blue         = "#B85C00", "#1F77D0"
	paleOrange, paleBlue = "#B75B00;fill-opacity:0.15686", "#1E76CF;fill-opacity:0.15686"
)

func TestChartShowsBothArmsAndTheirFault(t *testing.T) {
	run := leaky(t).write(t)
	_, files := judgeAndWrite(t, run)
	svg := chartOf(t, run, "series.svg")
	got := texts(t, svg)
	for _, want := range []string{"goroutines in registry.(*Store).DeleteCollection [chan send]\n", "seconds since the fault was seen\n", "goroutines\n",
		"vulnerable\n", "fixed\n", "fault in vulnerable\n", "fault in fixed\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the chart lacks the text %q:\n%s", want, got)
		}
	}
	// In each of the two figures: the line and the band, and a piece of each in the legend.
	for _, style := range []string{"stroke:" + orange, "stroke:" + blue, "fill:" + paleOrange, "fill:" + paleBlue} {
		if n := strings.Count(svg, style); n != 4 {
			t.Errorf("%d shapes have the style %s, want 4", n, style)
		}
	}
	if len(svg) > 300<<10 {
		t.Errorf("the chart has %d bytes", len(svg))
	}
	for _, want := range []string{
		"](series.svg)\n",
		"- vulnerable: 0 is 2026-03-04 05:06:49 UTC, when the fault was first seen; it was in force from 0 s to 16 s\n",
		"- fixed: 0 is 2026-03-04 05:06:52 UTC, when the fault was first seen; it was in force from 0 s to 14 s\n",
		"all goroutines of the subject, the last value by then (a dash where there is none):\n\n| seconds | fault | vulnerable | fixed |\n|---|---|---|---|\n",
		"| -10 |  | 132 | 101 |\n| 0 | on | 142 | 101 |\n| 10 | on | 152 | 101 |\n| 20 |  | 162 | 101 |\n",
		"| 0 | on | – | – |\n| 10 | on | 2 | – |\n| 20 |  | – | 0 |\n| 30 |  | 3 | – |\n",
	} {
		if !strings.Contains(files[report.ReportFile], want) {
			t.Errorf("report.md lacks %q:\n%s", want, files[report.ReportFile])
		}
	}
}

func TestChartHasTheSameBytesAgainAndElsewhere(t *testing.T) {
	run := leaky(t).write(t)
	judgeAndWrite(t, run)
	first := chartOf(t, run, "series.svg")
	judgeAndWrite(t, run)
	moved := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(moved, os.DirFS(run)); err != nil {
		t.Fatal(err)
	}
	judgeAndWrite(t, moved)
	if chartOf(t, run, "series.svg") != first || chartOf(t, moved, "series.svg") != first {
		t.Error("the same bundle gave another chart")
	}
}

func TestEveryTrialHasItsChart(t *testing.T) {
	one, second := leaky(t), leaky(t)
	one.run.Trials, second.run.Trials = listed("001", "002"), listed("001", "002")
	run := one.write(t)
	second.plan.ID = "002"
	second.writeTo(t, run)
	_, files := judgeAndWrite(t, run)
	for _, name := range []string{"series-001.svg", "series-002.svg"} {
		texts(t, chartOf(t, run, name))
		if !strings.Contains(files[report.ReportFile], "]("+name+")") {
			t.Errorf("report.md doesn't show %s", name)
		}
	}
}

// A trial without anything to draw has no chart, and its report no picture that isn't there.
func TestNoChartWithoutValues(t *testing.T) {
	run := newTrial().write(t)
	_, files := judgeAndWrite(t, run)
	if list, err := filepath.Glob(filepath.Join(run, "*.svg")); err != nil || len(list) > 0 {
		t.Errorf("charts %v (%v), want none", list, err)
	}
	if strings.Contains(files[report.ReportFile], "![") {
		t.Errorf("report.md shows a chart:\n%s", files[report.ReportFile])
	}
}

func TestFaultsOnTheTimeAxis(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"none seen", nil, "- vulnerable: no fault was seen; 0 is 2026-03-04 05:06:47 UTC, when the fault phase began\n"},
		{"told gone twice", faultEvents("vulnerable", 42, 50, 50, 70)[:2], "it was in force from 0 s to 8 s\n"},
		{"gone again at the end", append(faultEvents("vulnerable", 42, 50), faultEvents("vulnerable", 0, 70)[1]), "it was in force from 0 s to 8 s\n"},
		{"in rounds", faultEvents("vulnerable", 42, 46, 50, 54), "it was in force from 0 s to 4 s, 8 s to 12 s\n"},
		{"never gone", append(faultEvents("vulnerable", 42), event.Event{Time: at(81), Type: event.Note}), "it was in force from 0 s to 39 s\n"},
		{"in every arm", faultEvents("", 44, 49), "- fixed: 0 is 2026-03-04 05:06:51 UTC, when the fault was first seen; it was in force from 0 s to 5 s\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := leaky(t)
			tr.emit = tc.events
			run := tr.write(t)
			_, files := judgeAndWrite(t, run)
			if !strings.Contains(files[report.ReportFile], tc.want) {
				t.Errorf("report.md lacks %q:\n%s", tc.want, files[report.ReportFile])
			}
			if band := strings.Contains(texts(t, chartOf(t, run, "series.svg")), "fault in"); band != (tc.events != nil) {
				t.Errorf("the chart shows a fault: %v", band)
			}
		})
	}
}

// Over a time without samples there is no line, and a dump that is cut short isn't drawn as one with fewer goroutines.
func TestWhatIsNotKnownIsNotDrawn(t *testing.T) {
	whole := leaky(t)
	gap := leaky(t)
	drawn(t, gap.vulnerable, [2]int{10, 36}, func(int) int { return 100 }, map[int]string{25: dump(0), 50: dump(2), 65: strings.TrimSuffix(dump(3), " +0x1\n\n")})
	strokes := func(tr *trial) (int, string) {
		run := tr.write(t)
		_, files := judgeAndWrite(t, run)
		return strings.Count(chartOf(t, run, "series.svg"), "stroke:"+orange), files[report.ReportFile]
	}
	before, _ := strokes(whole)
	after, md := strokes(gap)
	if after != before+1 {
		t.Errorf("%d strokes of the arm with a gap and %d without, want one more", after, before)
	}
	for _, want := range []string{"[chan send], not all of it is there: vulnerable: dumps without a count: 1, the last because artifacts/", "is cut short\n"} {
		if !strings.Contains(md, want) {
			t.Errorf("report.md lacks %q:\n%s", want, md)
		}
	}
}

func TestLoadsAreShown(t *testing.T) {
	tr := newTrial()
	tr.vulnerable.more = func(w *bundle.Writer) {
		b, err := json.Marshal(bundle.Load{Name: "deletes", Way: "calls", Objects: 1000, Bytes: 2048, Codes: map[string]int{"504": 19, "none": 1},
			Rounds: []bundle.LoadRound{
				{Round: 1, Start: at(40), Sent: at(42), Began: at(41), End: at(75), Calls: 20, Rate: 10},
				{Round: 2, Start: at(76), Calls: 1, Wanted: 2.5},
			}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteJSON(bundle.Meta{Kind: bundle.LoadSummary, Arm: "vulnerable", Time: at(80)}, bundle.Load{Name: "watches", Way: "GET /x", Codes: map[string]int{"200": 3}}); err != nil {
			t.Fatal(err)
		}
		for arm, text := range map[string]string{"vulnerable": string(b), "fixed": "no JSON"} {
			if _, err := w.Write(bundle.Meta{Kind: bundle.LoadSummary, Arm: arm, Time: at(79)}, "json", strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, files := judgeAndWrite(t, tr.write(t))
	for _, want := range []string{
		"- deletes in vulnerable, by calls: 1000 objects of 2048 bytes in each namespace; answers: 19 x 504, 1 x none\n",
		"- watches in vulnerable, by GET /x: 0 bytes in each request; answers: 3 x 200\n",
		"| deletes | vulnerable | 1 | 2026-03-04 05:06:47 UTC | 20 | 2.00 s | 10.0/s | all at once | 1.00 s | 35.00 s |\n",
		"| deletes | vulnerable | 2 | 2026-03-04 05:07:23 UTC | 1 | never | 0.0/s | 2.5/s | never | never |\n",
		"- load.summary of fixed at 2026-03-04 05:07:26 UTC is not there: reading artifacts/",
	} {
		if !strings.Contains(files[report.ReportFile], want) {
			t.Errorf("report.md lacks %q:\n%s", want, files[report.ReportFile])
		}
	}
}
