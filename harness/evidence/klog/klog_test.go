package klog_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-relapse/relapse/harness/evidence/klog"
)

var ref = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(h, m, s, us int) time.Time { return time.Date(2026, 11, 21, h, m, s, us*1000, time.UTC) }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       klog.Line
	}{
		{"structured", `E1121 12:00:00.123456    1234 kubelet.go:2451] "Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 3m7.1s ago; threshold is 3m0s"`,
			klog.Line{Severity: klog.Error, Time: at(12, 0, 0, 123456), Thread: 1234, File: "kubelet.go", SourceLine: 2451,
				Message: "Skipping pod synchronization", Structured: true,
				Pairs: []klog.Pair{{"err", "PLEG is not healthy: pleg was last seen active 3m7.1s ago; threshold is 3m0s"}}}},
		{"plain, as in v1.12", `I1121 12:00:00.000001       1 kubelet.go:1758] skipping pod synchronization - [PLEG is not healthy: pleg was last seen active 58h29m3s ago; threshold is 3m0s]`,
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 1), Thread: 1, File: "kubelet.go", SourceLine: 1758,
				Message: "skipping pod synchronization - [PLEG is not healthy: pleg was last seen active 58h29m3s ago; threshold is 3m0s]"}},
		{"values of every form", `W1121 12:00:00.000001 1 a.go:1] "m \"q\"" n=3 none=<nil> obj={"name":"a b","x":[1, 2]} old={Name:a b Ns:c} list=[a b] s="x\ty" e="" last=x`,
			klog.Line{Severity: klog.Warning, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1,
				Message: `m "q"`, Structured: true, Pairs: []klog.Pair{{"n", "3"}, {"none", "<nil>"}, {"obj", `{"name":"a b","x":[1, 2]}`},
					{"old", "{Name:a b Ns:c}"}, {"list", "[a b]"}, {"s", "x\ty"}, {"e", ""}, {"last", "x"}}}},
		{"brackets that don't match", `I1121 12:00:00.000001 1 a.go:1] "m" v=[a { b c=d`,
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1,
				Message: "m", Structured: true, Pairs: []klog.Pair{{"v", "[a { b"}, {"c", "d"}}}},
		{"value of several lines", "I1121 12:00:00.000001 1 a.go:1] \"m\" err=<\n\tone\n\t > two\n\n > next=1",
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1,
				Message: "m", Structured: true, Pairs: []klog.Pair{{"err", "one\n > two\n"}, {"next", "1"}}}},
		{"value without its end", "I1121 12:00:00.000001 1 a.go:1] \"m\" err=<\n\tone",
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1,
				Message: "m", Structured: true, Pairs: []klog.Pair{{"err", "one"}}, Unfinished: true}},
		{"a quotation that isn't a message", `I1121 12:00:00.000001 1 a.go:1] "foo" is not a bar`,
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1, Message: `"foo" is not a bar`}},
		{"no message", "F1121 12:00:00.000001 1 a.go:1] \r\n",
			klog.Line{Severity: klog.Fatal, Time: at(12, 0, 0, 1), Thread: 1, File: "a.go", SourceLine: 1}},
		{"JSON info", `{"ts":1795262400123.456,"caller":"kubelet/kubelet.go:12","msg":"hi","v":4,"pod":{"name":"a"},"n":2,"s":"x","s":"y"}`,
			klog.Line{Severity: klog.Info, Time: at(12, 0, 0, 123456), File: "kubelet/kubelet.go", SourceLine: 12, Verbosity: 4,
				Message: "hi", Structured: true, Pairs: []klog.Pair{{"pod", `{"name":"a"}`}, {"n", "2"}, {"s", "x"}, {"s", "y"}}}},
		{"JSON error", `{"ts":1795262400000,"caller":"a/b.go:12","msg":"bad","err":"boom"}`,
			klog.Line{Severity: klog.Error, Time: at(12, 0, 0, 0), File: "a/b.go", SourceLine: 12,
				Message: "bad", Structured: true, Pairs: []klog.Pair{{"err", "boom"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := klog.Parse([]byte(c.text), ref)
			if diff := cmp.Diff(c.want, got); !ok || diff != "" {
				t.Errorf("ok %t (-want +got):\n%s", ok, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "I", "X1121 12:00:00.123456 1 a.go:1] m", "I1321 12:00:00.123456 1 a.go:1] m", "I1121 12:00:00.12345 1 a.go:1] m",
		"I1121 12:00:00.123456 1 a.go] m", "I1121 12:00:00.123456 x a.go:1] m", "I1121 12:00:00.123456 1 a.go:1 m", "I0230 12:00:00.123456 1 a.go:1] m",
		`{"msg":"no time"}`, `{"ts":1,"v":0}`, `{"ts":1,"msg":"m","v":0} more`, `{"ts":1,"msg":"m"`, `["ts"]`,
		`Trace[1]: "List" (21-Nov-2026 12:00:00.000) (total time: 20000ms):`, `panic: boom`} {
		if l, ok := klog.Parse([]byte(text), ref); ok {
			t.Errorf("%q was read as %+v", text, l)
		}
	}
}

func TestYear(t *testing.T) {
	for _, c := range []struct{ ref, text, want string }{
		{"2027-01-01T00:00:05Z", "1231 23:59:59.000000", "2026-12-31T23:59:59Z"},
		{"2026-12-31T23:59:59Z", "0101 00:00:01.000000", "2027-01-01T00:00:01Z"},
		{"2026-03-01T00:00:00Z", "0229 12:00:00.000000", "2024-02-29T12:00:00Z"},
		{"2026-11-21T12:00:00+02:00", "1121 12:00:00.000000", "2026-11-21T12:00:00+02:00"},
	} {
		r, err := time.Parse(time.RFC3339, c.ref)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := klog.Parse([]byte("I"+c.text+" 1 a.go:1] m"), r)
		if got := l.Time.Format(time.RFC3339); !ok || got != c.want {
			t.Errorf("%s near %s is %s, ok %t; want %s", c.text, c.ref, got, ok, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("E1121 12:00:00.123456    1234 kubelet.go:2451] \"Skipping\" err=\"x\" a=[b c] d=<\n\tone\n > e=1"))
	f.Add([]byte(`{"ts":1795262400123.456,"caller":"kubelet/kubelet.go:12","msg":"hi","v":4,"pod":{"name":"a"}}`))
	f.Add([]byte("I1121 12:00:00.000001 1 a.go:1] \"m\" v=[a { b c=d\nfoo\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, ok := klog.Parse(text, ref)
		b, again := klog.Parse(text, ref)
		if diff := cmp.Diff(a, b); ok != again || diff != "" {
			t.Errorf("read twice:\n%s", diff)
		}
		if ok && (a.Severity == 0 || a.Time.IsZero() || !a.Structured && len(a.Pairs) > 0) {
			t.Errorf("%q was read as %+v", text, a)
		}
		if len(a.Message) > 3*len(text) { // a byte that is not UTF-8 becomes U+FFFD
			t.Errorf("%q is %q", text, a.Message)
		}
	})
}
