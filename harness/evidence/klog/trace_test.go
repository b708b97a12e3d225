package klog_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	kubelog "k8s.io/klog/v2"
	utiltrace "k8s.io/utils/trace"

	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

// spans is a text's spans, a line for each span and step.
func spans(text string) string {
	var b strings.Builder
	for s := range klog.Spans(strings.SplitSeq(text, "\n")) {
		show(&b, s, "")
	}
	return b.String()
}

func show(b *strings.Builder, s klog.Span, indent string) {
	fmt.Fprintf(b, "%s%d %s %q %s %s", indent, s.ID, s.Name, s.Fields, s.Start.Format("15:04:05.000"), s.Total)
	if s.Incomplete {
		b.WriteString(" incomplete")
	}
	b.WriteByte('\n')
	for _, step := range s.Steps {
		fmt.Fprintf(b, "%s  - %s %q %s took %s since %s\n", indent, step.Name, step.Fields, step.Time.Format("15:04:05.000"), step.Took, step.Since)
	}
	for _, n := range s.Nested {
		show(b, n, indent+"  ")
	}
}

// written is what k8s.io/utils/trace itself writes at a verbosity for what f does in a bubble of time.
func written(t *testing.T, verbosity string, f func()) string {
	t.Helper()
	state := kubelog.CaptureState()
	defer state.Restore()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	kubelog.InitFlags(flags)
	if err := flags.Parse([]string{"-v=" + verbosity, "-logtostderr=false"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	kubelog.SetOutput(&out)
	synctest.Test(t, func(*testing.T) { f() })
	kubelog.Flush()
	return out.String()
}

// deletion is what an API server does in a collection's deletion that is slow, with a list nested in it and an update in that.
func deletion() {
	all := utiltrace.New("Delete", utiltrace.Field{Key: "url", Value: "/api/v1/namespaces/load/configmaps"},
		utiltrace.Field{Key: "accept", Value: "application/json, */*"})
	pass(20)
	all.Step("About to delete collection from database")
	list := all.Nest("cacher list", utiltrace.Field{Key: "type", Value: "*core.ConfigMap"})
	pass(34000)
	list.Step("Listed items from cache", utiltrace.Field{Key: "count", Value: 400})
	update := list.Nest(`a "quoted" one`)
	pass(15)
	update.Step("Transaction prepared")
	update.LogIfLong(10 * time.Millisecond)
	list.LogIfLong(20 * time.Millisecond)
	pass(1)
	all.Step("quick")
	pass(500)
	all.Step("Object deleted from database", utiltrace.Field{Key: "a", Value: "b,c"}, utiltrace.Field{Key: "d-e", Value: ""})
	all.LogIfLong(50 * time.Millisecond)
}

// pass lets milliseconds of a bubble's time go by.
func pass(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) } // fake time: moves the synctest bubble's clock, waits for nothing

// The text is written by the library itself, at the verbosities that show all and that leave quick steps out.
func TestSpansAsWritten(t *testing.T) {
	const want = `7 Delete [{"url" "/api/v1/namespaces/load/configmaps"} {"accept" "application/json, */*"}] 00:00:00.000 34.536s
  - About to delete collection from database [] 00:00:00.020 took 20ms since 20ms
  - quick [] 00:00:34.036 took 1ms since 34.036s
  - Object deleted from database [{"a" "b,c"} {"d-e" ""}] 00:00:34.536 took 500ms since 34.536s
  7 cacher list [{"type" "*core.ConfigMap"}] 00:00:00.020 34.516s
    - Listed items from cache [{"count" "400"}] 00:00:34.020 took 34s since 34.02s
    7 a "quoted" one [] 00:00:34.020 516ms
      - Transaction prepared [] 00:00:34.035 took 15ms since 34.035s
`
	for verbosity, want := range map[string]string{"4": want, "2": without(want, "quick")} {
		text := numbered(t, written(t, verbosity, deletion), "7")
		if diff := cmp.Diff(want, spans(text)); diff != "" {
			t.Errorf("at -v=%s (-want +got):\n%s\nof\n%s", verbosity, diff, text)
		}
	}
}

// without is a text without the lines that have a word.
func without(text, word string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(l string) bool { return strings.Contains(l, word) })
	return strings.Join(lines, "")
}

