package kinds_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kube-relapse/relapse/harness/check"
	"github.com/kube-relapse/relapse/harness/evidence/bundle"
	"github.com/kube-relapse/relapse/internal/checktest"
)

// printed is a panic in the runtime's words; inJSON is one that a program logged as JSON.
const (
	printed = `panic: runtime error: index out of range [7] with length 7
goroutine 77 [running]:
panic({0x1, 0x2})
	/usr/local/go/src/runtime/panic.go:1 +0x1
encoding/json.mapEncoder.encode({0x1})
	/usr/local/go/src/encoding/json/encode.go:1 +0x1
k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0x1)
	/src/backend.go:76 +0x1`
	inJSON = `{"ts":1764000000000.1,"msg":"Observed a panic","panic":"runtime error: index out of range [7] with length 7","stacktrace":"goroutine 77 [running]:\npanic({0x1, 0x2})\n` +
		`\t/usr/local/go/src/runtime/panic.go:1 +0x1\nencoding/json.mapEncoder.encode({0x1})\n\t/usr/local/go/src/encoding/json/encode.go:1 +0x1\n` +
		`k8s.io/apiserver/plugin/pkg/audit/log.(*backend).logEvent(0x1)\n\t/src/backend.go:76 +0x1\n"}`
)

func TestRecovered(t *testing.T) {
	real, err := os.ReadFile("../../../harness/evidence/goroutine/testdata/recovered.log") // two panics of a kube-apiserver
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(string(real), "\n")
	logs := []bundle.Kind{bundle.Logs}
	at := func(second float64, text string) []checktest.Said {
		var out []checktest.Said
		for _, line := range strings.Split(text, "\n") {
			out = append(out, checktest.Said{Second: second, Message: line})
		}
		return out
	}
	of := func(second float64, text string) func(*checktest.Trial) {
		return func(tr *checktest.Trial) {
			tr.Phases()
			tr.Log(checktest.Arm, "kube-apiserver", 0, 394, at(second, text)...)
		}
	}
	spec := func(message, frame string) string {
		return `{"component":"kube-apiserver","message":"` + message + `","frames":["` + frame + `"]}`
	}
	qs := []checktest.Question{
		{Name: "both of them", Fill: of(100, text), Met: check.True, Evidence: logs, Seen: "2 of 2 panics that kube-apiserver recovered from",
			Wanted: `a panic like "index out of range" in json.mapEncoder.encode, log.(*backend).logEvent, logged and recovered from`,
			Detail: "index out of range [16010] with length 16010\n\ngoroutine 15819 [running]:"},
		{Name: "before the fault", Fill: of(5, text), Met: check.False, Evidence: logs, Seen: "0 of 0 panics"},
		{Name: "another panic", Spec: spec("nil pointer", "json.mapEncoder.encode"), Fill: of(100, text), Met: check.False, Evidence: logs, Seen: "0 of 2 panics",
			Differs: []string{`before the stack it says "E1125`, `before the stack it says "E1125`}},
		{Name: "somewhere else", Spec: spec("index out of range", "x.f"), Fill: of(100, text), Met: check.False, Evidence: logs, Seen: "0 of 2 panics",
			Differs: []string{"what panicked has no x.f on its stack", "what panicked has no x.f on its stack"}},
		{Name: "who handled it did not panic", Spec: spec("index out of range", "filters.(*timeoutHandler).ServeHTTP.func1.1"), Fill: of(100, text), Met: check.False, Evidence: logs,
			Seen: "0 of 2 panics", Differs: []string{"what panicked has no filters", "what panicked has no filters"}},
		{Name: "it did not live through it", Fill: of(100, checktest.Fatal), Met: check.False, Evidence: logs, Seen: "0 of 0 panics"},
		{Name: "a stack without an end", Fill: of(100, text[:len(text)/3]), Met: check.Unknown, Evidence: logs, Seen: "another stack has no end, can't be read, or may be its last"},
		{Name: "behind a line that is like the runtime's last words", Fill: of(100, "panic: in a handler, recovered from: context canceled\n"+text), Met: check.True, Evidence: logs, Seen: "2 of 2 panics"},
		{Name: "printed as the runtime does, before the log goes on", Fill: of(100, printed+strings.Repeat("\nI1125 10:00:00.000000 1 x.go:1] on we go", 30)), Met: check.True, Evidence: logs,
			Seen: "1 of 1 panics", Detail: "panic: runtime error: index out of range [7] with length 7"},
		{Name: "printed as the runtime does, before one more line", Fill: of(100, printed+"\nI1125 10:00:00.000000 1 x.go:1] on we go"), Met: check.Unknown, Evidence: logs, Seen: "or may be its last"},
		{Name: "printed by the runtime", Fill: of(100, printed), Met: check.False, Evidence: logs, Seen: "0 of 0 panics"},
		{Name: "in a line of JSON", Fill: of(100, inJSON), Met: check.True, Evidence: logs, Seen: "1 of 1 panics", Detail: "index out of range [7] with length 7"},
		{Name: "in a line of JSON that was cut", Fill: of(100, inJSON[:200]), Met: check.Unknown, Evidence: logs, Seen: "another stack has no end, can't be read"},
		{Name: "a gap", Met: check.Unknown, Evidence: logs, Seen: "the file was gone", Fill: func(tr *checktest.Trial) {
			tr.Phases()
			tr.Log(checktest.Arm, "kube-apiserver", 0, 394).Gap(tr.At(150), tr.At(165), "the file was gone")
		}},
		{Name: "no log", Fill: func(tr *checktest.Trial) { tr.Phases() }, Met: check.Unknown, Seen: "no log of kube-apiserver was recorded"},
		{Name: "no frames", Spec: `{"component":"kube-apiserver","message":"x","frames":[]}`, Fill: of(100, text), Met: check.Unknown, Seen: "frames has none"},
	}
	checktest.Run(t, qs, func(q *checktest.Question) {
		q.Kind, q.Scope = "recovered", check.Scope{Arm: checktest.Arm, Phase: check.Fault}
		if q.Spec == "" {
			q.Spec = `{"component":"kube-apiserver","message":"index out of range","frames":["json.mapEncoder.encode","log.(*backend).logEvent"]}`
		}
	})
}
