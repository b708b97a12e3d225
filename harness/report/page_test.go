package report_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/harness/judge"
	"github.com/kube-relapse/relapse/harness/report"
)

// pageOf judges a run and returns its page.
func pageOf(t *testing.T, run string) string {
	t.Helper()
	judgeAndWrite(t, run)
	b, err := os.ReadFile(filepath.Join(run, report.PageFile))
	must(t, err)
	return string(b)
}

// void are the elements of HTML that have no end tag.
var void = map[string]bool{"meta": true, "link": true, "br": true, "hr": true, "img": true, "input": true, "wbr": true}

// valid goes through a page tag by tag, as a parser mends what it finds: what is opened is closed in order, no id is
// there twice, every reference to an id has its target, headings go down by one step at most, and the tables have
// headers.
func valid(t *testing.T, page string) {
	t.Helper()
	if !strings.HasPrefix(page, "<!doctype html>\n<html lang=\"en\">") {
		t.Errorf("the page begins with %.60q", page)
	}
	var open []string
	var refs []string
	ids, heading, h1 := map[string]bool{}, 0, 0
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			break
		}
		tok := z.Token()
		if kind == html.EndTagToken {
			if n := len(open); n == 0 || open[n-1] != tok.Data {
				t.Fatalf("</%s> closes %v", tok.Data, open)
			}
			open = open[:len(open)-1]
			continue
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		attrs := map[string]string{}
		for _, a := range tok.Attr {
			if _, twice := attrs[a.Key]; twice {
				t.Errorf("<%s> has %s twice", tok.Data, a.Key)
			}
			attrs[a.Key] = a.Val
		}
		if id, ok := attrs["id"]; ok {
			if ids[id] || id == "" || strings.ContainsAny(id, " \t") {
				t.Errorf("id %q is there twice, or is none", id)
			}
			ids[id] = true
		}
		if id, ok := attrs["aria-labelledby"]; ok {
			refs = append(refs, id)
		}
		if href, ok := attrs["href"]; ok && strings.HasPrefix(href, "#") {
			refs = append(refs, href[1:])
		}
		if attrs["role"] == "img" && attrs["aria-label"] == "" {
			t.Errorf("a drawing says nothing to who can't see it: %v", tok)
		}
		if tok.Data == "th" && attrs["scope"] == "" {
			t.Errorf("a header has no scope: %v", tok)
		}
		if len(tok.Data) == 2 && tok.Data[0] == 'h' && tok.Data[1] >= '1' && tok.Data[1] <= '6' {
			level := int(tok.Data[1] - '0')
			if level > heading+1 {
				t.Errorf("h%d follows h%d", level, heading)
			}
			if heading = level; level == 1 {
				h1++
			}
		}
		if kind == html.StartTagToken && !void[tok.Data] {
			open = append(open, tok.Data)
		}
	}
	if len(open) > 0 || h1 != 1 {
		t.Errorf("left open: %v; %d headings of the first level", open, h1)
	}
	for _, id := range refs {
		if !ids[id] {
			t.Errorf("nothing has the id %q", id)
		}
	}
}

// outside finds whatever a browser would fetch from elsewhere.
var outside = regexp.MustCompile(`(?i)(src|srcset|href|action|poster|data|xlink:href)\s*=\s*["']?\s*(https?:|//|/|file:)|url\(|@import|<script|<iframe|<object|<embed`)

// selfContained asserts that a page needs nothing else, and that its links lead to files of the run.
func selfContained(t *testing.T, page, dir string) {
	t.Helper()
	if found := outside.FindString(page); found != "" {
		t.Errorf("the page refers to something outside: %q", found)
	}
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1)
	for _, l := range links {
		if strings.HasPrefix(l[1], "#") || l[1] == "data:," {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(l[1]))); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
	if len(links) < 3 {
		t.Errorf("%d links were looked at", len(links))
	}
}

// inOrder asserts that texts are in a page, one after the other.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := page
	for _, want := range texts {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("the page lacks %q, or has it too early", want)
			continue
		}
		rest = after
	}
}