// numbered gives the only trace of a text a number of the test's.
func numbered(t *testing.T, text, id string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "Trace[")
	drawn, _, ok2 := strings.Cut(rest, "]")
	if !ok || !ok2 {
		t.Fatalf("there is no trace in %q", text)
	}
	return strings.ReplaceAll(text, "Trace["+drawn+"]", "Trace["+id+"]")
}

// What v1.22's module wrote, -v 4, of two requests at once.
func TestSpansOfV122(t *testing.T) {
	b, err := os.ReadFile("testdata/trace-v1.22.log")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 21 {
		t.Fatalf("the file has %d lines", len(lines))
	}
	want := spans(string(b))
	for _, has := range []string{`{"audit-id" "6b8c1f0e-5d3b-4a51-9a2c-0d6a4b6f9f10"}`, `{"user-agent" "relapse/v0.0.0 (linux/amd64) kubernetes/$Format"}`,
		"GuaranteedUpdate etcd3 [{\"type\" \"*core.ConfigMap\"}]", "- Transaction committed []", "- Filtered items [{\"count\" \"400\"}]"} {
		if strings.Count(want, has) == 0 {
			t.Errorf("%s is missing in\n%s", has, want)
		}
	}
	if strings.Contains(want, "incomplete") || strings.Count(want, "cacher list") != 2 || strings.Count(want, "\n") != 18 {
		t.Errorf("the spans are\n%s", want)
	}
	// The two interleaved, line by line, end in the same order and are the same.
	var mixed []string
	for i := range 10 {
		mixed = append(mixed, lines[i], "I1121 15:38:43.000000       1 other.go:1] in between", lines[10+i])
	}
	if diff := cmp.Diff(want, spans(strings.Join(mixed, "\n"))); diff != "" {
		t.Errorf("interleaved (-alone +interleaved):\n%s", diff)
	}
	// A JSON log has each as one message.
	asJSON := func(lines []string) string {
		_, first, _ := strings.Cut(lines[0], "] ")
		return fmt.Sprintf(`{"ts":1795262400123.456,"caller":"trace/trace.go:205","msg":%q,"v":0}`, strings.Join(append([]string{first}, lines[1:]...), "\n")+"\n")
	}
	if diff := cmp.Diff(want, spans(asJSON(lines[:10])+"\n"+asJSON(lines[10:20]))); diff != "" {
		t.Errorf("as JSON (-text +JSON):\n%s", diff)
	}
}

func TestSpansThatLackSomething(t *testing.T) {
	const header = "I1121 12:00:00.000001       1 trace.go:236] "
	const head = header + `Trace[7]: "List" url:/api/v1/pods (31-Dec-2026 23:59:59.900) (total time: 20000ms):` + "\n"
	const end = "Trace[7]: [20.000000123s] [20.000000123s] END\n"
	for _, c := range []struct{ name, text, want string }{
		{"no step", head + end, `7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20.000000123s` + "\n"},
		{"over midnight", head + `Trace[7]: ---"a" 200ms (00:00:00.100)` + "\n" + end,
			`7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20.000000123s` + "\n  - a [] 00:00:00.100 took 200ms since 200ms\n"},
		{"no end", head + `Trace[7]: ---"a" -200ms (23:59:59.950)` + "\n",
			`7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20s incomplete` + "\n  - a [] 23:59:59.950 took -200ms since 50ms\n"},
		{"no beginning", `Trace[7]: ---"a" 200ms (00:00:00.100)` + "\n" + end,
			"7  [] 00:00:00.000 20.000000123s incomplete\n  - a [] 00:00:00.000 took 200ms since 0s\n"},
		{"an end alone", end, "7  [] 00:00:00.000 20.000000123s incomplete\n"},
		{"a line that can't be read", head + `Trace[7]: ---"a" err:one` + "\ntwo 200ms (00:00:00.100)\n" + end,
			`7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20.000000123s incomplete` + "\n"},
		{"a nested one's beginning is missing", head + `Trace[7]:   ---"a" 200ms (00:00:00.100)]` + "\n" + end,
			`7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20.000000123s incomplete` + "\n  - a [] 00:00:00.100 took 200ms since 200ms\n"},
		{"the number again", head + head + end,
			`7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20s incomplete` + "\n" + `7 List [{"url" "/api/v1/pods"}] 23:59:59.900 20.000000123s` + "\n"},
		{"a head that is cut", header + "Trace[7]: \"List\" url:/api (31-Dec\n" + end, "7  [] 00:00:00.000 20.000000123s incomplete\n"},
		{"no trace", header + "a Trace[7]: \"List\"\nTrace[x]: y\nTrace[7\nthe Trace[7]: [1s] [1s] END\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, spans(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Traces without an end are bounded in number, the oldest go first, and none is dropped.
func TestSpansThatNeverEnd(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "Trace[%d]: \"Get\" (31-Dec-2026 23:59:59.900) (total time: 20ms):\n", i)
	}
	n, atOnce := 0, 0
	for s := range klog.Spans(func(yield func(string) bool) {
		for line := range strings.Lines(b.String()) {
			if !yield(line) {
				return
			}
			atOnce++
		}
	}) {
		if s.ID != int64(n) || !s.Incomplete {
			t.Fatalf("span %d is %+v", n, s)
		}
		if atOnce-n > 500 {
			t.Fatalf("%d were held back", atOnce-n)
		}
		n++
	}
	if n != 1000 {
		t.Errorf("got %d spans of 1000", n)
	}
}

func FuzzSpans(f *testing.F) {
	b, err := os.ReadFile("testdata/trace-v1.22.log")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add(`Trace[7]: "List" a:b,c:d (31-Dec-2026 23:59:59.900) (total time: 20000ms):` + "\n" + `Trace[7]:  ["n" -2ms (00:00:00.000)]]` + "\nTrace[7]: [1s] [1s] END")
	f.Add(`{"ts":1795262400123.456,"caller":"trace/trace.go:205","msg":"Trace[1]: \"Get\" (31-Dec-2026 23:59:59.900) (total time: 1ms):\nTrace[1]: [1ms] [1ms] END\n","v":0}`)
	f.Fuzz(func(t *testing.T, text string) {
		got := spans(text)
		if diff := cmp.Diff(got, spans(text)); diff != "" {
			t.Errorf("read twice:\n%s", diff)
		}
		items := 0
		for s := range klog.Spans(strings.SplitSeq(text, "\n")) {
			items += 1 + count(s)
			if !s.Incomplete && (s.Start.IsZero() || s.Total < 0 && !strings.Contains(text, "-")) {
				t.Errorf("a whole span is %+v", s)
			}
		}
		if most := 2 * strings.Count(text, "Trace["); items > most { // a step whose trace has no beginning is two
			t.Errorf("%d spans and steps, which is more than %d", items, most)
		}
	})
}

// count is how many steps and nested spans a span has.
func count(s klog.Span) int {
	n := len(s.Steps)
	for _, o := range s.Nested {
		n += 1 + count(o)
	}
	return n
}

// BenchmarkSpans reads a log at -v 4 in which every tenth message is a trace.
func BenchmarkSpans(b *testing.B) {
	raw, err := os.ReadFile("testdata/trace-v1.22.log")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var log []string
	for range 1000 {
		log = append(log, lines...)
		for range 18 {
			log = append(log, lines[20])
		}
	}
	size := len(strings.Join(log, "\n"))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range klog.Spans(slices.Values(log)) {
			n++
		}
		if n != 2000 {
			b.Fatalf("got %d spans, want 2000", n)
		}
	}
}