func TestPageHasItsPartsInOrder(t *testing.T) {
	run := rich(t).write(t)
	page := pageOf(t, run)
	valid(t, page)
	selfContained(t, page, run)
	inOrder(t, page,
		"<h1>Validated</h1>", "fixed did not show the incident under the fault that reproduced it in vulnerable.", "<dt>Exit code</dt><dd>0</dd>", "<dd>2026-03-04 05:06:07 UTC</dd>", "<dd>v1.34.4</dd>",
		">Arms</h2>", `<article class="card good vulnerable">`, "Reproduced<span class=\"expected\">as expected", digestV, `<article class="card good fixed">`, "NotReproduced<span", digestF,
		">Timeline</h3>", "0 is 2026-03-04 05:06:49 UTC, when the fault was first seen", "deletes: -1 s to 15 s (round 1 of 20 calls)", "slow-etcd: 0 s to 16 s", "collection: 20 s to 22 s (done)", "onset, cpu", ">fixed</b>",
		">Over time</h3>", "goroutines in registry.(*Store).DeleteCollection [chan send]</figcaption>", "all goroutines of kube-apiserver</figcaption>", "CPU of kube-apiserver</figcaption>", "Thin: etcd (shared).",
		"resident memory of", "heap in use of", "age of the last relist (PLEG)", "slowest answer of etcd to a probe", "vulnerable: probes without an answer: 1", "requests to etcd as kube-apiserver timed them, mean",
		">Decisive stacks</h3>", "on which <b>is blocked</b> rests; still 8 in the last of 8 dumps", `<span class="count">8</span> goroutines <code>[chan send]</code>, age: waiting for 2 min`, "<mark>k8s.io/apiserver/pkg/registry/generic/registry.(*Store).DeleteCollection</mark>\n    store.go:1329", "none in any of 8 dumps",
		">Where it goes</h3>", "CPU</h4>", "<b>vulnerable</b>: 820 ms/s; the last profile of the phase fault", "<b>fixed</b>: 320 ms/s", "go tool pprof -http=: -diff_base trials/001/artifacts/", "<code>encoding/json.Marshal</code></th><td>400</td><td>100</td><td>300</td>",
		"Heap in use</h4>", "vulnerable</b>: 270 MiB; the last profile of the phase recovery", "fixed</b>: 70 MiB",
		">Every check</h3>", "Signature: the incident", "is blocked", `<span class="met is-met">met</span>`, "trials/001/artifacts/",
		">What was modelled</h2>", "containers are only reported.", ">What weakens this run</h2>", "Nothing is known to", ">What was built, and what was changed for it</h2>", "taken out of DeleteCollection", "capacity = 1000",
		">Run it again</h2>", "relapse run x --pair modern --seed 42<", "relapse run -f plan.json<")
	if strings.Contains(page, "How sure") {
		t.Error("the page has rates over one trial")
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg class="plot".*?</svg>`).FindAllString(page, -1) {
		if c := regexp.MustCompile(`(fill|stroke):#[0-9A-Fa-f]{6}`).FindString(svg); c != "" {
			t.Errorf("a chart has the colour %s, which no theme changes", c)
			break
		}
	}
}

func TestPageHasTheSameBytesElsewhere(t *testing.T) {
	run := rich(t).write(t)
	first, again := pageOf(t, run), pageOf(t, run)
	moved := filepath.Join(t.TempDir(), "copied", "by hand")
	must(t, os.CopyFS(moved, os.DirFS(run)))
	if elsewhere := pageOf(t, moved); first != again || first != elsewhere {
		t.Error("the same bundle gave another page")
	}
	for _, dir := range []string{run, moved, os.TempDir()} {
		if strings.Contains(first, dir) {
			t.Errorf("the page names the folder %s", dir)
		}
	}
}

// What has no evidence isn't drawn, and the page says what isn't known.
func TestPageOfLittleEvidence(t *testing.T) {
	tr := leaky(t)
	tr.fixed.health, tr.plan.NoFaults, tr.emit = "", true, nil
	tr.fixed.more = nil
	run := tr.write(t)
	page := pageOf(t, run)
	valid(t, page)
	selfContained(t, page, run)
	inOrder(t, page, `<header class="open"`, "<h1>Inconclusive</h1>", "no fault was seen", "no dump could be read, so nothing is known", `<span class="met is-unknown">unknown</span>`, "no faults were injected", "--no-faults<")
	for _, absent := range []string{"Where it goes", "CPU of", "resident memory", "writes to"} {
		if strings.Contains(page, absent) {
			t.Errorf("the page shows %q without any evidence of it", absent)
		}
	}
}

// Names in the evidence are texts to a page, never tags.
func TestPageEscapes(t *testing.T) {
	tr := rich(t)
	const bad = `<script>alert("x")</script>`
	tr.plan.Modelled = []string{bad}
	tr.plan.Healed[0].Name = bad
	tr.world.Versions[bad] = bad
	more := tr.fixed.more
	tr.fixed.more = func(w *bundle.Writer) {
		more(w)
		_, err := w.Write(bundle.Meta{Kind: bundle.CPU, Arm: "fixed", Component: "kube-apiserver", Time: at(55)}, "pb.gz", encoded(t, bundle.CPU, stack{bad + ";" + bad, 9e9}))
		must(t, err)
	}
	run := tr.write(t)
	page := pageOf(t, run)
	valid(t, page)
	selfContained(t, page, run)
	if n := strings.Count(page, "&lt;script&gt;alert("); n < 7 {
		t.Errorf("the name is there %d times", n)
	}
}

// A run of many trials with large profiles stays small, and says what it left out.
func TestPageOfALargeRun(t *testing.T) {
	var stacks []stack
	for i := range 1500 {
		calls := []string{"main.main"}
		for depth := range 3 + i%40 {
			calls = append(calls, fmt.Sprintf("github.com/example/deeply/nested/package%d.(*Type).Method%d", depth%7, i*7919%(depth+2)))
		}
		stacks = append(stacks, stack{strings.Join(calls, ";"), int64(1e5 + i)})
	}
	run := filepath.Join(t.TempDir(), "large")
	for n := range 6 {
		tr := rich(t)
		tr.plan.ID, tr.run.Trials = fmt.Sprintf("%03d", n+1), listed("001", "002", "003", "004", "005", "006")
		for _, a := range tr.arms() {
			more := a.more
			a.more = func(w *bundle.Writer) {
				more(w)
				for kind, second := range map[bundle.Kind]int{bundle.CPU: 55, bundle.Heap: 78} {
					_, err := w.Write(bundle.Meta{Kind: kind, Arm: a.planned.Name, Component: "kube-apiserver", Time: at(second)}, "pb.gz", encoded(t, kind, stacks[n*100:]...))
					must(t, err)
				}
			}
		}
		tr.writeTo(t, run)
	}
	page := pageOf(t, run)
	t.Logf("%d bytes", len(page))
	valid(t, page)
	selfContained(t, page, run)
	if len(page) > 5<<20 {
		t.Errorf("the page has %d bytes, want less than 5 MiB", len(page))
	}
	inOrder(t, page, ">Trials</h2>", `href="#trial-006"`, "How sure", "6 of 6", "Trial 001, pair modern", "Trial 006, pair modern")
	if named := strings.Count(page, "go tool pprof -http=: -diff_base "); named < 6 && !strings.Contains(page, "This page has no room for the pictures of trial 006") {
		t.Errorf("%d commands that open profiles, and not a word about the others", named)
	}
}

func TestRunItAgain(t *testing.T) {
	tr := newTrial()
	run := tr.write(t)
	v, err := judge.Run(run)
	must(t, err)
	v.Params = map[string]string{"latency": "2s", "faults.flood.spec.note": "it's slow"}
	page, err := report.Page(v, report.Read(v))
	must(t, err)
	if want := html.EscapeString("relapse run x --pair modern --seed 42 --set 'faults.flood.spec.note=it'\\''s slow' --set latency=2s"); !slices.Contains(regexp.MustCompile(`<code>|</code>`).Split(string(page), -1), want) {
		t.Errorf("the page lacks %s", want)
	}
}
